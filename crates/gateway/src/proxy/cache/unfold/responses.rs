//! A response of OpenAI's, told as the stream of its items and their parts.

use serde_json::{Map, Value, json};

use super::event;

/// None where the response has not ended in a way that a stream can tell.
pub(super) fn responses(whole: Map<String, Value>) -> Option<String> {
    let last = match whole.get("status")?.as_str()? {
        "completed" => "response.completed",
        "incomplete" => "response.incomplete",
        _ => return None,
    };
    let mut begun = whole.clone();
    begun.insert("status".to_owned(), "in_progress".into());
    begun.insert("output".to_owned(), json!([]));
    for unknown in ["usage", "incomplete_details", "completed_at"] {
        if let Some(said) = begun.get_mut(unknown) {
            *said = Value::Null;
        }
    }
    let mut events = Events::default();
    events.add("response.created", json!({"response": begun}));
    events.add("response.in_progress", json!({"response": begun}));
    for (index, item) in whole.get("output")?.as_array()?.iter().enumerate() {
        events.item(index, item.as_object()?)?;
    }
    events.add(last, json!({"response": whole}));
    Some(events.stream)
}

/// What was told so far.
#[derive(Default)]
struct Events {
    stream: String,
    count: u64,
}

impl Events {
    fn add(&mut self, kind: &str, mut data: Value) {
        if let Some(data) = data.as_object_mut() {
            data.insert("type".to_owned(), kind.into());
            data.insert("sequence_number".to_owned(), self.count.into());
        }
        self.count += 1;
        self.stream += &event(Some(kind), &data);
    }

    /// An item as it begins, what comes to it, and all of it. One that is not known begins whole.
    fn item(&mut self, index: usize, whole: &Map<String, Value>) -> Option<()> {
        let id = whole.get("id").cloned().unwrap_or_default();
        let mut begun = whole.clone();
        if begun.contains_key("status") {
            begun.insert("status".to_owned(), "in_progress".into());
        }
        let kind = whole.get("type")?.as_str()?;
        match kind {
            "message" => begun.insert("content".to_owned(), json!([])),
            "function_call" => begun.insert("arguments".to_owned(), "".into()),
            _ => None,
        };
        self.add(
            "response.output_item.added",
            json!({"output_index": index, "item": begun}),
        );
        match kind {
            "message" => {
                for (at, part) in whole.get("content")?.as_array()?.iter().enumerate() {
                    let place = json!({"item_id": id, "output_index": index, "content_index": at});
                    self.part(&place, part.as_object()?)?;
                }
            }
            "function_call" => {
                let arguments = whole.get("arguments")?;
                let place = json!({"item_id": id, "output_index": index});
                let told = |key| with(&place, key, arguments);
                self.add("response.function_call_arguments.delta", told("delta"));
                self.add("response.function_call_arguments.done", told("arguments"));
            }
            _ => {}
        }
        self.add(
            "response.output_item.done",
            json!({"output_index": index, "item": whole}),
        );
        Some(())
    }

    fn part(&mut self, place: &Value, whole: &Map<String, Value>) -> Option<()> {
        let (field, kind) = match whole.get("type")?.as_str()? {
            "output_text" => ("text", "response.output_text"),
            "refusal" => ("refusal", "response.refusal"),
            _ => return None,
        };
        let said = whole.get(field)?;
        let mut begun = whole.clone();
        begun.insert(field.to_owned(), "".into());
        let begun = begun.into();
        let whole = whole.clone().into();
        self.add("response.content_part.added", with(place, "part", &begun));
        self.add(&format!("{kind}.delta"), with(place, "delta", said));
        self.add(&format!("{kind}.done"), with(place, field, said));
        self.add("response.content_part.done", with(place, "part", &whole));
        Some(())
    }
}

fn with(place: &Value, key: &str, value: &Value) -> Value {
    let mut data = place.clone();
    if let Some(data) = data.as_object_mut() {
        data.insert(key.to_owned(), value.clone());
    }
    data
}
