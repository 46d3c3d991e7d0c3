//! Trip rules as a configuration writes them.

use fuseline_gateway::Gateway;
use fuseline_mock::{Mock, Reply, Script};

use crate::support::{breaker, chat, gateway, openai, route, send};

/// Calls, of which one in five fails, until the circuit is open; at most a hundred.
async fn calls_until_open(gateway: &Gateway) -> Option<usize> {
    for call in 1..=100 {
        send(gateway.addr(), chat()).await;
        if breaker(gateway, "a/m").await["state"] == "open" {
            return Some(call);
        }
    }
    None
}

#[tokio::test]
async fn a_cusum_rule_opens_where_one_call_in_five_fails_and_the_defaults_do_not() {
    let replies = || {
        (0..5).map(|at| {
            if at == 0 {
                Reply::status(500)
            } else {
                Reply::ok()
            }
        })
    };
    for (rules, opens) in [
        ("", None),
        ("[[breaker.trip]]\nrule = \"cusum\"\n", Some(61)),
        (
            "[[breaker.trip]]\nrule = \"cusum\"\nwell = 0.05\nill = 0.1\ncalls_per_false_alarm = 1e15\n",
            None,
        ),
    ] {
        let mock = Mock::start(Script::cycle(replies())).await.unwrap();
        let provider = openai("a", &mock.url());
        let gateway = gateway(&format!("{provider}{}{rules}", route(&["a"]))).await;
        assert_eq!(calls_until_open(&gateway).await, opens, "{rules}");
        let view = breaker(&gateway, "a/m").await;
        if opens.is_some() {
            assert_eq!(view["why"]["cause"], "cusum", "{view}");
            assert!(
                view["why"]["text"]
                    .as_str()
                    .unwrap()
                    .starts_with("cusum 9.61/9.142, server_error"),
                "{view}"
            );
        }
    }
}
