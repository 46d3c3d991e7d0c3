//! Every metric and label name, once.

/// A counter's name and its help. The page adds `_total` to the name.
#[derive(Clone, Copy)]
pub(crate) struct Counter {
    pub(crate) name: &'static str,
    pub(crate) help: &'static str,
}

pub(crate) const OPENED: Counter = Counter {
    name: "breaker_opened",
    help: "Times that a breaker opened",
};
pub(crate) const HALF_OPEN: Counter = Counter {
    name: "breaker_half_open",
    help: "Times that a breaker let its first probe through",
};
pub(crate) const CLOSED: Counter = Counter {
    name: "breaker_closed",
    help: "Times that a breaker closed again",
};
pub(crate) const DEGRADED: Counter = Counter {
    name: "breaker_degraded",
    help: "Times that a closed breaker was seen under pressure",
};
pub(crate) const REJECTED: Counter = Counter {
    name: "breaker_rejected",
    help: "Calls that a breaker turned away",
};
pub(crate) const LATE: Counter = Counter {
    name: "breaker_late",
    help: "Outcomes that came after the state they belong to had passed",
};

pub(crate) const OPEN_SECONDS: Counter = Counter {
    name: "breaker_open_seconds",
    help: "Seconds that a breaker has been open",
};
pub(crate) const CALLS: Counter = Counter {
    name: "calls",
    help: "Calls that are over, by what became of them",
};
pub(crate) const ATTEMPTS: Counter = Counter {
    name: "attempts",
    help: "Requests sent to a target, by what became of them",
};
pub(crate) const ABANDONED: Counter = Counter {
    name: "attempts_abandoned",
    help: "Requests sent to a target that may have carried them out, and gave no whole answer",
};
pub(crate) const ABANDONED_COST: Counter = Counter {
    name: "attempts_abandoned_cost_dollars",
    help: "What those may have cost, estimated by the request's size, where the target has a price",
};
pub(crate) const FALLBACK: Counter = Counter {
    name: "fallback",
    help: "Calls with a good answer of another target than the route's first",
};

/// Histograms and gauges: a name and its help.
pub(crate) const CALL_SECONDS: (&str, &str) = (
    "call_seconds",
    "Seconds from a call's request to the end of its answer",
);
pub(crate) const FIRST_TOKEN_SECONDS: (&str, &str) = (
    "first_token_seconds",
    "Seconds from a stream's request to its first content",
);
pub(crate) const INCIDENT_SECONDS: (&str, &str) = (
    "breaker_incident_seconds",
    "Seconds since a breaker first opened after it was closed; 0 where it is closed",
);
pub(crate) const STORED: Counter = Counter {
    name: "state_stored",
    help: "Transitions that were written to the state file",
};
pub(crate) const DROPPED: Counter = Counter {
    name: "state_dropped",
    help: "Transitions that came faster than they could be written; the states themselves are complete",
};
pub(crate) const FAILURES: Counter = Counter {
    name: "state_failures",
    help: "Batches that the state file did not take",
};
pub(crate) const FAILING: (&str, &str) = (
    "state_failing",
    "1 while breaker states are to be kept and cannot be",
);

pub(crate) const RELOADS: Counter = Counter {
    name: "config_reloads",
    help: "Times that the configuration was read anew, by what came of it",
};
pub(crate) const RELOADED: (&str, &str) = (
    "config_last_reload_successful",
    "0 while the configuration as written was refused, and an earlier one is in force",
);

pub(crate) const FLEET_TURNS: Counter = Counter {
    name: "fleet_exchanges",
    help: "Exchanges with the fleet's Redis that were tried",
};
pub(crate) const FLEET_FAILURES: Counter = Counter {
    name: "fleet_failures",
    help: "Exchanges with the fleet's Redis that failed",
};
pub(crate) const FLEET_RESETS: Counter = Counter {
    name: "fleet_state_reset",
    help: "Breakers whose state the fleet's Redis had forgotten, and was told again",
};
pub(crate) const FLEET_DEGRADED: (&str, &str) = (
    "fleet_degraded",
    "1 while this replica decides by itself because the fleet's Redis is out of reach",
);
pub(crate) const FLEET_REPLICAS: (&str, &str) = (
    "fleet_replicas",
    "Replicas at the last exchange, this one among them",
);

