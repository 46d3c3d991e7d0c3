//! Calls and attempts in the words of OpenTelemetry's conventions for generative AI.

use bytes::Bytes;
use fuseline_llm::{Operation, Protocol, Shape};
use fuseline_telemetry::Upstream;
use http::Request;
use http_body_util::Full;

use super::context::Context;
use super::ingress::Call;
use super::way::Way;

/// The conventions' names of the providers whose rules have another one.
const PROVIDERS: [(&str, &str); 13] = [
    ("aws", "aws.bedrock"),
    ("aws_bedrock", "aws.bedrock"),
    ("azure", "azure.ai.openai"),
    ("azure_openai", "azure.ai.openai"),
    ("bedrock", "aws.bedrock"),
    ("cloudflare_workers_ai", "cloudflare"),
    ("gemini", "gcp.gemini"),
    ("google", "gcp.gemini"),
    ("mistral", "mistral_ai"),
    ("vertex", "gcp.vertex_ai"),
    ("vertex_ai", "gcp.vertex_ai"),
    ("workers_ai", "cloudflare"),
    ("xai", "x_ai"),
];

/// The call's span says what it asks for.
pub(super) fn name(call: &Call, context: &mut Context) {
    context.asks(operation(call), call.facts.model().unwrap_or_default());
}

/// The attempt that is about to be sent gets a span, and its request this trace.
pub(super) fn begin(
    call: &Call,
    way: &Way<'_>,
    request: &mut Request<Full<Bytes>>,
    context: &mut Context,
) {
    if !context.is_traced() {
        return;
    }
    let base = &way.upstream.base;
    let usual_port = if base.scheme_str() == Some("http") {
        80
    } else {
        443
    };
    let to = Upstream {
        name: way.aim.target.provider(),
        provider: provider(&way.upstream.rules, way.upstream.protocol),
        model: way.aim.target.model(),
        host: base.host().unwrap_or_default(),
        port: base.port_u16().unwrap_or(usual_port),
        is_stream: call.facts.shape() == Shape::Stream,
    };
    context.trace(&to, request.headers_mut());
}

fn operation(call: &Call) -> &'static str {
    let path = call.path.trim_end_matches('/');
    match (call.facts.operation(), call.facts.protocol()) {
        (Operation::Other, _) => "other",
        (Operation::Create, Protocol::Gemini) => "generate_content",
        _ if path.ends_with("/embeddings") => "embeddings",
        _ if path.ends_with("/completions") && !path.ends_with("/chat/completions") => {
            "text_completion"
        }
        _ => "chat",
    }
}

/// Of a provider that nobody knows, the one whose dialect it speaks.
fn provider(rules: &str, protocol: Protocol) -> &str {
    let named = match rules {
        "" => protocol.as_str(),
        rules => rules,
    };
    let known = PROVIDERS.iter().find(|(name, _)| *name == named);
    known.map_or(named, |(_, name)| name)
}
