//! Where each dialect's events hold text, reasoning and tool calls.

use super::gathered::{Form, Gathered};
use super::node::{Fields, Node};
use crate::stream::{Dialect, StreamEvent};

/// Takes in what an event says.
pub(super) fn gather(dialect: Dialect, event: &StreamEvent<'_>, gathered: &mut Gathered) {
    let Ok(text) = std::str::from_utf8(&event.data) else {
        return;
    };
    let node = Node::new(text.trim());
    // An event in an array of its own, as at Vertex AI.
    let said = match &node.items()[..] {
        [alone] => alone.fields(),
        _ => node.fields(),
    };
    match dialect {
        Dialect::Anthropic => anthropic(&said, gathered),
        Dialect::Bedrock => bedrock(event.name.unwrap_or_default(), &said, gathered),
        Dialect::Cohere => cohere(&said, gathered),
        Dialect::Gemini => gemini(&said, gathered),
        Dialect::Ollama => ollama(&said, gathered),
        Dialect::OpenAiChat => chat(&said, gathered),
        Dialect::OpenAiResponses => responses(&said, gathered),
    }
}

/// Of several alternatives the first one is collected.
fn first_of(list: Node<'_>) -> Option<Fields<'_>> {
    let alternatives = list.items().into_iter().map(Node::fields);
    let mut first = alternatives.filter(|one| one.get("index").number().unwrap_or(0) == 0);
    first.next()
}

fn chat(said: &Fields<'_>, gathered: &mut Gathered) {
    let Some(choice) = first_of(said.get("choices")) else {
        return;
    };
    let delta = choice.get("delta").fields();
    gathered.add_text(delta.get("content"));
    gathered.add_text(delta.get("refusal"));
    gathered.add_text(choice.get("text"));
    gathered.add_reasoning(delta.first(&["reasoning_content", "reasoning"]));
    for part in delta.get("content").items() {
        mistral_part(&part.fields(), gathered);
    }
    for call in delta.get("tool_calls").items() {
        let call = call.fields();
        let (form, tool, input) = match call.get("custom").object() {
            Some(custom) => (Form::Text, Node::new(custom).fields(), "input"),
            None => (Form::Json, call.get("function").fields(), "arguments"),
        };
        let index = call.get("index").number();
        let (id, name) = (call.get("id"), tool.get("name"));
        let is_begun = id.text().is_empty() && name.text().is_empty() && gathered.has_call(index);
        if !is_begun {
            gathered.open_call(index, (id, name), form);
        }
        gathered.add_arguments(index, tool.get(input));
    }
    if let Some(call) = delta.get("function_call").object() {
        let call = Node::new(call).fields();
        gathered.open_call(Some(0), (Node::default(), call.get("name")), Form::Json);
        gathered.add_arguments(Some(0), call.get("arguments"));
    }
}

/// Its reasoning models send the content in parts.
fn mistral_part(part: &Fields<'_>, gathered: &mut Gathered) {
    gathered.add_text(part.get("text"));
    for thought in part.get("thinking").items() {
        gathered.add_reasoning(thought.get("text"));
    }
}

fn responses(said: &Fields<'_>, gathered: &mut Gathered) {
    let index = said.get("output_index").number();
    match said.get("type").text().as_str() {
        "response.output_text.delta" | "response.refusal.delta" => {
            gathered.add_text(said.get("delta"));
        }
        "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
            gathered.add_reasoning(said.get("delta"));
        }
        "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta" => {
            gathered.add_arguments(index, said.get("delta"));
        }
        "response.output_item.added" | "response.output_item.done" => {
            responses_call(index, &said.get("item").fields(), gathered);
        }
        // Some send the whole and nothing before it.
        "response.completed" if gathered.is_empty() => {
            let output = said.get("response").get("output").items();
            for (index, item) in (0..).zip(output) {
                let item = item.fields();
                for part in item.get("content").items() {
                    let part = part.fields();
                    gathered.add_text(part.first(&["text", "refusal"]));
                }
                responses_call(Some(index), &item, gathered);
            }
        }
        _ => {}
    }
}

