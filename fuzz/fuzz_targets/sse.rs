//! Server-sent events of any content, in chunks of any size.
#![no_main]

mod divided;

use fuseline_llm::Framing;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|stream: &[u8]| divided::as_whole(Framing::Sse, stream));
