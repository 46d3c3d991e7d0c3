//! The program: what it prints, and its exit codes.

use std::io::{BufRead as _, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::support::signal;

/// Runs `fuseline` in a folder of its own, with nothing in its environment but what is given.
fn fuseline(folder: &Path, args: &[&str], env: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fuseline"));
    command
        .current_dir(folder)
        .env_clear()
        .envs(env.iter().copied())
        .args(args);
    command.output().unwrap()
}

fn in_folder(file: &str, args: &[&str], env: &[(&str, &str)]) -> (Option<i32>, String, String) {
    let folder = tempfile::tempdir().unwrap();
    if !file.is_empty() {
        std::fs::write(folder.path().join("fuseline.toml"), file).unwrap();
    }
    let output = fuseline(folder.path(), args, env);
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}

const GOOD: &str = r#"log = "info"
[providers.a]
protocol = "openai"
base_url = "http://127.0.0.1:9/v1"
api_key = { env = "A_KEY" }
[[routes]]
model = "*"
targets = [{ provider = "a" }]
[cache]
"#;

#[test]
fn check_tells_mistakes_and_notes_and_exits_with_1_only_for_mistakes() {
    let (code, out, err) = in_folder(GOOD, &["check"], &[("A_KEY", "sk-canary")]);
    assert_eq!(
        out,
        "fuseline.toml:9: note: cache: no route's on_exhausted names \"cache\"\nfuseline.toml: no mistakes\n"
    );
    assert_eq!((code, err.as_str()), (Some(0), ""));
    let (code, out, _) = in_folder(GOOD, &["check"], &[]);
    let expected = "fuseline.toml:5: providers.a.api_key.env = \"A_KEY\": is not set in the environment; \
                    set the variable, or correct its name\n\
                    fuseline.toml:9: note: cache: no route's on_exhausted names \"cache\"\n\
                    fuseline.toml: 1 mistake\n";
    assert_eq!((code, out.as_str()), (Some(1), expected));
    let (code, out, _) = in_folder("", &["check"], &[]);
    assert_eq!((code, out.as_str()), (Some(0), "no file: no mistakes\n"));
    let (code, out, _) = in_folder(
        "a = 1\nb = 2\n",
        &["check", "--config", "fuseline.toml"],
        &[],
    );
    assert_eq!(
        (code, out.lines().last()),
        (Some(1), Some("fuseline.toml: 2 mistakes"))
    );
    let (code, out, _) = in_folder("", &["check", "-c", "gone.toml"], &[]);
    assert_eq!(code, Some(1));
    assert!(
        out.starts_with("gone.toml: cannot be read: No such file"),
        "{out}"
    );
}

#[test]
fn check_in_json_holds_the_same() {
    let (code, out, _) = in_folder(GOOD, &["check", "--json"], &[]);
    let found: serde_json::Value = serde_json::from_str(&out).unwrap();
    let expected = serde_json::json!({
        "ok": false,
        "findings": [
            {
                "severity": "mistake",
                "file": "fuseline.toml",
                "line": 5,
                "key": "providers.a.api_key.env",
                "value": "\"A_KEY\"",
                "problem": "is not set in the environment",
                "remedy": "set the variable, or correct its name",
            },
            {
                "severity": "note",
                "file": "fuseline.toml",
                "line": 9,
                "key": "cache",
                "value": null,
                "problem": "no route's on_exhausted names \"cache\"",
                "remedy": null,
            },
        ],
    });
    assert_eq!((code, found), (Some(1), expected));
}

#[test]
fn wrong_usage_exits_with_2_and_repeats_no_secret() {
    for args in [
        &["chekc"][..],
        &["check", "--nope"],
        &["check", "--listen", "nowhere"],
        &["config"],
        &[],
    ] {
        let (code, out, err) = in_folder("", args, &[]);
        assert_eq!((code, out.as_str()), (Some(2), ""), "{args:?}");
        assert!(!err.is_empty());
    }
    let (code, _, err) = in_folder("", &["check"], &[("FUSELINE_LISTEN", "nowhere")]);
    assert_eq!(code, Some(2));
    assert!(err.contains("nowhere") && err.contains("--listen"), "{err}");
    let env = [("FUSELINE_FLEET", "redis://:sk-canary@h")];
    let (code, out, err) = in_folder("", &["serve", "--help"], &env);
    assert_eq!(code, Some(0));
    assert!(!out.contains("canary") && err.is_empty());
}

#[test]
fn flags_beat_the_environment_which_beats_the_file() {
    let file = format!("listen = \"0.0.0.0:1\"\n{GOOD}");
    let key = ("A_KEY", "k");
    let told = |args: &[&str], env: &[(&str, &str)]| in_folder(&file, args, env).1;
    assert!(
        told(&["check"], &[key])
            .starts_with("fuseline.toml:1: listen = \"0.0.0.0:1\": can be reached")
    );
    let of_env = told(&["check"], &[key, ("FUSELINE_LISTEN", "0.0.0.0:2")]);
    assert!(
        of_env.contains("--listen = \"0.0.0.0:2\": can be reached"),
        "{of_env}"
    );
    let both = told(
        &["check", "--listen", "127.0.0.1:3"],
        &[key, ("FUSELINE_LISTEN", "0.0.0.0:2")],
    );
    assert!(both.ends_with("no mistakes\n"), "{both}");
    let named = [
        key,
        ("FUSELINE_CONFIG", "fuseline.toml"),
        ("FUSELINE_LISTEN", "127.0.0.1:3"),
    ];
    assert!(told(&["check"], &named).ends_with("no mistakes\n"));
}

#[test]
fn serve_refuses_what_check_refuses() {
    let (code, out, err) = in_folder("oops = 1\n", &["serve"], &[]);
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(
        err.starts_with("fuseline.toml:1: oops: unknown key; the keys here are listen"),
        "{err}"
    );
}

#[test]
fn the_defaults_are_shown_as_a_file_and_as_json() {
    let (code, out, _) = in_folder("", &["config", "--defaults"], &[]);
    assert_eq!(code, Some(0));
    assert!(
        out.contains("\n[breaker]\n") && out.contains("\ncooldown = \"15s\"\n"),
        "{out}"
    );
    let (code, checked, _) = in_folder(&out, &["check"], &[]);
    assert_eq!(code, Some(0), "{checked}");
    let (_, out, _) = in_folder("", &["config", "--defaults", "--json"], &[]);
    let keys: serde_json::Value = serde_json::from_str(&out).unwrap();
    let listen = keys
        .as_array()
        .unwrap()
        .iter()
        .find(|key| key["key"] == "listen")
        .unwrap();
    assert_eq!(listen["default"], "\"127.0.0.1:8080\"");
}

#[test]
fn the_version_is_told() {
    let (code, out, _) = in_folder("", &["--version"], &[]);
    assert_eq!(
        (code, out),
        (Some(0), format!("fuseline {}\n", env!("CARGO_PKG_VERSION")))
    );
}

/// A `fuseline serve` on free ports, killed when dropped.
struct Serving {
    child: std::process::Child,
    lines: std::io::Lines<std::io::BufReader<std::process::ChildStdout>>,
    _folder: tempfile::TempDir,
}

impl Serving {
    fn start(file: &str, env: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("fuseline.toml"), file).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_fuseline"));
        command
            .current_dir(folder.path())
            .env_clear()
            .envs(env.iter().copied());
        command.args([
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--admin-listen",
            "127.0.0.1:0",
        ]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = std::io::BufReader::new(child.stdout.take().unwrap()).lines();
        Self {
            child,
            lines,
            _folder: folder,
        }
    }

    /// The next line of the log.
    fn line(&mut self) -> serde_json::Value {
        serde_json::from_str(&self.lines.next().unwrap().unwrap()).unwrap()
    }

    fn signal(&self, name: &str) {
        signal(self.child.id(), name);
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[test]
fn serve_names_what_has_no_effect_yet_serves_and_stops_on_a_signal() {
    for signal in ["INT", "TERM"] {
        let mut serving = Serving::start(GOOD, &[("A_KEY", "sk-canary")]);
        let note = serving.line();
        assert_eq!(
            note["message"],
            "fuseline.toml:9: note: cache: no route's on_exhausted names \"cache\""
        );
        let started = serving.line();
        assert_eq!(started["message"], "serving");
        let mut caller = TcpStream::connect(started["listen"].as_str().unwrap()).unwrap();
        caller
            .write_all(b"GET / HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n")
            .unwrap();
        let mut answer = String::new();
        caller.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        serving.signal(signal);
        assert_eq!(serving.child.wait().unwrap().code(), Some(0));
        let rest: Vec<String> = serving.lines.by_ref().map(Result::unwrap).collect();
        assert!(
            rest.iter().any(|line| line.contains("\"drained\"")),
            "{rest:?}"
        );
        assert!(!rest.concat().contains("canary"));
    }
}

#[test]
fn a_second_signal_stops_at_once() {
    let mut serving = Serving::start(&format!("drain = \"1h\"\n{GOOD}"), &[("A_KEY", "k")]);
    serving.line();
    let started = serving.line();
    // A request without an end keeps its connection busy; the interim answer shows that it is being read.
    let mut caller = TcpStream::connect(started["listen"].as_str().unwrap()).unwrap();
    let head = "POST /v1/chat/completions HTTP/1.1\r\nhost: h\r\nexpect: 100-continue\r\ncontent-length: 9\r\n\r\n";
    caller.write_all(head.as_bytes()).unwrap();
    let mut interim = [0; 12];
    caller.read_exact(&mut interim).unwrap();
    assert_eq!(&interim, b"HTTP/1.1 100");
    serving.signal("INT");
    while serving.line()["message"] != "draining" {}
    serving.signal("INT");
    assert_eq!(serving.child.wait().unwrap().code(), Some(0));
    let rest: Vec<String> = serving.lines.by_ref().map(Result::unwrap).collect();
    assert!(
        rest.iter()
            .any(|line| line.contains("stopped before the drain was over")),
        "{rest:?}"
    );
}

#[test]
fn an_address_in_use_is_told() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let (code, _, err) = in_folder(GOOD, &["serve", "--listen", &address], &[("A_KEY", "k")]);
    assert_eq!(code, Some(1));
    assert!(
        err.starts_with(&format!("fuseline: listen = \"{address}\": ")),
        "{err}"
    );
}
