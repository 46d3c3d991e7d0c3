//! `fuseline drill`: an incident against somebody's own configuration.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// Keys that nobody has, addresses that nobody may call, and a state file that nobody may touch.
const CONFIG: &str = r#"
listen = "127.0.0.1:1"
client_tokens = [{ env = "NOBODY_SET_THIS" }]
state = "drilled.db"

[providers.primary]
protocol = "openai"
base_url = "https://api.primary.example/v1"
api_key = { env = "NOBODY_SET_THIS" }

[providers.spare]
protocol = "openai"
base_url = "https://api.spare.example/v1"
api_key = { env = "NOBODY_SET_THIS" }

[[routes]]
model = "*"
targets = [{ provider = "primary" }, { provider = "spare", model = "small" }]
retries = 0

[breaker]
trip = [{ rule = "consecutive", failures = 3 }]
cooldown = "300ms"
"#;

const OUTAGE: &str = r#"
[[phases]]
after = "0s"

[[phases]]
after = "300ms"
replies = [{ status = 503 }]

[[phases]]
after = "1200ms"
"#;

fn drill(config: &str, args: &[&str]) -> (Output, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("fuseline.toml"), config).unwrap();
    std::fs::write(folder.path().join("outage.toml"), OUTAGE).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_fuseline"));
    let output = command
        .current_dir(&folder)
        .env_clear()
        .arg("drill")
        .args(args)
        .output()
        .unwrap();
    (output, folder)
}

fn exists(folder: &tempfile::TempDir, name: &str) -> bool {
    Path::new(&folder.path().join(name)).exists()
}

#[test]
fn an_outage_with_a_spare_is_passed_and_nothing_real_is_touched() {
    let script = "primary=outage.toml";
    let args = [
        "--script",
        script,
        "--rate",
        "40",
        "--json",
        "--html",
        "drill.html",
    ];
    let (output, folder) = drill(CONFIG, &args);
    let told = String::from_utf8_lossy(&output.stderr);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{told}"));
    assert_eq!(report["ok"], true, "{report}");
    assert_eq!(output.status.code(), Some(0));
    let totals = &report["totals"];
    let count = |key: &str| totals[key].as_u64().unwrap();
    assert_eq!(
        count("first") + count("fallback"),
        count("calls"),
        "{totals}"
    );
    assert!(count("fallback") > 20 && count("first") > 20, "{totals}");
    assert_eq!(
        count("calls"),
        report["calls"].as_array().unwrap().len() as u64
    );
    // Three failures and a probe now and then, of some 36 calls.
    let reached = report["reached"]["primary"].as_u64().unwrap();
    assert!((3..20).contains(&reached), "{reached}");
    let circuit = &report["circuits"][0];
    assert_eq!(circuit["breaker"], "primary/drill");
    assert_eq!(circuit["opened"], 1, "{circuit}");
    assert!(circuit["recovered_ms"].is_u64() && circuit["detected_ms"].is_u64());
    let why = circuit["changes"][1]["why"].as_str().unwrap();
    assert!(why.starts_with("consecutive 3/3"), "{why}");

    assert!(!exists(&folder, "drilled.db"));
    let page = std::fs::read_to_string(folder.path().join("drill.html")).unwrap();
    assert!(page.contains("Drill passed: primary in trouble"));
    assert_eq!(page.matches("<circle").count() as u64, count("calls"));
    assert!(!page.contains("<script") && !page.contains("https://"));
}

#[test]
fn without_a_spare_it_fails_and_says_what_callers_got() {
    let alone = CONFIG.replace(", { provider = \"spare\", model = \"small\" }", "");
    let (output, _folder) = drill(&alone, &["--script", "primary=outage.toml", "--rate", "20"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("FAIL every call was answered"), "{text}");
    assert!(
        text.contains("ok   every circuit that opened closed again (1 of 1)"),
        "{text}"
    );
    assert!(
        text.contains("closed -> open") || text.contains("degraded -> open"),
        "{text}"
    );
}

#[test]
fn what_cannot_be_drilled_is_told_with_the_remedy() {
    let gemini = CONFIG.replace("protocol = \"openai\"", "protocol = \"gemini\"");
    let cases: [(&str, &[&str], &str); 5] = [
        (
            CONFIG,
            &["--provider", "primray"],
            "there is no provider \"primray\"; there are primary, spare",
        ),
        (CONFIG, &["--script", "primary"], "must be PROVIDER=FILE"),
        (CONFIG, &["--script", "primary=gone.toml"], "gone.toml"),
        (CONFIG, &["--for", "0s"], "--for is 0ns, must be above 0"),
        (&gemini, &[], "drill a route of openai or anthropic"),
    ];
    for (config, args, told) in cases {
        let (output, _folder) = drill(config, args);
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(error.contains(told), "{args:?}: {error}");
        assert_ne!(output.status.code(), Some(0));
    }
    let (output, _folder) = drill("", &[]);
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(
        error.contains("a drill needs a configuration with routes"),
        "{error}"
    );
}

#[test]
fn the_guides_commands_are_understood_and_its_table_is_read() {
    let guide = include_str!("../../../../docs/guide/rehearsing.md");
    let folder = tempfile::tempdir().unwrap();
    for script in ["outage.toml", "slow.toml"] {
        std::fs::write(folder.path().join(script), OUTAGE).unwrap();
    }
    let blocks: Vec<_> = guide.split("\n```").skip(1).step_by(2).collect();
    let lines = blocks.iter().filter_map(|block| block.strip_prefix("sh\n"));
    let commands = lines.flat_map(str::lines).map(|line| {
        let (_, command) = line.rsplit_once("fuseline ").unwrap();
        command.split('#').next().unwrap().trim()
    });
    let mut understood = 0;
    for command in commands {
        let mut fuseline = Command::new(env!("CARGO_BIN_EXE_fuseline"));
        let args = command.split(' ');
        // Told apart from wrong usage, which comes first.
        let output = fuseline
            .current_dir(&folder)
            .args(args)
            .arg("--help")
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{command}: {output:?}");
        understood += 1;
    }
    assert_eq!(understood, 8);

    let table = blocks
        .iter()
        .find_map(|block| block.strip_prefix("csv\n"))
        .unwrap();
    std::fs::write(folder.path().join("calls.csv"), table).unwrap();
    let mut fuseline = Command::new(env!("CARGO_BIN_EXE_fuseline"));
    let output = fuseline
        .current_dir(&folder)
        .args(["tune", "calls.csv"])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.starts_with("3 calls to 1 target(s)") && text.contains("2 failed"),
        "{text}"
    );
}
