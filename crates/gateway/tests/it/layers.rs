//! What a good configuration means: every key arrives, layers merge, the closest route serves, defaults are told true.

use std::time::Duration;

use fuseline_core::{
    Count, Kind, KindSpec, Mode, OnSuccess, Per, Policy, PolicySpec, Preset, State, TripRule,
};
use fuseline_gateway::config::{
    self, Config, Elsewhere, LogFormat, OnExhausted, OnKind, Price, QueuePlace, Strategy, Target,
    Timeouts, WebhookFormat,
};

use crate::config::{good, load};

const fn secs(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn full() -> Config {
    good(include_str!("full.toml"))
}

#[test]
fn every_key_can_be_written() {
    let text = include_str!("full.toml");
    full();
    for key in config::keys() {
        let name = key.key.rsplit('.').next().unwrap();
        let shown = key.key.contains("kinds.") || key.key.contains(".on.");
        assert!(
            shown || text.contains(&format!("{name} = ")),
            "full.toml lacks {}",
            key.key
        );
    }
}

#[test]
fn rules_are_those_written_or_those_of_the_address() {
    let config = full();
    assert_eq!(config.providers["primary"].rules, "azure");
    assert_eq!(config.providers["spare"].rules, "groq");
}

#[test]
fn what_stands_at_the_top_arrives() {
    let config = full();
    assert_eq!(
        (config.listen.port(), config.admin_listen.port()),
        (8080, 8081)
    );
    assert_eq!(config.state.as_deref(), Some("fuseline.db".as_ref()));
    assert_eq!(config.log.to_string(), "debug");
    assert_eq!(config.log_format, LogFormat::Human);
    let hook = &config.webhooks[0];
    assert_eq!(hook.format, WebhookFormat::Slack);
    assert_eq!(hook.states, [State::Open, State::HalfOpen, State::Closed]);
    assert_eq!(format!("{:?}", hook.url), "\"https://hooks.example/***\"");
    assert_eq!(config.client_tokens.len(), 2);
    assert!(config.admin_token.is_some() && config.fleet.is_some() && !config.pass_through);
    let limits = &config.limits;
    assert_eq!(
        (limits.max_body, limits.replay_limit, limits.replay_memory),
        (1 << 20, 64 << 10, 1 << 30)
    );
    let cache = &config.cache;
    assert_eq!(
        (cache.max_bytes, cache.max_entry, cache.ttl),
        (32 << 20, 512 << 10, secs(300))
    );
    assert_eq!(
        (
            limits.max_breakers,
            limits.drain,
            limits.cancel_counts_after
        ),
        (7, secs(5), secs(21))
    );
}

#[test]
fn a_route_arrives_whole() {
    let config = full();
    let route = &config.routes[0];
    let targets: Vec<_> = route
        .targets
        .iter()
        .map(|target| (target.provider.as_str(), target.model.as_deref()))
        .collect();
    assert_eq!(
        targets,
        [("primary", None), ("spare", Some("llama-3.3-70b"))]
    );
    assert_eq!(
        (route.targets[0].price, route.targets[0].weight),
        (
            Some(Price {
                input: 2.5,
                output: 10.0
            }),
            Some(3)
        )
    );
    let both = Price {
        input: 1.0,
        output: 1.0,
    };
    assert_eq!(route.targets[1].price, Some(both));
    let bounds = |target: &Target| (target.context, target.max_in_flight);
    assert_eq!(
        route.targets.iter().map(bounds).collect::<Vec<_>>(),
        [(None, Some(50)), (Some(128_000), None)]
    );
    assert!(route.resend_unknown && !config.routes[1].resend_unknown);
    assert_eq!((route.hedge, config.routes[1].hedge), (Some(0.99), None));
    assert_eq!(route.strategy, Strategy::Cheapest);
    assert_eq!(
        (route.budget, route.max_wait, route.hold_back),
        (Some(secs(100)), secs(3), secs(1))
    );
    assert_eq!((route.retries, route.max_attempts), (2, 5));
    let step = |target: &Elsewhere| match target {
        Elsewhere::Target(target) => format!("{} {:?}", target.provider, target.model),
        Elsewhere::Route(model) => format!("route {model}"),
        _ => panic!("a new variant"),
    };
    let steps: Vec<_> = route
        .on_exhausted
        .iter()
        .map(|exhausted| match exhausted {
            OnExhausted::Elsewhere(elsewhere) => step(elsewhere),
            other => format!("{other:?}"),
        })
        .collect();
    let expected = [
        r#"primary Some("gpt-4o-mini")"#,
        r#"spare Some("llama-3.1-8b")"#,
        "route small",
        "Cache",
        "Wait",
        "Queue",
    ];
    assert_eq!(steps, expected);
    assert_eq!(
        (&route.on[&Kind::RateLimit], &route.on[&Kind::ContentPolicy]),
        (&OnKind::Next, &OnKind::Return)
    );
    let on = |kind| match &route.on[&kind] {
        OnKind::Elsewhere(elsewhere) => step(elsewhere),
        other => format!("{other:?}"),
    };
    assert_eq!(on(Kind::ContextLength), "spare None");
    assert_eq!(on(Kind::Timeout), r#"primary Some("gpt-4o")"#);
    assert_eq!(on(Kind::Network), "route small");
}

#[test]
fn every_breaker_key_arrives() {
    // Named one by one, so that a key that the core gains fails to compile here.
    let PolicySpec {
        preset,
        mode,
        trip,
        on_success,
        degraded_at,
        cooldown,
        backoff,
        backoff_after,
        max_cooldown,
        jitter,
        max_retry_after,
        probes,
        successes_to_close,
        probe_timeout,
        probe_proof,
        ramp,
        max_in_flight,
        count,
        per,
        kinds,
    } = full().breaker;
    assert_eq!((preset, mode), (Some(Preset::Llmtest), Some(Mode::Shadow)));
    let rules = [
        TripRule::Consecutive { failures: 4 },
        TripRule::Window {
            failures: 6,
            window: secs(30),
        },
        TripRule::Rate {
            threshold: 0.4,
            window: secs(61),
            min_calls: 11,
        },
        TripRule::Slow {
            slower_than: secs(8),
            threshold: 1.0,
            window: secs(62),
            min_calls: 12,
        },
        TripRule::Cusum {
            well: 0.03,
            ill: 0.25,
            calls_per_false_alarm: 1e7,
        },
    ];
    assert_eq!(trip.as_deref(), Some(&rules[..]));
    assert_eq!(
        (on_success, count, per),
        (
            Some(OnSuccess::Decrement),
            Some(Count::Attempt),
            Some(Per::Provider)
        )
    );
    assert_eq!(
        (degraded_at, backoff, jitter),
        (Some(0.5), Some(3.0), Some(0.2))
    );
    assert_eq!(
        (cooldown, max_cooldown, max_retry_after),
        (Some(secs(14)), Some(secs(180)), Some(secs(7200)))
    );
    assert_eq!(
        (backoff_after, probes, successes_to_close, max_in_flight),
        (Some(1), Some(2), Some(3), Some(100))
    );
    assert_eq!(
        (probe_timeout, probe_proof, ramp),
        (Some(secs(59)), Some(secs(6)), Some(secs(7)))
    );
    let rate_limit = KindSpec {
        count: Some(true),
        threshold: Some(3),
        immediate_open: false,
        cooldown: Some(secs(13)),
    };
    let auth = KindSpec {
        count: Some(true),
        immediate_open: true,
        ..KindSpec::default()
    };
    assert_eq!(
        kinds.into_iter().collect::<Vec<_>>(),
        [(Kind::RateLimit, rate_limit), (Kind::Auth, auth)]
    );
}

#[test]
fn breaker_settings_merge_from_the_general_to_the_particular() {
    let config = full();
    assert_eq!(config.policy("spare", None).cooldown(), secs(14));
    assert_eq!(config.policy("primary", None).cooldown(), secs(16));
    assert_eq!(
        config.policy("primary", Some("gpt-4o")).cooldown(),
        secs(16)
    );
    let llama = config.policy("primary", Some("llama-3"));
    assert_eq!((llama.cooldown(), llama.probes()), (secs(17), 3));
    assert_eq!(config.policy("unknown", None).cooldown(), secs(14));
}

#[test]
fn a_context_is_the_targets_or_the_last_that_models_say() {
    let config = full();
    let [primary, spare] = &config.routes[0].targets[..] else {
        panic!("two targets")
    };
    assert_eq!(config.context(spare, "llama-3.3-70b"), Some(128_000));
    assert_eq!(config.context(primary, "llama-3"), Some(131_072));
    assert_eq!(config.context(primary, "gpt-4o"), None);
    let again =
        "[[models]]\nmatch = \"m*\"\ncontext = 1\n[[models]]\nmatch = \"mm\"\ncontext = 2\n";
    let last = good(&format!("{again}[[models]]\nmatch = \"m\"\n"));
    assert_eq!(last.context(primary, "mm"), Some(2));
    assert_eq!(last.context(primary, "m"), Some(1));
}

#[test]
fn time_limits_merge_from_the_general_to_the_particular() {
    let config = full();
    let route = Some(&config.routes[0]);
    assert_eq!(config.timeouts("spare", None, None).connect, secs(4));
    assert_eq!(config.timeouts("primary", None, None).connect, secs(2));
    assert_eq!(config.timeouts("primary", None, route).connect, secs(1));
    assert_eq!(
        config.timeouts("spare", Some("llama-3"), None).first_token,
        secs(10)
    );
    assert_eq!(config.timeouts("spare", None, None).total, Some(secs(600)));
    assert_eq!(config.timeouts("spare", None, route).total, Some(secs(540)));
    let lifted =
        good("timeouts.total = \"1s\"\n[[models]]\nmatch = \"m\"\ntimeouts.total = \"0s\"\n");
    assert_eq!(lifted.timeouts("openai", Some("m"), None).total, None);
}

#[test]
fn the_closest_route_serves() {
    let route =
        |model| format!("[[routes]]\nmodel = {model:?}\ntargets = [{{ provider = \"a\" }}]\n");
    let provider =
        "[providers.a]\nprotocol = \"openai\"\nbase_url = \"http://h\"\nauth = \"caller\"\n";
    let patterns = [
        "*",
        "gpt-*",
        "gpt-4*",
        "gpt-4o",
        "{gpt,o}-4?",
        "openai/*",
        "claude-[34]",
    ];
    let config = good(&format!("{provider}{}", patterns.map(route).concat()));
    let serves = |model| config.route(model).unwrap().model.as_str();
    let cases = [
        ("gpt-4o", "gpt-4o"),
        ("gpt-4o-mini", "gpt-4*"),
        ("gpt-5", "gpt-*"),
        ("o-45", "{gpt,o}-4?"),
        ("openai/gpt/x", "openai/*"),
        ("claude-3", "claude-[34]"),
        ("claude-5", "*"),
        ("GPT-4o", "*"),
    ];
    for (model, pattern) in cases {
        assert_eq!(serves(model), pattern, "{model}");
    }
    let narrow = good(&format!("{provider}{}", route("gpt-4")));
    assert!(narrow.route("gpt-40").is_none());
}

#[test]
fn the_template_says_what_holds_anyway() {
    let template = config::template();
    let written = good(&template);
    let unwritten = good("");
    assert_eq!(Policy::new(&written.breaker), Ok(Policy::default()));
    assert_eq!(
        written.policy("openai", None),
        unwritten.policy("openai", None)
    );
    assert_eq!(written.timeouts("openai", None, None), Timeouts::default());
    assert_eq!(written.limits, unwritten.limits);
    let top = |config: &Config| {
        format!(
            "{:?}",
            (
                config.listen,
                config.admin_listen,
                &config.state,
                config.log
            )
        )
    };
    assert_eq!(top(&written), top(&unwritten));
    assert!(load(&template).config.is_some());
    for key in config::keys() {
        assert!(
            template.contains(&format!("{} = ", key.key.rsplit('.').next().unwrap())),
            "{key:?}"
        );
    }
}

#[test]
fn the_queue_arrives_whole() {
    let queue = full().queue;
    assert_eq!(queue.store, Some(QueuePlace::State));
    assert_eq!(
        (queue.max_calls, queue.max_bytes, queue.max_entry),
        (50, 16 << 20, 256 << 10)
    );
    assert_eq!((queue.expires, queue.ttl), (secs(7_200), secs(3_600)));
    assert_eq!((queue.in_flight, queue.attempts), (4, 7));
    let queue = good("").queue;
    assert_eq!(queue.store, None);
    assert_eq!(
        (queue.max_calls, queue.max_bytes, queue.max_entry),
        (1_000, 256 << 20, 8 << 20)
    );
    assert_eq!((queue.expires, queue.ttl), (secs(86_400), secs(86_400)));
    assert_eq!((queue.in_flight, queue.attempts), (1, 5));
}
