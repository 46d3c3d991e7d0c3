//! Lines of JSON, and an array of it, of any content, in chunks of any size.
#![no_main]

mod divided;

use fuseline_llm::Framing;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|stream: &[u8]| {
    divided::as_whole(Framing::NdJson, stream);
    divided::as_whole(Framing::JsonArray, stream);
});
