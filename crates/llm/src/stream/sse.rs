//! Server-sent events: lines that end in CR, LF or CRLF, and events that end at a blank line.
//!
//! Outside an event each comment and each blank line is a piece of its own, so that a heartbeat is passed on when it
//! comes. An event that ends in a lone CR at the end of a chunk is told at once; should LF follow, it is filler.

use std::borrow::Cow;

use memchr::{memchr, memchr2};

use super::StreamEvent;
use super::framing::Found;

/// Allowed once, before everything else.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Where the bytes so far have led.
#[derive(Debug)]
pub(super) struct Sse {
    /// How much of a byte order mark was there; none once the stream has begun.
    mark: Option<usize>,
    line: Line,
    /// Whether a field has come since the last event.
    in_event: bool,
    /// Whether the last line ended in CR at the end of a chunk: an LF that follows belongs to that end.
    after_cr: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum Line {
    Start,
    Comment,
    Field,
}

impl Default for Sse {
    fn default() -> Self {
        Self {
            mark: Some(0),
            line: Line::Start,
            in_event: false,
            after_cr: false,
        }
    }
}

impl Sse {
    pub(super) fn find(&mut self, bytes: &[u8]) -> Option<Found> {
        let first = *bytes.first()?;
        let mut at = 0;
        if let Some(matched) = self.mark {
            at = self.match_mark(matched, bytes);
            match self.mark {
                Some(_) => return None,
                None if matched + at == BYTE_ORDER_MARK.len() => return Some(Found::Filler(at)),
                None => {}
            }
        }
        if std::mem::take(&mut self.after_cr) && first == b'\n' {
            if !self.in_event {
                return Some(Found::Filler(1));
            }
            at = 1;
        }
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            let is_blank = self.begin_line(rest);
            let length = memchr2(b'\n', b'\r', rest)?;
            at += length + self.end_of_line(rest.get(length..).unwrap_or_default());
            if is_blank && std::mem::take(&mut self.in_event) {
                return Some(Found::Event(at));
            }
            self.in_event |= self.line == Line::Field;
            self.line = Line::Start;
            if !self.in_event {
                return Some(Found::Filler(at));
            }
        }
        None
    }

    /// How many bytes go on with the byte order mark. Where they turn out to be none, what came of it begins a field.
    fn match_mark(&mut self, matched: usize, bytes: &[u8]) -> usize {
        let wanted = BYTE_ORDER_MARK.get(matched..).unwrap_or_default();
        let same = wanted.iter().zip(bytes).take_while(|(a, b)| a == b).count();
        let is_whole = same == wanted.len();
        self.mark = (same == bytes.len() && !is_whole).then_some(matched + same);
        if self.mark.is_none() && !is_whole && matched + same > 0 {
            self.line = Line::Field;
        }
        same
    }

    /// Whether the line that begins or goes on here is blank.
    fn begin_line(&mut self, rest: &[u8]) -> bool {
        if self.line != Line::Start {
            return false;
        }
        match rest.first() {
            Some(b'\n' | b'\r') => return true,
            Some(b':') => self.line = Line::Comment,
            _ => self.line = Line::Field,
        }
        false
    }

    /// The length of the line's end, with which `rest` begins.
    fn end_of_line(&mut self, rest: &[u8]) -> usize {
        self.after_cr = rest == b"\r";
        if rest.starts_with(b"\r\n") { 2 } else { 1 }
    }
}

/// What an event's lines say; none where they hold neither a name nor data.
pub(super) fn read(mut lines: &[u8]) -> Option<StreamEvent<'_>> {
    let mut name = None;
    let mut data: Option<Cow<'_, [u8]>> = None;
    let mut is_exception = false;
    while !lines.is_empty() {
        let length = memchr2(b'\n', b'\r', lines).unwrap_or(lines.len());
        let (line, rest) = lines.split_at(length);
        // An LF after a CR makes one blank line more, which says nothing.
        lines = rest.get(1..).unwrap_or_default();
        let colon = memchr(b':', line).unwrap_or(line.len());
        let (field, value) = line.split_at(colon);
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"event" => name = std::str::from_utf8(value).ok(),
            b"data" => add_line(&mut data, value),
            b"error" => {
                is_exception = true;
                add_line(&mut data, value);
            }
            _ => {}
        }
    }
    let name = name.filter(|name| !name.is_empty());
    (name.is_some() || data.is_some()).then(|| StreamEvent {
        name,
        data: data.unwrap_or_default(),
        is_exception,
    })
}

fn add_line<'a>(data: &mut Option<Cow<'a, [u8]>>, line: &'a [u8]) {
    match data {
        None => *data = Some(line.into()),
        Some(lines) => {
            let lines = lines.to_mut();
            lines.push(b'\n');
            lines.extend_from_slice(line);
        }
    }
}
