//! What a running process cannot change, and what is shown of what is in force.

use std::net::SocketAddr;

use fuseline_gateway::config::{Config, Overrides, Report, Sources};
use serde_json::{Value, json};

use super::{HEAD, Reloadable};
use crate::support::{get, openai, post, route, send};

fn base() -> String {
    format!(
        "{}{}",
        openai("a", "http://127.0.0.1:9/v1?key=sk-canary"),
        route(&["a"])
    )
}

fn load(text: &str, in_force: Option<&Config>) -> Report {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    let sources = Sources {
        file: Some(file.path()),
        overrides: &Overrides::default(),
        env: &|_| None,
    };
    match in_force {
        Some(in_force) => sources.load_after(in_force),
        None => sources.load(),
    }
}

#[tokio::test]
async fn keys_that_take_a_restart_are_noted_and_keep_their_values() {
    let reloadable = Reloadable::start(&base()).await;
    let (addr, admin) = (reloadable.gateway.addr(), reloadable.gateway.admin_addr());
    let text = format!(
        "listen = \"127.0.0.1:1\"\nadmin_listen = \"127.0.0.1:2\"\nstate = \"other.db\"\nlog = \"debug\"\n\
         log_format = \"json\"\nfleet = \"redis://127.0.0.1:1\"\nfleet_prefix = \"x\"\nmax_breakers = 9\n\
         max_body = \"1MiB\"\n{}",
        base()
    );
    let reloaded = reloadable.reload_whole(&text).await.unwrap();
    assert_eq!(reloaded.changed, ["max_body"]);
    let noted: Vec<_> = reloaded
        .findings
        .iter()
        .map(|note| note.key.as_deref().unwrap())
        .collect();
    let kept = [
        "listen",
        "admin_listen",
        "state",
        "log",
        "log_format",
        "fleet",
        "fleet_prefix",
        "max_breakers",
    ];
    assert_eq!(noted, kept, "in the order of the file");
    assert!(
        reloaded
            .findings
            .iter()
            .all(|note| note.problem == "takes effect with the next start")
    );
    assert_eq!(
        (reloadable.gateway.addr(), reloadable.gateway.admin_addr()),
        (addr, admin)
    );
    let long = vec![b' '; 2 << 20];
    assert_eq!(
        send(addr, post(crate::support::CHAT, long)).await.status,
        413
    );
    let entries = send(admin, get("/config")).await.json();
    let value = |key: &str| {
        let mut all = entries["entries"].as_array().unwrap().iter();
        all.find(|entry| entry["key"] == key)
            .cloned()
            .unwrap_or_default()
    };
    assert_eq!(value("listen")["value"], "127.0.0.1:0");
    assert_eq!(value("state")["value"], "off");
    assert_eq!(
        value("max_breakers"),
        json!({"key": "max_breakers", "value": 500, "from": "default"})
    );
    assert_eq!(value("fleet"), Value::Null);
    assert_eq!(value("max_body")["from"], "file");
    let again = reloadable.reload_whole(&text).await.unwrap();
    assert_eq!(
        again.changed, [""; 0],
        "what was not done is no change the next time either"
    );
}

#[test]
fn a_route_that_begins_to_queue_is_told_that_it_takes_a_restart() {
    let started = load(&format!("{HEAD}{}", base()), None);
    let queues = base().replace("retries = 0", "retries = 0\non_exhausted = [\"queue\"]");
    let text = format!("{}{queues}", HEAD.replace("\"off\"", "\"x.db\""));
    let report = load(&text, started.config.as_ref());
    assert!(report.config.is_none(), "state stays off: {report:?}");
    let kept = load(&text.replace("queue", "wait"), None).config.unwrap();
    let report = load(&text, Some(&kept));
    let notes: Vec<_> = report.findings.iter().map(ToString::to_string).collect();
    assert!(
        notes
            .iter()
            .any(|note| note.contains("until then no call is queued")),
        "{notes:?}"
    );
    assert!(report.config.is_some());
}

