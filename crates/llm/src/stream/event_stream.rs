//! The binary frames of AWS, as Bedrock sends them.
//!
//! A frame is its own length, the length of its headers, a CRC-32 of these two, the headers, the payload, and a CRC-32
//! of all before; numbers are big-endian. A wrong first checksum, or lengths that cannot be, leave no way to the next
//! frame; a wrong second one spoils its own frame only.

use std::borrow::Cow;

use bytes::Bytes;

use super::StreamEvent;
use super::framing::Found;

const PRELUDE: usize = 12;
const CHECKSUM: usize = 4;
/// A frame of nothing.
const OVERHEAD: u32 = 16;

/// Where the bytes so far have led.
#[derive(Debug)]
pub(super) enum Frames {
    /// Gathering the prelude: what is there, and how much.
    Prelude([u8; PRELUDE], usize),
    /// How many bytes of the frame are still to come.
    Rest(usize),
    /// No frame is found any more.
    Lost,
}

impl Default for Frames {
    fn default() -> Self {
        Self::Prelude([0; PRELUDE], 0)
    }
}

impl Frames {
    pub(super) fn find(&mut self, bytes: &[u8]) -> Option<Found> {
        let mut at = 0;
        if let Self::Prelude(prelude, filled) = self {
            let missing = prelude.get_mut(*filled..).unwrap_or_default();
            at = missing.len().min(bytes.len());
            for (slot, byte) in missing.iter_mut().zip(bytes) {
                *slot = *byte;
            }
            *filled += at;
            if *filled < PRELUDE {
                return None;
            }
            let Some(rest) = length_after(prelude) else {
                *self = Self::Lost;
                return Some(Found::Corrupt(at));
            };
            *self = Self::Rest(rest);
        }
        let came = bytes.len() - at;
        match self {
            Self::Rest(rest) if *rest <= came => {
                let end = at + *rest;
                *self = Self::default();
                Some(Found::Event(end))
            }
            Self::Rest(rest) => {
                *rest -= came;
                None
            }
            Self::Prelude(..) => None,
            Self::Lost => (came > 0).then_some(Found::Filler(bytes.len())),
        }
    }
}

/// How many bytes of a frame follow its prelude; none where the prelude cannot be right.
fn length_after(prelude: &[u8; PRELUDE]) -> Option<usize> {
    let (total, headers) = lengths(prelude)?;
    let is_possible = total >= OVERHEAD && headers <= total - OVERHEAD;
    if !is_possible || !is_intact(prelude) {
        return None;
    }
    usize::try_from(total).ok()?.checked_sub(PRELUDE)
}

fn lengths(frame: &[u8]) -> Option<(u32, u32)> {
    let (total, rest) = frame.split_first_chunk()?;
    let headers = rest.first_chunk()?;
    Some((u32::from_be_bytes(*total), u32::from_be_bytes(*headers)))
}

/// Whether the checksum at the end is that of all before it.
fn is_intact(bytes: &[u8]) -> bool {
    bytes
        .split_last_chunk::<CHECKSUM>()
        .is_some_and(|(before, sum)| crc32fast::hash(before) == u32::from_be_bytes(*sum))
}

/// What a whole frame says; none where its checksum is wrong or its headers cannot be read.
pub(super) fn read(frame: &[u8]) -> Option<StreamEvent<'_>> {
    if !is_intact(frame) {
        return None;
    }
    let (_, headers) = lengths(frame)?;
    let body = frame.get(PRELUDE..frame.len().checked_sub(CHECKSUM)?)?;
    let (headers, payload) = body.split_at_checked(usize::try_from(headers).ok()?)?;
    let said = Said::read(headers)?;
    let (name, is_exception) = match said.message_type {
        Some("exception") => (said.exception_type, true),
        Some("error") => (said.error_code, true),
        _ => (said.event_type, false),
    };
    // An error outside the service's model has its sentence in a header and no payload.
    let data = match said.error_message {
        Some(message) if is_exception && payload.is_empty() => message.as_bytes(),
        _ => payload,
    };
    Some(StreamEvent {
        name,
        data: Cow::Borrowed(data),
        is_exception,
    })
}

/// The headers that say what a frame is.
#[derive(Default)]
struct Said<'a> {
    message_type: Option<&'a str>,
    event_type: Option<&'a str>,
    exception_type: Option<&'a str>,
    error_code: Option<&'a str>,
    error_message: Option<&'a str>,
}

impl<'a> Said<'a> {
    fn read(mut headers: &'a [u8]) -> Option<Self> {
        let mut said = Self::default();
        while let Some((name_length, rest)) = headers.split_first() {
            let (name, rest) = rest.split_at_checked(usize::from(*name_length))?;
            let (kind, rest) = rest.split_first()?;
            let (value, rest) = split_value(*kind, rest)?;
            headers = rest;
            let slot = match name {
                b":message-type" => &mut said.message_type,
                b":event-type" => &mut said.event_type,
                b":exception-type" => &mut said.exception_type,
                b":error-code" => &mut said.error_code,
                b":error-message" => &mut said.error_message,
                _ => continue,
            };
            *slot = std::str::from_utf8(value).ok();
        }
        Some(said)
    }
}

/// A header's value of this kind, and what follows it.
fn split_value(kind: u8, rest: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = match kind {
        0 | 1 => (0, rest), // true and false
        2 => (1, rest),     // a byte
        3 => (2, rest),     // 16 bits
        4 => (4, rest),     // 32 bits
        5 | 8 => (8, rest), // 64 bits, a time
        9 => (16, rest),    // a UUID
        6 | 7 => {
            // bytes and text, after their length
            let (length, rest) = rest.split_first_chunk()?;
            (usize::from(u16::from_be_bytes(*length)), rest)
        }
        _ => return None,
    };
    rest.split_at_checked(length)
}

/// The frame of an exception with this payload of JSON; none where a length does not fit its field.
pub(super) fn exception(name: &str, payload: &[u8]) -> Option<Bytes> {
    const TEXT: u8 = 7;
    let mut headers = Vec::new();
    for (key, value) in [
        (":exception-type", name),
        (":content-type", "application/json"),
        (":message-type", "exception"),
    ] {
        headers.push(u8::try_from(key.len()).ok()?);
        headers.extend_from_slice(key.as_bytes());
        headers.push(TEXT);
        headers.extend(u16::try_from(value.len()).ok()?.to_be_bytes());
        headers.extend_from_slice(value.as_bytes());
    }
    let headers_length = u32::try_from(headers.len()).ok()?;
    let payload_length = u32::try_from(payload.len()).ok()?;
    let total = OVERHEAD
        .checked_add(headers_length)?
        .checked_add(payload_length)?;
    let mut frame = total.to_be_bytes().to_vec();
    frame.extend(headers_length.to_be_bytes());
    frame.extend(crc32fast::hash(&frame).to_be_bytes());
    frame.extend(headers);
    frame.extend_from_slice(payload);
    frame.extend(crc32fast::hash(&frame).to_be_bytes());
    Some(frame.into())
}
