//! What a script decides, by order, rule and time.

use std::time::Duration;

use hyper::Request;

use super::{Conduct, Doorway, Phase, Rule, Script};
use crate::Reply;
use crate::request::Facts;

fn facts(path: &str, model: &str, key: &str) -> Facts {
    let request = Request::post(path)
        .header("authorization", format!("Bearer {key}"))
        .body(())
        .unwrap();
    Facts::new(
        1,
        &request.into_parts().0,
        format!(r#"{{"model": "{model}"}}"#).as_bytes(),
    )
}

fn statuses(script: &mut Script, facts: &Facts, count: usize) -> Vec<u16> {
    (0..count)
        .map(|_| script.reply(Duration::ZERO, facts).unwrap().status)
        .collect()
}

#[test]
fn sequences_repeat_their_last_and_cycles_start_again() {
    let any = facts("/v1/messages", "m", "k");
    let replies = || [Reply::status(500), Reply::status(429), Reply::ok()];
    assert_eq!(
        statuses(&mut Script::sequence(replies()), &any, 5),
        [500, 429, 200, 200, 200]
    );
    assert_eq!(
        statuses(&mut Script::cycle(replies()), &any, 5),
        [500, 429, 200, 500, 429]
    );
}

#[test]
fn the_first_rule_that_fits_answers() {
    let mut script = Script::always(Reply::ok())
        .rule(
            Rule::model("a")
                .and_path("/messages")
                .reply(Reply::status(500)),
        )
        .rule(Rule::model("a").reply(Reply::status(501)))
        .rule(Rule::key("k2").sequence([Reply::status(401), Reply::status(403)]))
        .rule(Rule::path("/embeddings").reply(Reply::status(404)));
    let mut status = |path, model, key| statuses(&mut script, &facts(path, model, key), 1)[0];
    assert_eq!(status("/x/v1/messages?beta=1", "a", "k"), 500);
    assert_eq!(status("/v1/responses", "a", "k2"), 501);
    assert_eq!(status("/v1/responses", "b", "k2"), 401);
    assert_eq!(status("/v1/responses", "b", "k2"), 403);
    assert_eq!(status("/v1/embeddings", "b", "k"), 404);
    assert_eq!(status("/v1/responses", "b", "k"), 200);
}

#[test]
fn phases_follow_the_clock() {
    let at = Duration::from_secs;
    let mut script = Script::phases([
        Phase::at(at(0), Reply::ok()),
        Phase::at(at(5), Reply::status(503)),
        Phase::at(at(15), Conduct::refuse()),
        Phase::at(at(18), Conduct::reset_on_accept()),
    ]);
    let any = facts("/", "m", "k");
    let mut status = |seconds| script.reply(at(seconds), &any).map(|reply| reply.status);
    assert_eq!(
        [0, 4, 5, 14, 15, 100].map(&mut status),
        [Some(200), Some(200), Some(503), Some(503), None, None]
    );
    assert_eq!(
        script.changes().collect::<Vec<_>>(),
        [5, 15, 18].map(at),
        "the first is no change"
    );
    assert_eq!(
        [14, 15, 18].map(|s| script.doorway(at(s))),
        [Doorway::Accept, Doorway::Refuse, Doorway::Reset]
    );
    assert_eq!(
        [0, 5, 17, 18].map(|s| script.next_change(at(s))),
        [Some(at(5)), Some(at(15)), Some(at(18)), None]
    );
}

#[test]
fn impossible_scripts_are_refused_with_their_place() {
    let at = Duration::from_secs;
    let problem = |script: Script| script.check().unwrap_err().to_string();
    assert_eq!(
        problem(Script::phases([])),
        "phases: a script needs at least one phase"
    );
    assert_eq!(
        problem(Script::phases([Phase::at(at(1), Reply::ok())])),
        "phases[0]: after is 1s; the first phase begins at \"0s\""
    );
    assert_eq!(
        problem(Script::phases(
            [0, 5, 5].map(|s| Phase::at(at(s), Reply::ok()))
        )),
        "phases[2]: after is 5s, must be later than the phase before"
    );
    assert_eq!(
        problem(Script::sequence([])),
        "replies is empty, must hold at least one"
    );
    assert_eq!(
        problem(Reply::status(99).into()),
        "replies[0]: status is 99, must be 200 to 599"
    );
    assert_eq!(
        problem(Reply::ok().header("a b", "c").into()),
        "replies[0]: headers: \"a b\" is no header name"
    );
    assert_eq!(
        problem(Reply::ok().header("a", "b\nc").into()),
        "replies[0]: headers.a: the value has characters that HTTP does not allow"
    );
    assert_eq!(
        problem(Reply::ok().header("Content-Length", "3").into()),
        "replies[0]: headers.Content-Length: the framing is set by the mock; use raw to send another"
    );
    assert_eq!(
        problem(Conduct::refuse().rule(Rule::model("m")).into()),
        "rules cannot apply where no request arrives; leave them out"
    );
    assert_eq!(
        problem(Script::always(Reply::ok()).rule(Rule::when(None, None, None))),
        "rules[0]: a rule needs path, model or key"
    );
}

#[test]
fn a_key_is_not_shown() {
    let shown = format!(
        "{:?}",
        Script::always(Reply::ok()).rule(Rule::key("sk-secret"))
    );
    assert!(!shown.contains("sk-secret"), "{shown}");
}
