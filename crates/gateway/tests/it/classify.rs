//! `fuseline classify`: recorded answers by the command, what people read, and hostile input.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

const RECORDED: &str = include_str!("../../../../conformance/errors.jsonl");
/// Where the request is at fault, no scope is unhealthy.
const NO_SCOPE: [&str; 4] = ["bad_request", "context_length", "content_policy", "success"];

struct Told {
    code: Option<i32>,
    out: String,
    err: String,
}

fn classify_in(folder: &Path, args: &[&str], input: &[u8]) -> Told {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fuseline"));
    command
        .current_dir(folder)
        .env_clear()
        .arg("classify")
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let output = std::thread::scope(|scope| {
        // Where the program does not want it all, writing ends early.
        scope.spawn(move || drop(stdin.write_all(input)));
        child.wait_with_output().unwrap()
    });
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Told {
        code: output.status.code(),
        out: text(output.stdout),
        err: text(output.stderr),
    }
}

fn classify(args: &[&str], input: impl AsRef<[u8]>) -> Told {
    let folder = tempfile::tempdir().unwrap();
    classify_in(folder.path(), args, input.as_ref())
}

fn json_of(args: &[&str], input: impl AsRef<[u8]>) -> Value {
    let told = classify(&[args, &["--json"]].concat(), input);
    assert_eq!(
        (told.code, told.err.as_str()),
        (Some(0), ""),
        "{}",
        told.out
    );
    serde_json::from_str(&told.out).unwrap()
}

fn mistakes(case: &Value, verdict: &Value) -> Vec<String> {
    let (expect, alt) = (&case["expect"], &case["alt"]);
    let fields = ["kind", "provider_fault", "retryable", "scope"];
    let mut wrong = Vec::new();
    for field in fields {
        let others = alt[field]
            .as_array()
            .is_some_and(|list| list.contains(&verdict[field]));
        let needless = field == "scope" && NO_SCOPE.contains(&verdict["kind"].as_str().unwrap());
        if verdict[field] != expect[field] && !others && !needless {
            wrong.push(format!(
                "{field}: {}, not {}",
                verdict[field], expect[field]
            ));
        }
    }
    let tolerance = case["retry_after_tolerance_ms"].as_u64().unwrap_or(1);
    let (got, want) = (&verdict["retry_after_ms"], &expect["retry_after_ms"]);
    let is_near = match (got.as_u64(), want.as_u64()) {
        (Some(got), Some(want)) => got.abs_diff(want) <= tolerance,
        _ => got == want,
    };
    let others = alt["retry_after_ms"]
        .as_array()
        .is_some_and(|list| list.contains(got));
    if !is_near && !others {
        wrong.push(format!("retry_after_ms: {got}, not {want}"));
    }
    wrong
}