pub(crate) const QUEUE_KEPT: Counter = Counter {
    name: "queue_queued",
    help: "Calls that were taken into the queue",
};
pub(crate) const QUEUE_SENT: Counter = Counter {
    name: "queue_sent",
    help: "Calls from the queue that have got their answer",
};
pub(crate) const QUEUE_FAILED: Counter = Counter {
    name: "queue_failed",
    help: "Calls from the queue that have failed too often",
};
pub(crate) const QUEUE_EXPIRED: Counter = Counter {
    name: "queue_expired",
    help: "Calls that have waited in the queue for too long",
};
pub(crate) const QUEUE_REFUSED: Counter = Counter {
    name: "queue_refused",
    help: "Calls that found no room in the queue",
};
pub(crate) const QUEUE_WAITING: (&str, &str) = (
    "queue_waiting",
    "Calls in the queue that have no answer yet",
);
pub(crate) const QUEUE_BYTES: (&str, &str) = (
    "queue_bytes",
    "Bytes of the requests and results in the queue",
);
pub(crate) const QUEUE_FAILING: (&str, &str) = (
    "queue_failing",
    "1 while the queue cannot be read or written",
);

pub(crate) const STATE: (&str, &str) = (
    "breaker_state",
    "1 for the state that a breaker is in, 0 for the others",
);

pub(crate) const SCOPE_LABEL: &str = "scope";
pub(crate) const PROVIDER_LABEL: &str = "provider";
/// Empty for breakers of providers and keys: a key's name is no label, so that keys are counted together. `other` for
/// models that the configuration does not name.
pub(crate) const MODEL_LABEL: &str = "model";
pub(crate) const STATE_LABEL: &str = "state";
pub(crate) const REASON_LABEL: &str = "reason";
pub(crate) const OUTCOME_LABEL: &str = "outcome";
/// `none` for a success.
pub(crate) const KIND_LABEL: &str = "kind";

/// The semantic conventions' own metrics, exported over OTLP alone.
pub(crate) const OPERATION_DURATION: (&str, &str) = (
    "gen_ai.client.operation.duration",
    "Seconds from a request to a target to the end of its answer",
);
pub(crate) const TIME_TO_FIRST_CHUNK: (&str, &str) = (
    "gen_ai.client.operation.time_to_first_chunk",
    "Seconds from a stream's request to a target to its first content",
);
pub(crate) const TOKEN_USAGE: (&str, &str) = (
    "gen_ai.client.token.usage",
    "Tokens of requests and answers, as providers have counted them",
);

/// Attributes of spans and of those metrics.
pub(crate) mod attribute {
    pub(crate) const OPERATION: &str = "gen_ai.operation.name";
    pub(crate) const PROVIDER: &str = "gen_ai.provider.name";
    pub(crate) const MODEL: &str = "gen_ai.request.model";
    pub(crate) const STREAM: &str = "gen_ai.request.stream";
    pub(crate) const INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
    pub(crate) const OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
    pub(crate) const FIRST_CHUNK: &str = "gen_ai.response.time_to_first_chunk";
    pub(crate) const TOKEN_TYPE: &str = "gen_ai.token.type";
    pub(crate) const ERROR: &str = "error.type";
    pub(crate) const STATUS: &str = "http.response.status_code";
    pub(crate) const HOST: &str = "server.address";
    pub(crate) const PORT: &str = "server.port";
    /// What no convention has a name for.
    pub(crate) const REQUEST_ID: &str = "fuseline.request_id";
    /// The provider's name in the configuration.
    pub(crate) const TARGET_PROVIDER: &str = "fuseline.provider";
    pub(crate) const TARGET: &str = "fuseline.target";
    pub(crate) const BREAKER_STATE: &str = "fuseline.breaker_state";
    pub(crate) const OUTCOME: &str = "fuseline.outcome";
    pub(crate) const ATTEMPTS: &str = "fuseline.attempts";
    pub(crate) const FALLBACK: &str = "fuseline.fallback";
    pub(crate) const DEGRADED: &str = "fuseline.degraded";
    pub(crate) const COST: &str = "fuseline.cost";
    pub(crate) const WHY: &str = "fuseline.why";
}
