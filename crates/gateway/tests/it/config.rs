//! The configuration: what is told of mistakes, what wins, what stays secret, and that every key can be written.

use std::net::SocketAddr;
use std::path::Path;

use fuseline_gateway::config::{
    self, Config, Credential, Finding, LogFormat, Overrides, Report, Severity, Sources,
};
use secrecy::ExposeSecret as _;

use crate::tls::certified;

/// Appended to each case of `mistakes.txt`, so that a case holds only what it is about.
const BASE: &str = r#"[providers]
a = { protocol = "openai", base_url = "http://127.0.0.1:9/v1", auth = "caller" }
b = { protocol = "openai", base_url = "http://127.0.0.1:9/v1", auth = "caller" }
c = { protocol = "anthropic", base_url = "http://127.0.0.1:9", auth = "caller" }
g = { protocol = "gemini", base_url = "http://127.0.0.1:9", auth = "caller" }
[[routes]]
model = "base"
targets = [{ provider = "a" }]
"#;

fn env(name: &str) -> Option<String> {
    match name {
        "EMPTY" => Some(String::new()),
        "KEY" => Some("sk-canary-env".to_owned()),
        _ => None,
    }
}

fn load_with(text: &str, overrides: &Overrides) -> Report {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("fuseline.toml");
    std::fs::write(&file, text).unwrap();
    std::fs::write(folder.path().join("key.txt"), "sk-canary-file\n").unwrap();
    let (own, other) = (certified(), certified());
    for (name, pem) in [
        ("ca.pem", own.cert.pem()),
        ("ca-key.pem", own.signing_key.serialize_pem()),
        ("other.pem", other.signing_key.serialize_pem()),
    ] {
        std::fs::write(folder.path().join(name), pem).unwrap();
    }
    Sources {
        file: Some(&file),
        overrides,
        env: &env,
    }
    .load()
}

pub(crate) fn load(text: &str) -> Report {
    load_with(text, &Overrides::default())
}

pub(crate) fn good(text: &str) -> Config {
    let report = load(text);
    report
        .config
        .unwrap_or_else(|| panic!("refused: {:#?}", report.findings))
}

/// The findings of one severity, as told, without the temporary folder's name.
fn told(report: &Report, severity: Severity) -> Vec<String> {
    let told = |finding: &Finding| {
        let mut finding = finding.clone();
        finding.file = finding.file.map(|_| "fuseline.toml".to_owned());
        finding.to_string()
    };
    report
        .findings
        .iter()
        .filter(|finding| finding.severity == severity)
        .map(told)
        .collect()
}

fn mistakes(text: &str) -> Vec<String> {
    let report = load(text);
    let mistakes = told(&report, Severity::Mistake);
    assert_eq!(report.config.is_none(), !mistakes.is_empty());
    mistakes
}

pub(crate) fn notes(text: &str) -> Vec<String> {
    told(&load(text), Severity::Note)
}