#[test]
fn every_recorded_answer_is_judged_right() {
    let told = classify(&["--jsonl"], RECORDED);
    assert_eq!((told.code, told.err.as_str()), (Some(0), ""));
    let cases: Vec<Value> = RECORDED
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!((cases.len(), told.out.lines().count()), (333, 333));
    let mut wrong = Vec::new();
    for (case, line) in cases.iter().zip(told.out.lines()) {
        let verdict: Value = serde_json::from_str(line).unwrap();
        let keys: Vec<_> = verdict.as_object().unwrap().keys().cloned().collect();
        let expected = [
            "evidence",
            "id",
            "kind",
            "provider_fault",
            "retry_after_ms",
            "retryable",
            "scope",
        ];
        assert_eq!(keys, expected, "{line}");
        assert_eq!(verdict["id"], case["id"]);
        assert!(!verdict["evidence"].as_str().unwrap().is_empty(), "{line}");
        for mistake in mistakes(case, &verdict) {
            wrong.push(format!("{}: {mistake}", case["id"]));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn expectations_and_other_keys_change_nothing() {
    let bare: String = RECORDED
        .lines()
        .map(|line| {
            let mut case: Value = serde_json::from_str(line).unwrap();
            let keys = case.as_object_mut().unwrap();
            keys.retain(|key, _| !["expect", "alt", "note", "tags"].contains(&key.as_str()));
            keys.insert("extra".to_owned(), json!([{"kind": "auth"}]));
            format!("{case}\n")
        })
        .collect();
    assert_eq!(
        classify(&["--jsonl"], bare).out,
        classify(&["--jsonl"], RECORDED).out
    );
}

#[test]
fn people_read_the_verdict_its_evidence_and_what_follows() {
    let spent = r#"{"error": {"code": "insufficient_quota", "message": "sk-canary"}}"#;
    let page = "<html>502 Bad Gateway</html>";
    let cases: [(&[&str], &str, &str); 6] = [
        (
            &["--provider", "openai", "--status", "429"],
            spent,
            "kind            quota_exhausted
evidence        rule common/spent-quota: code insufficient_quota, status 429
provider fault  no
retryable       no
wait hint       none
scope           key
breakers        that of the key opens at once, for 10m
the call        goes to the next target
",
        ),
        (
            &["--status", "429", "-H", "retry-after: 20"],
            "",
            "kind            rate_limit
evidence        status 429
provider fault  no
retryable       yes
wait hint       20s (header retry-after)
scope           key
breakers        count nothing
the call        waits as the hint says and asks again; then goes to the next target
",
        ),
        (
            &[
                "--status",
                "429",
                "-H",
                "Retry-After:Mon, 30 Nov 2026 12:30:00 GMT",
                "--now",
                "2026-11-30T12:00:00Z",
            ],
            "",
            "kind            rate_limit
evidence        status 429
provider fault  no
retryable       yes
wait hint       30m (header retry-after)
scope           key
breakers        that of the key opens at once, until the hint (30m) is over, or `max_retry_after`
the call        goes to the next target
",
        ),
        (
            &["--status", "502"],
            page,
            "kind            server_error
evidence        status 502
provider fault  yes
retryable       yes
wait hint       none
scope           provider
breakers        that of the model counts a failure
the call        asks again after a short pause; then goes to the next target
",
        ),
        (
            &["--transport", "dns_failure"],
            "",
            "kind            network
evidence        dns
provider fault  yes
retryable       yes
wait hint       none
scope           provider
breakers        that of the provider counts a failure
the call        asks again at once; then goes to the next target
",
        ),
        (
            &["--status", "200", "--provider", "OpenAI"],
            r#"{"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}]}"#,
            "kind            success
evidence        complete
provider fault  no
retryable       no
wait hint       none
scope           model
breakers        count a success
the call        gets the answer
",
        ),
    ];
    for (args, body, expected) in cases {
        let told = classify(args, body);
        assert_eq!(told.out, expected, "{args:?}");
        assert_eq!((told.code, told.err.as_str()), (Some(0), ""));
    }
}

#[test]
fn machines_read_one_object() {
    let verdict = json_of(&["--status", "429", "-H", "retry-after-ms: 1500"], "");
    let expected = json!({
        "kind": "rate_limit",
        "provider_fault": false,
        "retryable": true,
        "retry_after_ms": 1500,
        "scope": "key",
        "evidence": "status 429",
        "hint_source": "header retry-after-ms",
    });
    assert_eq!(verdict, expected);
}

#[test]
fn a_stream_is_judged_at_its_end() {
    let content = r#"{"choices": [{"delta": {"content": "Hi"}}]}"#;
    let error = r#"{"error": {"type": "overloaded_error"}}"#;
    let kind = |args: &[&str], body: &str| {
        let args = [&["--status", "200"], args].concat();
        json_of(&args, body)["kind"].as_str().unwrap().to_owned()
    };
    let header = ["-H", "Content-Type: text/event-stream; charset=utf-8"];
    let cut = format!("data: {content}\n\n");
    assert_eq!(kind(&header, &cut), "stream_truncated");
    assert_eq!(kind(&header, &format!("{cut}data: [DONE]\n\n")), "success");
    assert_eq!(kind(&header, &format!("{cut}data: [DONE]")), "success");
    assert_eq!(kind(&["--stream"], &cut), "stream_truncated");
    let failed = format!("{cut}event: error\ndata: {error}\n\n");
    assert_eq!(kind(&header, &failed), "overloaded");
    let stalled = [&header[..], &["--transport", "idle_timeout"]].concat();
    assert_eq!(kind(&stalled, &cut), "stream_stall");
    let array = format!("[{content}\n,{error}]");
    assert_eq!(kind(&["--stream=json-array"], &array), "overloaded");
    let lines = format!("{content}\n{error}\n");
    assert_eq!(kind(&["--stream=ndjson"], &lines), "overloaded");
    let large = format!("data: \"{}\"\n\n{cut}data: [DONE]\n\n", "x".repeat(2 << 20));
    assert_eq!(kind(&["--stream=sse"], &large), "success");
    assert_eq!(
        kind(&["--stream=aws-eventstream"], "no frame"),
        "empty_response"
    );
}

#[test]
fn other_operations_need_no_content() {
    let args = ["--status", "200"];
    assert_eq!(json_of(&args, "")["kind"], "empty_response");
    let other = ["--status", "200", "--operation", "other"];
    assert_eq!(json_of(&other, "")["kind"], "success");
}

#[test]
fn a_bad_line_is_told_and_the_others_are_judged() {
    let good = r#"{"id": 7, "status": 503, "unknown": {}}"#;
    let lines = [
        good,
        "",
        "nonsense",
        "[]",
        "null",
        r#"{"status": 70000}"#,
        r#"{"status": "sk-canary0123456789abcdef"}"#,
        r#"{"id": "no end"}"#,
        r#"{"status": 200, "stream": ["{"], "stream_format": "aws-eventstream-decoded"}"#,
        r#"{"status": 200, "stream": [], "stream_format": "xml"}"#,
        r#"{"status": 429, "now": "yesterday"}"#,
        r#"{"transport": "carrier_pigeon"}"#,
        good,
    ];
    let told = classify(&["--jsonl"], lines.join("\n"));
    assert_eq!(told.code, Some(2));
    let judged: Vec<Value> = told
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(judged.len(), 2, "{}", told.out);
    assert!(judged.iter().all(|verdict| verdict["id"] == 7));
    let numbers: Vec<_> = told
        .err
        .lines()
        .map(|line| line.split(':').nth(1).unwrap())
        .collect();
    let expected: Vec<_> = (3..=12).map(|number| format!(" line {number}")).collect();
    assert_eq!(numbers, expected, "{}", told.err);
    assert!(!told.err.contains("canary"), "{}", told.err);
}

#[test]
fn hostile_input_ends_in_a_verdict_or_a_complaint() {
    let binary: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    let large = "x".repeat(10 << 20);
    let deep = "[".repeat(1 << 20);
    for body in [&binary[..], large.as_bytes(), deep.as_bytes(), b""] {
        for args in [
            &["--status", "400"][..],
            &["--status", "200"],
            &["--status", "200", "--stream=sse"],
            &["--status", "200", "--stream=ndjson"],
            &["--status", "200", "--stream=json-array"],
            &["--status", "200", "--stream=aws-eventstream"],
        ] {
            let kind = &json_of(args, body)["kind"];
            assert!(kind.is_string(), "{args:?}");
        }
    }
    let line = json!({ "id": "large", "status": 400, "body": large }).to_string();
    let told = classify(&["--jsonl"], &line);
    assert_eq!((told.code, told.out.lines().count()), (Some(0), 1));
    let too_long = format!("{}\n{{\"status\": 500}}", "y".repeat(17 << 20));
    let told = classify(&["--jsonl"], too_long);
    assert_eq!((told.code, told.out.lines().count()), (Some(2), 1));
    assert_eq!(
        told.err,
        "fuseline: line 1: is longer than 16777216 bytes\n"
    );
    let told = classify(&["--jsonl"], &binary);
    assert_eq!((told.code, told.out.as_str()), (Some(2), ""));
    assert_eq!(classify(&["--jsonl"], "").code, Some(0));
}

#[test]
fn wrong_arguments_are_told_and_no_header_is_repeated() {
    for args in [
        &[][..],
        &["--status", "99"],
        &["--status", "500", "--transport", "gone"],
        &["--jsonl", "--status", "500"],
        &["--status", "500", "--header", "sk-canary"],
        &["--transport", "eof"],
        &["--status", "500", "--now", "later"],
    ] {
        let told = classify(args, "");
        assert_eq!((told.code, told.out.as_str()), (Some(2), ""), "{args:?}");
        assert!(!told.err.is_empty() && !told.err.contains("canary"));
    }
    let help = classify(&["--help"], "");
    assert_eq!(help.code, Some(0));
    assert!(
        help.out.contains("fuseline classify --jsonl <"),
        "{}",
        help.out
    );
}

const OWN: &str = r#"
[providers.primary]
protocol = "openai"
base_url = "http://127.0.0.1:9/v1"
api_key = { env = "NOT_SET" }
[[routes]]
model = "*"
targets = [{ provider = "primary" }]

[[classify.rules]]
id = "house-limit"
when = { code = ["house_limit"] }
then = { kind = "rate_limit", scope = "provider" }
"#;

#[test]
fn the_configurations_rules_are_asked_first_and_need_no_secret() {
    let folder = tempfile::tempdir().unwrap();
    let body = r#"{"error": {"code": "house_limit"}}"#;
    let evidence = |args: &[&str]| {
        let args = [&["--status", "400", "--json"], args].concat();
        let told = classify_in(folder.path(), &args, body.as_bytes());
        assert_eq!(told.code, Some(0), "{}", told.err);
        let verdict: Value = serde_json::from_str(&told.out).unwrap();
        verdict["evidence"].as_str().unwrap().to_owned()
    };
    assert_eq!(evidence(&[]), "status 400");
    std::fs::write(folder.path().join("own.toml"), OWN).unwrap();
    let own = "rule own/house-limit: code house_limit, status 400";
    assert_eq!(evidence(&["--config", "own.toml"]), own);
    std::fs::write(folder.path().join("fuseline.toml"), OWN).unwrap();
    assert_eq!(evidence(&[]), own);

    let broken = OWN.replace("rate_limit\"", "rate_limits\"");
    std::fs::write(folder.path().join("fuseline.toml"), broken).unwrap();
    let told = classify_in(folder.path(), &["--status", "400"], body.as_bytes());
    let expected = "fuseline.toml:13: classify.rules[0].then.kind = \"rate_limits\": is not known; did you mean \"rate_limit\"?\n";
    assert_eq!((told.code, told.err.as_str()), (Some(1), expected));
}

/// The fenced blocks of a document: what language, and what text.
fn blocks(document: &str) -> Vec<(&str, &str)> {
    let parts = document.split("\n```").skip(1).step_by(2);
    parts.filter_map(|block| block.split_once('\n')).collect()
}

#[test]
fn the_guides_rules_do_what_it_shows() {
    let guide = include_str!("../../../../docs/guide/classify-rules.md");
    let program = Path::new(env!("CARGO_BIN_EXE_fuseline"));
    let path = format!("{}:/usr/bin:/bin", program.parent().unwrap().display());
    let blocks = blocks(guide);
    let mut shown = 0;
    for steps in blocks.chunks(3) {
        let [("toml", rules), ("sh", command), ("text", expected)] = steps else {
            panic!("rules, a command and what it prints, not {steps:?}");
        };
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("fuseline.toml"), rules).unwrap();
        let output = Command::new("sh")
            .current_dir(folder.path())
            .env_clear()
            .env("PATH", &path)
            .args(["-c", command])
            .output()
            .unwrap();
        let told = String::from_utf8(output.stdout).unwrap();
        assert_eq!(told.trim_end(), *expected, "{command}");
        assert!(output.stderr.is_empty() && output.status.success());
        shown += 1;
    }
    assert_eq!(shown, 3);
}