fn responses_call(index: Option<u64>, item: &Fields<'_>, gathered: &mut Gathered) {
    let (form, input) = match item.get("type").text().as_str() {
        "function_call" => (Form::Json, "arguments"),
        "custom_tool_call" => (Form::Text, "input"),
        _ => return,
    };
    gathered.open_call(index, (item.get("call_id"), item.get("name")), form);
    gathered.set_arguments(index, item.first(&[input]));
}

fn anthropic(said: &Fields<'_>, gathered: &mut Gathered) {
    let index = said.get("index").number();
    match said.get("type").text().as_str() {
        "content_block_start" => {
            let block = said.get("content_block").fields();
            gathered.add_text(block.get("text"));
            gathered.add_reasoning(block.get("thinking"));
            if block.get("type").text() == "tool_use" {
                gathered.open_call(index, (block.get("id"), block.get("name")), Form::Json);
                gathered.add_arguments(index, block.get("input"));
            }
        }
        "content_block_delta" => {
            let delta = said.get("delta").fields();
            gathered.add_text(delta.get("text"));
            gathered.add_reasoning(delta.get("thinking"));
            gathered.add_arguments(index, delta.get("partial_json"));
        }
        _ => {}
    }
}

fn bedrock(name: &str, said: &Fields<'_>, gathered: &mut Gathered) {
    let index = said.get("contentBlockIndex").number();
    match name {
        "contentBlockStart" => {
            if let Some(tool) = said.get("start").get("toolUse").object() {
                let tool = Node::new(tool).fields();
                gathered.open_call(index, (tool.get("toolUseId"), tool.get("name")), Form::Json);
            }
        }
        "contentBlockDelta" => {
            let delta = said.get("delta").fields();
            gathered.add_text(delta.get("text"));
            gathered.add_reasoning(delta.get("reasoningContent").get("text"));
            gathered.add_arguments(index, delta.get("toolUse").get("input"));
        }
        _ => {}
    }
}

fn gemini(said: &Fields<'_>, gathered: &mut Gathered) {
    let Some(candidate) = first_of(said.get("candidates")) else {
        return;
    };
    for part in candidate.get("content").get("parts").items() {
        let part = part.fields();
        if part.get("thought").is_true() {
            gathered.add_reasoning(part.get("text"));
        } else {
            gathered.add_text(part.get("text"));
        }
        if let Some(call) = part.get("functionCall").object() {
            whole_call(&Node::new(call).fields(), "args", gathered);
        }
    }
}

/// A call that comes whole, in one event.
fn whole_call(call: &Fields<'_>, arguments: &str, gathered: &mut Gathered) {
    gathered.open_call(None, (call.get("id"), call.get("name")), Form::Json);
    gathered.add_arguments(None, call.get(arguments));
}

fn cohere(said: &Fields<'_>, gathered: &mut Gathered) {
    let message = said.get("delta").get("message").fields();
    let content = message.get("content").fields();
    gathered.add_text(content.get("text"));
    gathered.add_reasoning(content.get("thinking"));
    gathered.add_reasoning(message.get("tool_plan"));
    let index = said.get("index").number();
    let kind = said.first(&["type", "event_type"]).text();
    let call = message.get("tool_calls").fields();
    let function = call.get("function").fields();
    match kind.as_str() {
        "tool-call-start" => {
            gathered.open_call(index, (call.get("id"), function.get("name")), Form::Json);
            gathered.add_arguments(index, function.get("arguments"));
        }
        "tool-call-delta" => gathered.add_arguments(index, function.get("arguments")),
        // The first version.
        "text-generation" => gathered.add_text(said.get("text")),
        "tool-calls-generation" => {
            for call in said.get("tool_calls").items() {
                whole_call(&call.fields(), "parameters", gathered);
            }
        }
        _ => {}
    }
}

fn ollama(said: &Fields<'_>, gathered: &mut Gathered) {
    let message = said.get("message").fields();
    for speech in [said, &message] {
        gathered.add_reasoning(speech.get("thinking"));
    }
    gathered.add_text(message.get("content"));
    gathered.add_text(said.get("response"));
    for call in message.get("tool_calls").items() {
        whole_call(&call.get("function").fields(), "arguments", gathered);
    }
}