#[test]
fn a_listener_that_stays_reachable_keeps_asking_for_a_token() {
    let tail = base();
    let started = load(
        &format!(
            "listen = \"0.0.0.0:8080\"\nclient_tokens = \"t\"\nadmin_token = \"a\"\nadmin_listen = \"0.0.0.0:8081\"\n{tail}"
        ),
        None,
    );
    let in_force = started.config.unwrap();
    let refused = load(&tail, Some(&in_force));
    assert!(refused.config.is_none());
    let keys = |report: &Report| -> Vec<_> {
        let keys = report
            .findings
            .iter()
            .filter(|finding| finding.remedy.is_some());
        keys.map(|finding| finding.key.clone().unwrap()).collect()
    };
    assert_eq!(keys(&refused), ["listen", "admin_listen"]);
    let asked = load(
        &format!("client_tokens = \"u\"\nadmin_token = \"b\"\n{tail}"),
        Some(&in_force),
    );
    let config = asked.config.unwrap();
    assert_eq!(config.listen, SocketAddr::from(([0, 0, 0, 0], 8080)));
}

#[test]
fn what_is_in_force_is_shown_with_its_origin_and_without_secrets() {
    let text = include_str!("../full.toml");
    let config = crate::config::good(text);
    let shown = serde_json::to_value(config.entries()).unwrap();
    let shown = shown.as_array().unwrap();
    let all = Value::from(shown.clone()).to_string();
    assert!(
        !all.contains("canary") && !all.contains("redis://"),
        "{all}"
    );
    let find = |key: &str| {
        let entry = shown.iter().find(|entry| entry["key"] == key);
        entry.map(|entry| (entry["value"].clone(), entry["from"].as_str().unwrap()))
    };
    let file = |value: Value| Some((value, "file"));
    assert_eq!(find("max_breakers"), file(json!(7)));
    assert_eq!(find("routes[0].targets[0].price.input"), file(json!(2.5)));
    assert_eq!(find("routes[0].on_exhausted[2]"), file(json!("small")));
    assert_eq!(find("routes[1].retries"), Some((json!(1), "default")));
    assert_eq!(find("client_tokens[0]"), file(json!("***")));
    assert_eq!(find("admin_token"), file(json!("***")));
    assert_eq!(find("admin_token.env"), file(json!("KEY")));
    assert_eq!(find("fleet"), file(json!("***")));
    assert_eq!(
        find("providers.primary.breaker.cooldown"),
        file(json!("16s"))
    );
    assert_eq!(
        find("providers.primary.breaker.probes"),
        None,
        "as [breaker] says"
    );
    assert!(
        shown
            .windows(2)
            .all(|pair| pair[0]["key"].as_str() < pair[1]["key"].as_str())
    );
    let url = load(&format!("{HEAD}{}", base()), None).config.unwrap();
    let url = serde_json::to_string(url.entries()).unwrap();
    assert!(
        url.contains("http://127.0.0.1:9/v1") && !url.contains("canary"),
        "{url}"
    );
}

#[test]
fn flags_stay_above_the_file_when_it_is_read_anew() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), base()).unwrap();
    let overrides = Overrides {
        state: Some("off".to_owned()),
        fleet: Some("redis://sk-canary@h".into()),
        ..Overrides::default()
    };
    let sources = Sources {
        file: Some(file.path()),
        overrides: &overrides,
        env: &|_| None,
    };
    let config = sources.load().config.unwrap();
    std::fs::write(file.path(), format!("state = \"x.db\"\n{}", base())).unwrap();
    let report = sources.load_after(&config);
    let again = report.config.unwrap();
    assert_eq!(
        (again.state.clone(), again.differences(&config)),
        (None, Vec::new())
    );
    let entries = serde_json::to_value(again.entries()).unwrap();
    let of = |key: &str| {
        entries
            .as_array()
            .unwrap()
            .iter()
            .find(|entry| entry["key"] == key)
            .cloned()
    };
    assert_eq!(
        of("state"),
        Some(json!({"key": "state", "value": "off", "from": "override"}))
    );
    assert_eq!(
        of("fleet"),
        Some(json!({"key": "fleet", "value": "***", "from": "override"}))
    );
}
