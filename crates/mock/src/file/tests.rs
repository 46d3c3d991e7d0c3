//! Script files: what they mean, and what their mistakes are called.

use std::path::Path;
use std::time::Duration;

use crate::{Conduct, Phase, Reply, Rule, Script};

fn same(text: &str, script: impl Into<Script>) {
    assert_eq!(
        format!("{:?}", Script::from_toml(text).unwrap()),
        format!("{:?}", script.into())
    );
}

#[test]
fn a_file_says_what_the_builders_say() {
    same("", Reply::ok());
    same(
        "replies = [{ status = 503 }, {}]",
        Script::sequence([Reply::status(503), Reply::ok()]),
    );
    same(
        "replies = [{ status = 503 }, {}]\ncycle = true",
        Script::cycle([Reply::status(503), Reply::ok()]),
    );
    same("connections = \"refuse\"", Script::refuse());
    same("connections = \"reset\"", Script::reset_on_accept());
    same(
        "[[phases]]\nafter = \"0s\"\n[[phases]]\nafter = \"1m 500ms\"\nconnections = \"refuse\"",
        Script::phases([
            Phase::at(Duration::ZERO, Reply::ok()),
            Phase::at(Duration::from_millis(60_500), Conduct::refuse()),
        ]),
    );
    same(
        "[[rules]]\nmodel = \"m\"\npath = \"/messages\"\nreplies = [{ fault = \"stall\" }]",
        Script::always(Reply::ok())
            .rule(Rule::model("m").and_path("/messages").reply(Reply::stall())),
    );
}

#[test]
fn every_key_of_a_reply_arrives() {
    let one = |keys: &str, reply: Reply| same(&format!("replies = [{{ {keys} }}]"), reply);
    let ms = Duration::from_millis;
    one(
        "delay = \"5ms\", text = \"a b\", events = 7",
        Reply::ok().delay(ms(5)).text("a b").events(7),
    );
    one(
        "gap = \"5ms\", first_gap = \"7ms\"",
        Reply::ok().gap(ms(5)).first_gap(ms(7)),
    );
    one("cut_after = 1", Reply::ok().cut_after(1));
    one("reset_after = 1", Reply::ok().reset_after(1));
    one("stall_after = 1", Reply::ok().stall_after(1));
    one("fault = \"close\"", Reply::close());
    one("fault = \"reset\"", Reply::reset());
    one("raw = \"junk\"", Reply::raw("junk"));
    one("body = \"{}\", status = 502", Reply::status(502).body("{}"));
    one("chunks = [\"a\", \"b\"]", Reply::ok().chunks(["a", "b"]));
    one(
        "headers = { retry-after = \"2\", set-cookie = [\"a\", \"b\"] }",
        Reply::ok()
            .retry_after(2)
            .header("set-cookie", "a")
            .header("set-cookie", "b"),
    );
    one(
        "status = 429, error = { type = \"t\", code = \"c\", message = \"m\" }",
        Reply::status(429)
            .error_type("t")
            .error_code("c")
            .error_message("m"),
    );
}

/// A file, and what its error says.
const MISTAKES: &[(&str, &str)] = &[
    ("repleis = []", "unknown field `repleis`"),
    ("replies = [{ stauts = 1 }]", "unknown field `stauts`"),
    ("replies = []", "replies is empty, must hold at least one"),
    (
        "replies = [{ delay = \"5 parsecs\" }]",
        "\"5 parsecs\" is no duration",
    ),
    (
        "replies = [{ delay = 5 }]",
        "invalid type: integer `5`, expected a string",
    ),
    (
        "replies = [{ headers = { a = 1 } }]",
        "a text or a list of texts",
    ),
    (
        "replies = [{ status = 600 }]",
        "replies[0]: status is 600, must be 200 to 599",
    ),
    (
        "replies = [{}, { cut_after = 1, stall_after = 2 }]",
        "replies[1]: cut_after and stall_after exclude each other",
    ),
    (
        "replies = [{ body = \"\", chunks = [] }]",
        "replies[0]: body and chunks exclude each other",
    ),
    (
        "replies = [{ raw = \"x\", status = 500 }]",
        "replies[0]: status means nothing beside raw",
    ),
    (
        "replies = [{ fault = \"close\", gap = \"1s\" }]",
        "replies[0]: gap means nothing beside fault",
    ),
    (
        "replies = [{ body = \"x\", text = \"y\" }]",
        "replies[0]: text means nothing beside body",
    ),
    (
        "replies = [{ error = {} }]",
        "replies[0]: error needs a status of 400 or above",
    ),
    (
        "replies = [{ status = 500, text = \"\" }]",
        "replies[0]: text and events need a status below 400",
    ),
    (
        "replies = [{ fault = \"explode\" }]",
        "unknown variant `explode`",
    ),
    ("cycle = true", "cycle: there are no replies to cycle"),
    (
        "connections = \"refuse\"\nreplies = [{}]",
        "connections: no request arrives here",
    ),
    (
        "replies = [{}]\n[[phases]]\nafter = \"0s\"",
        "phases: connections, replies, cycle and rules stand either",
    ),
    ("phases = []", "phases: a script needs at least one phase"),
    ("[[phases]]\nafter = \"1s\"", "phases[0]: after is 1s"),
    ("[[phases]]\nreplies = [{}]", "missing field `after`"),
    (
        "[[phases]]\nafter = \"0s\"\nrules = [{ model = \"m\", replies = [{ raw = \"\", body = \"\" }] }]",
        "phases[0].rules[0].replies[0]: raw and body exclude each other",
    ),
    (
        "rules = [{ replies = [{}] }]",
        "rules[0]: a rule needs path, model or key",
    ),
];

#[test]
fn mistakes_are_named() {
    for (text, expected) in MISTAKES {
        let error = Script::from_toml(text).unwrap_err().to_string();
        assert!(error.contains(expected), "{text}\n{error}");
    }
    let error = Script::load(Path::new("/nowhere/script.toml"))
        .unwrap_err()
        .to_string();
    assert!(error.starts_with("/nowhere/script.toml: "), "{error}");
}
