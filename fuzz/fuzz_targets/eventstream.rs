//! Frames of AWS of any content, in chunks of any size. They are tried again with their checksums put right, since none
//! would be right by chance.
#![no_main]

mod divided;

use fuseline_llm::Framing;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|stream: &[u8]| {
    divided::as_whole(Framing::EventStream, stream);
    divided::as_whole(Framing::EventStream, &mend(stream));
});

fn mend(stream: &[u8]) -> Vec<u8> {
    let mut mended = stream.to_vec();
    let mut rest = &mut mended[..];
    while rest.len() >= 16 {
        let length = u32::from_be_bytes([rest[0], rest[1], rest[2], rest[3]]) as usize;
        let sum = crc32fast::hash(&rest[..8]);
        rest[8..12].copy_from_slice(&sum.to_be_bytes());
        if length < 16 || length > rest.len() {
            break;
        }
        let (frame, after) = rest.split_at_mut(length);
        let (before, end) = frame.split_at_mut(length - 4);
        end.copy_from_slice(&crc32fast::hash(before).to_be_bytes());
        rest = after;
    }
    mended
}
