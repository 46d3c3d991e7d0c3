//! A plain answer, told as a stream of its dialect: one clean stream of few events, with all that the answer holds.

mod responses;

use bytes::Bytes;
use fuseline_llm::{Dialect, Framing};
use serde_json::{Map, Value, json};

use super::key::Streamed;
use responses::responses;

/// None where the answer is not what the dialect says it should be, or the dialect's streams are not known here.
pub(super) fn unfold(dialect: Dialect, streamed: &Streamed, plain: &[u8]) -> Option<Bytes> {
    let answer: Map<String, Value> = serde_json::from_slice(plain).ok()?;
    let text = match (dialect, streamed.framing) {
        (Dialect::Gemini, Framing::JsonArray) => Value::from(vec![answer]).to_string(),
        (Dialect::Gemini, Framing::Sse) => event(None, &answer.into()),
        (Dialect::Anthropic, Framing::Sse) => anthropic(answer)?,
        (Dialect::OpenAiChat, Framing::Sse) => chat(answer, streamed.with_usage)?,
        (Dialect::OpenAiResponses, Framing::Sse) => responses(answer)?,
        _ => return None,
    };
    Some(text.into())
}

fn event(name: Option<&str>, data: &Value) -> String {
    match name {
        Some(name) => format!("event: {name}\ndata: {data}\n\n"),
        None => format!("data: {data}\n\n"),
    }
}

/// A chunk for each choice, one that finishes it, and the count of tokens if it was asked for.
fn chat(mut answer: Map<String, Value>, with_usage: bool) -> Option<String> {
    let Some(Value::Array(choices)) = answer.remove("choices") else {
        return None;
    };
    let usage = answer.remove("usage");
    answer.insert("object".to_owned(), "chat.completion.chunk".into());
    let chunk = |choices: Value| {
        let mut chunk = answer.clone();
        chunk.insert("choices".to_owned(), choices);
        event(None, &chunk.into())
    };
    let mut stream = String::new();
    for choice in choices {
        let Value::Object(mut choice) = choice else {
            return None;
        };
        let delta = delta(choice.remove("message")?)?;
        let finish = choice.remove("finish_reason");
        let index = choice.get("index").cloned().unwrap_or_else(|| 0.into());
        choice.insert("index".to_owned(), index.clone());
        choice.insert("delta".to_owned(), delta);
        choice.insert("finish_reason".to_owned(), Value::Null);
        stream += &chunk(json!([choice]));
        stream += &chunk(json!([{"index": index, "delta": {}, "finish_reason": finish}]));
    }
    if let (true, Some(usage)) = (with_usage, usage) {
        answer.insert("usage".to_owned(), usage);
        answer.insert("choices".to_owned(), json!([]));
        stream += &event(None, &answer.into());
    }
    Some(stream + "data: [DONE]\n\n")
}

/// A message as a delta: in a stream tool calls have numbers.
fn delta(mut message: Value) -> Option<Value> {
    let calls = message.as_object_mut()?.get_mut("tool_calls");
    if let Some(calls) = calls.and_then(Value::as_array_mut) {
        for (index, call) in calls.iter_mut().enumerate() {
            call.as_object_mut()?
                .insert("index".to_owned(), index.into());
        }
    }
    Some(message)
}

/// The message without content, each block in three events, and how it ended.
fn anthropic(mut message: Map<String, Value>) -> Option<String> {
    let named = |data: Value| event(data.get("type").and_then(Value::as_str), &data);
    let Some(Value::Array(blocks)) = message.insert("content".to_owned(), json!([])) else {
        return None;
    };
    let mut end = Map::new();
    for key in ["stop_reason", "stop_sequence", "stop_details"] {
        if let Some(said) = message.get_mut(key) {
            end.insert(key.to_owned(), said.take());
        }
    }
    let usage = message.get("usage").cloned().unwrap_or_else(|| json!({}));
    let mut stream = named(json!({"type": "message_start", "message": message}));
    for (index, block) in blocks.into_iter().enumerate() {
        let Value::Object(block) = block else {
            return None;
        };
        let (start, deltas) = block_events(block);
        stream +=
            &named(json!({"type": "content_block_start", "index": index, "content_block": start}));
        for delta in deltas {
            stream +=
                &named(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        }
        stream += &named(json!({"type": "content_block_stop", "index": index}));
    }
    stream += &named(json!({"type": "message_delta", "delta": end, "usage": usage}));
    Some(stream + &named(json!({"type": "message_stop"})))
}

/// A block as it begins, and what comes to it. One that is not known begins whole, as the provider's own do.
fn block_events(mut block: Map<String, Value>) -> (Value, Vec<Value>) {
    let mut deltas = Vec::new();
    let mut take = |key: &str, empty: Value| {
        block
            .get_mut(key)
            .map(|said| std::mem::replace(said, empty))
    };
    let text = take("text", "".into());
    let thinking = take("thinking", "".into());
    let signature = take("signature", "".into());
    let input = take("input", json!({}));
    let citations = take("citations", json!([]));
    deltas.extend(text.map(|text| json!({"type": "text_delta", "text": text})));
    deltas.extend(thinking.map(|thinking| json!({"type": "thinking_delta", "thinking": thinking})));
    deltas.extend(
        signature.map(|signature| json!({"type": "signature_delta", "signature": signature})),
    );
    deltas.extend(
        input.map(|input| json!({"type": "input_json_delta", "partial_json": input.to_string()})),
    );
    if let Some(Value::Array(citations)) = citations {
        let cited = |citation| json!({"type": "citations_delta", "citation": citation});
        deltas.extend(citations.into_iter().map(cited));
    }
    (block.into(), deltas)
}

#[cfg(test)]
mod tests;
