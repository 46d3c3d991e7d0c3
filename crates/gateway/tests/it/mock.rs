//! `fuseline mock`: the scripted provider as a program.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::Value;

/// A running `fuseline mock --json`; stopped at the end, however that comes.
struct Program {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Program {
    fn start(args: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fuseline"));
        command
            .env_clear()
            .args(["mock", "--listen", "127.0.0.1:0", "--json"])
            .args(args);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines }
    }

    fn event(&mut self) -> Value {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line:?}"))
    }

    fn interrupt(&self) {
        let mut kill = Command::new("sh");
        kill.arg("-c").arg(format!("kill -INT {}", self.child.id()));
        assert!(kill.status().unwrap().success());
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It has ended already where all went well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn ask(url: &str, model: &str) -> String {
    let mut stream = TcpStream::connect(url.trim_start_matches("http://")).unwrap();
    let body = format!(r#"{{"model": "{model}", "messages": []}}"#);
    write!(
        stream,
        "POST /v1/chat/completions?key=secret HTTP/1.1\r\nhost: mock\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn script(folder: &Path, text: &str) -> String {
    let file = folder.join("script.toml");
    std::fs::write(&file, text).unwrap();
    file.display().to_string()
}

#[test]
fn it_answers_as_scripted_tells_each_request_and_ends_with_a_summary() {
    let folder = tempfile::tempdir().unwrap();
    let file = script(
        folder.path(),
        "replies = [{ text = \"All is well.\" }, { status = 503 }]",
    );
    let mut mock = Program::start(&["--script", &file]);
    let listening = mock.event();
    let url = listening["url"].as_str().unwrap();
    assert!(ask(url, "gpt-5").contains("All is well."));
    let request = mock.event();
    assert_eq!(
        [
            &request["event"],
            &request["method"],
            &request["path"],
            &request["model"],
            &request["reply"]
        ],
        ["request", "POST", "/v1/chat/completions", "gpt-5", "200"]
    );
    assert!(ask(url, "a\\nb").starts_with("HTTP/1.1 503"));
    let request = mock.event();
    assert_eq!([&request["number"], &request["hits"]], [2, 2]);
    assert_eq!([&request["model"], &request["reply"]], ["a\\nb", "503"]);

    mock.interrupt();
    let summary = mock.event();
    assert_eq!(summary["event"], "summary");
    assert_eq!([&summary["hits"], &summary["left"]], [2, 0]);
    assert_eq!(summary["replies"], serde_json::json!({"200": 1, "503": 1}));
    assert_eq!(mock.child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_caller_who_leaves_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let file = script(folder.path(), "replies = [{ fault = \"stall\" }]");
    let mut mock = Program::start(&["--script", &file]);
    let listening = mock.event();
    let address = listening["url"]
        .as_str()
        .unwrap()
        .trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .write_all(b"GET /v1/models HTTP/1.1\r\nhost: mock\r\n\r\n")
        .unwrap();
    let request = mock.event();
    assert_eq!(
        [&request["model"], &request["reply"]],
        [&Value::Null, &Value::from("silence")]
    );
    drop(stream);
    let left = mock.event();
    assert_eq!([&left["event"], &left["answer"]], ["left", "not begun"]);
    assert_eq!(left["number"], 1);
}

#[test]
fn a_mistake_in_the_script_is_told_with_file_and_place() {
    let folder = tempfile::tempdir().unwrap();
    let file = script(folder.path(), "replies = [{}, { status = 99 }]");
    let mut command = Command::new(env!("CARGO_BIN_EXE_fuseline"));
    let output = command.args(["mock", "--script", &file]).output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        told.contains(&file) && told.contains("replies[1]") && told.contains("200 to 599"),
        "{told}"
    );
}

#[test]
fn an_address_that_is_taken_is_named() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let mut command = Command::new(env!("CARGO_BIN_EXE_fuseline"));
    let output = command
        .args(["mock", "--listen", &address])
        .output()
        .unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        told.contains(&address) && told.contains("choose another address"),
        "{told}"
    );
}