#[test]
fn every_mistake_is_told_in_these_words() {
    let mut wrong = String::new();
    let cases = include_str!("mistakes.txt").split("==== ").skip(1);
    for case in cases {
        let (_, case) = case.split_once('\n').unwrap();
        let (text, expected) = case.split_once("----\n").unwrap();
        let expected: Vec<String> = expected
            .lines()
            .map(|line| format!("fuseline.toml:{line}"))
            .collect();
        let found = mistakes(&format!("{text}{BASE}"));
        if found != expected || found.is_empty() {
            wrong += &format!("{text}\nexpected {expected:#?}\nfound {found:#?}\n\n");
        }
        assert!(!format!("{found:?}").contains("canary-"), "{found:?}");
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn all_mistakes_are_told_at_once_in_the_order_of_the_file_and_the_same_each_time() {
    let text = r#"
listen = "nowhere"
drain = 5
oops = true

[providers.main]
protocol = "openai"
base_url = "htp://h/v1"
api_key = { env = "GONE" }

[[routes]]
model = "a["
targets = [{ provider = "mian" }, { provider = "main" }]
retries = "x"

[breaker]
probes = 0
trip = [{ rule = "rate", threshold = 2, window = "60s", min_calls = 1 }]
"#;
    let expected = [
        r#"fuseline.toml:2: listen = "nowhere": is no address to listen on; write an IP address with a port such as "127.0.0.1:8080" or "[::1]:8080""#,
        r#"fuseline.toml:3: drain = 5: is a whole number; write a duration such as "30s", "2m" or "500ms""#,
        r#"fuseline.toml:4: oops: unknown key; the keys here are listen, admin_listen, admin_token, state, fleet, fleet_prefix, log, log_format, client_tokens, ca_file, max_body, replay_limit, replay_memory, max_breakers, drain_delay, drain, cancel_counts_after, listener, pool, timeouts, heartbeats, otlp, webhooks, cache, queue, breaker, providers, routes, models, classify, allow_anonymous"#,
        r#"fuseline.toml:8: providers.main.base_url = "htp://h/v1": begins with neither http:// nor https://; write a URL such as "https://api.openai.com/v1""#,
        r#"fuseline.toml:9: providers.main.api_key.env = "GONE": is not set in the environment; set the variable, or correct its name"#,
        r#"fuseline.toml:12: routes[0].model = "a[": is no glob; write a model name or a glob such as "gpt-*""#,
        r#"fuseline.toml:13: routes[0].targets[0].provider = "mian": no such provider; did you mean "main"?"#,
        r#"fuseline.toml:14: routes[0].retries = "x": is a text; write a whole number"#,
        r#"fuseline.toml:17: breaker.probes = 0: is out of range; write 1 to 64"#,
        r#"fuseline.toml:18: breaker.trip[0].threshold = 2: is out of range; write 0.0001 to 1"#,
    ];
    for _ in 0..3 {
        assert_eq!(mistakes(text), expected);
    }
}

#[test]
fn a_missing_file_and_missing_routes_are_told() {
    let overrides = Overrides::default();
    let file = Path::new("no/such/fuseline.toml");
    let report = Sources {
        file: Some(file),
        overrides: &overrides,
        env: &env,
    }
    .load();
    let expected = "no/such/fuseline.toml: cannot be read: No such file or directory (os error 2); \
                    give the path of a readable file with --config";
    assert_eq!(
        report
            .findings
            .iter()
            .map(Finding::to_string)
            .collect::<Vec<_>>(),
        [expected]
    );
    assert!(report.config.is_none());

    let found = mistakes(
        "[providers.a]\nprotocol = \"openai\"\nbase_url = \"http://h\"\nauth = \"caller\"\n",
    );
    let expected = "fuseline.toml: routes: is missing; write [[routes]] with model = \"*\" and targets; \
                    without providers and routes, known ones are passed through";
    assert_eq!(found, [expected]);
    assert_eq!(
        mistakes("routes = \"a\"\n"),
        ["fuseline.toml:1: routes = \"a\": is a text; write a list of tables"]
    );
    assert_eq!(
        mistakes("providers = 5\n")[0],
        "fuseline.toml:1: providers: is a whole number; write a table"
    );
    let found = mistakes("[[routes]]\nmodel = \"*\"\ntargets = [{ provider = \"x\" }]\n");
    let expected = "fuseline.toml:3: routes[0].targets[0].provider = \"x\": no such provider; write a section [providers.x]";
    assert_eq!(found, [expected]);
}

#[test]
fn what_is_allowed_and_worth_knowing_is_noted() {
    let note = |line, name| {
        format!("fuseline.toml:{line}: note: providers.{name}: no route names this provider")
    };
    assert_eq!(notes(BASE), [note(3, "b"), note(4, "c"), note(5, "g")]);
    let unused = "fuseline.toml:9: note: cache: no route's on_exhausted names \"cache\"";
    let found = notes(&format!("{BASE}[cache]\nttl = \"1m\"\n"));
    assert!(found.contains(&unused.to_owned()), "{found:#?}");
}

#[test]
fn what_on_exhausted_needs_is_told_and_what_is_so_anyway_needs_no_note() {
    let routes = |key: &str, more: &str| {
        format!(
            "[providers.a]\nprotocol = \"openai\"\nbase_url = \"http://h\"\n{key}\n\
             [[routes]]\nmodel = \"x\"\ntargets = [{{ provider = \"a\" }}]\n{more}\
             [[routes]]\nmodel = \"y\"\ntargets = [{{ provider = \"a\" }}]\n{more}"
        )
    };
    let (own, callers) = ("api_key = \"k\"", "auth = \"caller\"");
    let queue = "on_exhausted = [\"wait\", \"queue\"]\n";
    for more in [
        "",
        queue,
        "on_exhausted = [\"wait\", \"cache\", \"a/small\"]\n",
    ] {
        assert_eq!(notes(&routes(own, more)), [""; 0]);
    }
    let fleet = format!(
        "fleet = \"redis://h\"\nstate = \"off\"\n{}",
        routes(own, queue)
    );
    assert_eq!(notes(&fleet), [""; 0]);
    let homeless = format!("state = \"off\"\n{}", routes(own, queue));
    assert_eq!(
        mistakes(&homeless)[0],
        "fuseline.toml:9: routes[0].on_exhausted[1] = \"queue\": has no place where calls could wait; set state to a file, or fleet"
    );
    assert_eq!(
        mistakes(&routes(callers, queue))[1],
        "fuseline.toml:12: routes[1].on_exhausted[1] = \"queue\": has no key by which calls could be sent later; give one of the route's providers an api_key; a caller's own key is never stored"
    );
    let unused = notes(&format!("{}[queue]\nttl = \"1h\"\n", routes(own, "")));
    assert_eq!(
        unused,
        ["fuseline.toml:11: note: queue: no route's on_exhausted names \"queue\""]
    );
}

#[test]
fn versions_and_slashes_in_a_base_url_are_the_operators_choice() {
    for base_url in [
        "http://h",
        "http://h/",
        "http://h/v1",
        "http://h/v1/",
        "http://h/v4",
        "http://h/o/d/x?api-version=1",
    ] {
        for protocol in ["openai", "anthropic", "gemini"] {
            let text = format!(
                "[providers.a]\nprotocol = {protocol:?}\nbase_url = {base_url:?}\nauth = \"caller\"\n\
                 [[routes]]\nmodel = \"*\"\ntargets = [{{ provider = \"a\" }}]\n"
            );
            let config = good(&text);
            assert_eq!(
                config.providers["a"]
                    .base_url
                    .uri()
                    .to_string()
                    .trim_end_matches('/'),
                base_url.trim_end_matches('/')
            );
        }
    }
}

#[test]
fn secrets_are_found_and_never_shown() {
    let text = r#"
client_tokens = ["sk-canary-token", { env = "KEY" }]
admin_token = { file = "key.txt" }
fleet = "redis://:sk-canary-fleet@127.0.0.1:6379"
[providers.a]
protocol = "openai"
base_url = "http://h/v1?key=sk-canary-query"
api_key = ["sk-canary-text", { env = "KEY" }, { file = "key.txt" }]
[[routes]]
model = "*"
targets = [{ provider = "a" }]
"#;
    let config = good(text);
    let Credential::Keys(keys) = &config.providers["a"].credential else {
        panic!("no keys")
    };
    let keys: Vec<&str> = keys.iter().map(|key| key.expose_secret()).collect();
    assert_eq!(keys, ["sk-canary-text", "sk-canary-env", "sk-canary-file"]);
    let tokens: Vec<&str> = config
        .client_tokens
        .iter()
        .map(|key| key.expose_secret())
        .collect();
    assert_eq!(tokens, ["sk-canary-token", "sk-canary-env"]);
    assert_eq!(
        config.admin_token.as_ref().unwrap().expose_secret(),
        "sk-canary-file"
    );
    assert_eq!(config.providers["a"].base_url.to_string(), "http://h/v1");
    let shown = format!("{config:?} {config:#?} {:?}", load(text).findings);
    assert!(!shown.contains("canary"), "{shown}");
    let overrides = Overrides {
        fleet: Some("redis://:sk-canary@h".into()),
        ..Overrides::default()
    };
    assert!(!format!("{overrides:?}").contains("canary"));
}

#[test]
fn flags_and_environment_beat_the_file_and_are_checked_like_it() {
    let text = format!(
        "listen = \"127.0.0.1:1\"\nadmin_listen = \"127.0.0.1:2\"\nstate = \"a.db\"\nlog = \"warn\"\n{BASE}"
    );
    let config = good(&text);
    assert_eq!(config.listen, SocketAddr::from(([127, 0, 0, 1], 1)));
    let mut overrides = Overrides {
        listen: Some("127.0.0.1:3".parse().unwrap()),
        admin_listen: Some("[::1]:4".parse().unwrap()),
        state: Some("off".to_owned()),
        fleet: Some("rediss://h".into()),
        log: Some("debug".parse().unwrap()),
        log_format: Some(LogFormat::Json),
        ..Overrides::default()
    };
    let config = load_with(&text, &overrides).config.unwrap();
    assert_eq!(
        (config.listen, config.admin_listen),
        (overrides.listen.unwrap(), overrides.admin_listen.unwrap())
    );
    assert_eq!((config.state, config.log), (None, overrides.log.unwrap()));
    assert_eq!(config.fleet.unwrap().expose_secret(), "rediss://h");

    overrides.listen = Some("0.0.0.0:80".parse().unwrap());
    overrides.admin_listen = Some("0.0.0.0:81".parse().unwrap());
    let expected = [
        "--listen = \"0.0.0.0:80\": can be reached by others without a token; \
         set client_tokens, or allow_anonymous = true, or listen on 127.0.0.1",
        "--admin-listen = \"0.0.0.0:81\": can be reached by others without a token; \
         set admin_token, or listen on 127.0.0.1",
    ];
    assert_eq!(
        told(&load_with(&text, &overrides), Severity::Mistake),
        expected
    );
    let open = format!("allow_anonymous = true\nadmin_token = \"t\"\n{text}");
    assert_eq!(
        told(&load_with(&open, &overrides), Severity::Mistake),
        [""; 0]
    );
    let asked = format!("client_tokens = \"c\"\nadmin_token = \"t\"\n{text}");
    assert_eq!(
        told(&load_with(&asked, &overrides), Severity::Mistake),
        [""; 0]
    );
}

#[test]
fn without_a_file_known_providers_are_passed_through() {
    let overrides = Overrides::default();
    let report = Sources {
        file: None,
        overrides: &overrides,
        env: &|_| None,
    }
    .load();
    assert!(report.findings.is_empty());
    let config = report.config.unwrap();
    assert!(config.pass_through && config.routes.is_empty());
    let urls = |(name, provider): (&String, &config::Provider)| {
        assert!(matches!(provider.credential, Credential::Caller));
        format!(
            "{name} {} {}",
            provider.protocol.as_str(),
            provider.base_url
        )
    };
    let expected = [
        "anthropic anthropic https://api.anthropic.com/",
        "deepseek openai https://api.deepseek.com/v1",
        "gemini gemini https://generativelanguage.googleapis.com/",
        "groq openai https://api.groq.com/openai/v1",
        "mistral openai https://api.mistral.ai/v1",
        "openai openai https://api.openai.com/v1",
        "openrouter openai https://openrouter.ai/api/v1",
        "together openai https://api.together.xyz/v1",
        "xai openai https://api.x.ai/v1",
    ];
    assert_eq!(
        config.providers.iter().map(urls).collect::<Vec<_>>(),
        expected
    );
    assert_eq!(config.listen, SocketAddr::from(([127, 0, 0, 1], 8080)));
    assert_eq!(
        config.admin_listen,
        SocketAddr::from(([127, 0, 0, 1], 8081))
    );

    let config = good("[breaker]\nprobes = 2\n");
    assert!(
        config.pass_through,
        "a file without providers and routes tunes the pass-through"
    );
    assert_eq!(config.policy("openai", None).probes(), 2);
}

#[test]
fn the_reference_page_is_what_the_keys_say() {
    let page = include_str!("../../../../docs/reference/configuration.md");
    assert!(
        page == config::reference_page(),
        "docs/reference/configuration.md is not current; \
         run `cargo run -p fuseline-gateway -- config --reference > docs/reference/configuration.md`"
    );
    for key in config::keys() {
        let (_, name) = key.key.rsplit_once('.').unwrap_or(("", &key.key));
        assert!(page.contains(&format!("| `{name}` |")), "{}", key.key);
    }
}
