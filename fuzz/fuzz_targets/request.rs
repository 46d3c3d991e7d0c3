//! A request of any path and body: read without a panic; a rewritten body names the new model and nothing else changed.
#![no_main]

use bytes::Bytes;
use fuseline_llm::{Protocol, RequestFacts};
use http::Method;
use libfuzzer_sys::fuzz_target;

const OTHER: &str = "another \"model\"";

fuzz_target!(|request: (&str, &[u8])| {
    let (path, body) = request;
    for protocol in [Protocol::OpenAi, Protocol::Anthropic, Protocol::Gemini] {
        let facts = RequestFacts::read(protocol, &Method::POST, path, body);
        if facts.model().is_none() || protocol == Protocol::Gemini {
            let _rewritten = facts.path_for(OTHER, path);
            continue;
        }
        let rewritten = facts.body_for(OTHER, &Bytes::copy_from_slice(body));
        let read_again = RequestFacts::read(protocol, &Method::POST, path, &rewritten);
        assert_eq!(read_again.model(), Some(OTHER));
        assert_eq!(read_again.shape(), facts.shape());
    }
});
