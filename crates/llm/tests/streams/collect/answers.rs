//! The same answer in every dialect: a text of letters that are easily cut, reasoning, tool calls, a finish, tokens.

use fuseline_llm::{Dialect, Framing};

use crate::support::{frame, header};

pub(crate) struct Spoken {
    pub(crate) name: &'static str,
    pub(crate) of: (Dialect, Framing),
    /// The data of each event, its name before a `|` where it has one.
    events: &'static [&'static str],
    pub(crate) reasoning: &'static str,
    pub(crate) calls: &'static [(&'static str, &'static str, &'static str)],
    pub(crate) tokens: (Option<u64>, Option<u64>),
}

impl Spoken {
    pub(crate) fn all() -> [Self; 9] {
        [
            CHAT,
            RESPONSES,
            ANTHROPIC,
            GEMINI,
            GEMINI_ARRAY,
            BEDROCK,
            COHERE,
            COHERE_1,
            OLLAMA,
        ]
    }

    pub(crate) fn events(&self) -> Vec<Vec<u8>> {
        let last = self.events.len() - 1;
        let numbered = self.events.iter().enumerate();
        numbered
            .map(|(number, event)| {
                let (name, data) = event.split_once('|').unwrap_or(("", event));
                match self.of.1 {
                    Framing::Sse if name.is_empty() => format!("data: {data}\n\n").into_bytes(),
                    Framing::Sse => format!("event: {name}\ndata: {data}\n\n").into_bytes(),
                    Framing::NdJson => format!("{data}\n").into_bytes(),
                    Framing::JsonArray => {
                        let (before, after) = match number {
                            0 => ("[", ""),
                            number if number == last => (",", "]"),
                            _ => (",", ""),
                        };
                        format!("{before}{data}{after}").into_bytes()
                    }
                    Framing::EventStream => {
                        let headers = [
                            header(":event-type", name.as_bytes()),
                            header(":message-type", b"event"),
                        ];
                        frame(&headers.concat(), data.as_bytes())
                    }
                    other => panic!("{other:?} is not spoken here"),
                }
            })
            .collect()
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.events().concat()
    }
}

const READ: (&str, &str, &str) = ("call_1", "read", r#"{"path":"a/ü.txt"}"#);
const LIST: (&str, &str, &str) = ("call_2", "list", "{}");
const TOKENS: (Option<u64>, Option<u64>) = (Some(3), Some(5));

const CHAT: Spoken = Spoken {
    name: "chat",
    of: (Dialect::OpenAiChat, Framing::Sse),
    events: &[
        r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"content":null,"reasoning_content":"Hm. "}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"reasoning":"Yes."}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"content":"你"}}]}"#,
        r#"{"choices":[{"index":1,"delta":{"content":"another choice"}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"content":"\u597d\ud83d"}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"content":"\ude42"}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"read","arguments":""}}]}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"path\":\"a/\u00fc"}}]}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"call_2","function":{"name":"list","arguments":"{}"}}]}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":".txt\"}"}}]}}]}"#,
        r#"{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#,
        r#"{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":5,"total_tokens":8}}"#,
        "[DONE]",
    ],
    reasoning: "Hm. Yes.",
    calls: &[READ, LIST],
    tokens: TOKENS,
};

const RESPONSES: Spoken = Spoken {
    name: "responses",
    of: (Dialect::OpenAiResponses, Framing::Sse),
    events: &[
        r#"response.created|{"type":"response.created","response":{"status":"in_progress"}}"#,
        r#"response.reasoning_summary_text.delta|{"type":"response.reasoning_summary_text.delta","output_index":0,"delta":"Hm."}"#,
        r#"response.output_text.delta|{"type":"response.output_text.delta","output_index":1,"delta":"你好"}"#,
        r#"response.output_text.delta|{"type":"response.output_text.delta","output_index":1,"delta":"🙂"}"#,
        r#"response.output_text.done|{"type":"response.output_text.done","output_index":1,"text":"你好🙂"}"#,
        r#"response.output_item.added|{"type":"response.output_item.added","output_index":2,"item":{"type":"function_call","id":"fc_1","call_id":"call_1","name":"read","arguments":""}}"#,
        r#"response.function_call_arguments.delta|{"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":2,"delta":"{\"path\":\"a/ü"}"#,
        r#"response.function_call_arguments.delta|{"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":2,"delta":".txt\"}"}"#,
        r#"response.output_item.done|{"type":"response.output_item.done","output_index":2,"item":{"type":"function_call","call_id":"call_1","name":"read","arguments":"{\"path\":\"a/ü.txt\"}"}}"#,
        r#"response.output_item.done|{"type":"response.output_item.done","output_index":3,"item":{"type":"function_call","call_id":"call_2","name":"list","arguments":"{}"}}"#,
        r#"response.output_item.added|{"type":"response.output_item.added","output_index":4,"item":{"type":"web_search_call","id":"ws_1"}}"#,
        r#"response.output_item.done|{"type":"response.output_item.done","output_index":4,"item":{"type":"web_search_call","id":"ws_1"}}"#,
        r#"response.completed|{"type":"response.completed","response":{"output":[{"type":"message","content":[{"text":"again"}]}],"usage":{"input_tokens":3,"output_tokens":5}}}"#,
    ],
    reasoning: "Hm.",
    calls: &[READ, LIST],
    tokens: TOKENS,
};

const ANTHROPIC: Spoken = Spoken {
    name: "anthropic",
    of: (Dialect::Anthropic, Framing::Sse),
    events: &[
        r#"message_start|{"type":"message_start","message":{"usage":{"input_tokens":3,"output_tokens":1}}}"#,
        r#"content_block_start|{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}"#,
        r#"content_block_delta|{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Hm."}}"#,
        r#"content_block_delta|{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"xyz"}}"#,
        r#"content_block_stop|{"type":"content_block_stop","index":0}"#,
        r#"content_block_start|{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}"#,
        r#"content_block_delta|{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"你好"}}"#,
        r#"ping|{"type":"ping"}"#,
        r#"content_block_delta|{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"🙂"}}"#,
        r#"content_block_stop|{"type":"content_block_stop","index":1}"#,
        r#"content_block_start|{"type":"content_block_start","index":2,"content_block":{"type":"server_tool_use","id":"srv_1","name":"web_search","input":{}}}"#,
        r#"content_block_delta|{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"query\":\"x\"}"}}"#,
        r#"content_block_stop|{"type":"content_block_stop","index":2}"#,
        r#"content_block_start|{"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"call_1","name":"read","input":{}}}"#,
        r#"content_block_delta|{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":""}}"#,
        r#"content_block_delta|{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{\"path\":\"a/ü"}}"#,
        r#"content_block_delta|{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":".txt\"}"}}"#,
        r#"content_block_stop|{"type":"content_block_stop","index":3}"#,
        r#"content_block_start|{"type":"content_block_start","index":4,"content_block":{"type":"tool_use","id":"call_2","name":"list","input":{}}}"#,
        r#"content_block_stop|{"type":"content_block_stop","index":4}"#,
        r#"message_delta|{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":5}}"#,
        r#"message_stop|{"type":"message_stop"}"#,
    ],
    reasoning: "Hm.",
    calls: &[READ, LIST],
    tokens: TOKENS,
};

const GEMINI_EVENTS: &[&str] = &[
    r#"{"candidates":[{"content":{"parts":[{"thought":true,"text":"Hm."}]},"index":0}]}"#,
    r#"{"candidates":[{"content":{"parts":[{"text":"你好"},{"text":"🙂"}]},"index":0}]}"#,
    r#"{"candidates":[{"content":{"parts":[{"functionCall":{"id":"call_1","name":"read","args":{"path":"a/ü.txt"}}},{"functionCall":{"id":"call_2","name":"list","args":{}}}]},"index":0}]}"#,
    r#"{"candidates":[{"content":{"parts":[{"text":""}]},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":4,"thoughtsTokenCount":1}}"#,
];

const GEMINI: Spoken = Spoken {
    name: "gemini",
    of: (Dialect::Gemini, Framing::Sse),
    events: GEMINI_EVENTS,
    reasoning: "Hm.",
    calls: &[READ, LIST],
    tokens: TOKENS,
};

const GEMINI_ARRAY: Spoken = Spoken {
    name: "gemini's array",
    of: (Dialect::Gemini, Framing::JsonArray),
    ..GEMINI
};

const BEDROCK: Spoken = Spoken {
    name: "bedrock",
    of: (Dialect::Bedrock, Framing::EventStream),
    events: &[
        r#"messageStart|{"role":"assistant"}"#,
        r#"contentBlockDelta|{"contentBlockIndex":0,"delta":{"reasoningContent":{"text":"Hm."}}}"#,
        r#"contentBlockStop|{"contentBlockIndex":0}"#,
        r#"contentBlockDelta|{"contentBlockIndex":1,"delta":{"text":"你好"}}"#,
        r#"contentBlockDelta|{"contentBlockIndex":1,"delta":{"text":"🙂"}}"#,
        r#"contentBlockStop|{"contentBlockIndex":1}"#,
        r#"contentBlockStart|{"contentBlockIndex":2,"start":{"toolUse":{"toolUseId":"call_1","name":"read"}}}"#,
        r#"contentBlockDelta|{"contentBlockIndex":2,"delta":{"toolUse":{"input":"{\"path\":\"a/ü"}}}"#,
        r#"contentBlockDelta|{"contentBlockIndex":2,"delta":{"toolUse":{"input":".txt\"}"}}}"#,
        r#"contentBlockStop|{"contentBlockIndex":2}"#,
        r#"contentBlockStart|{"contentBlockIndex":3,"start":{"toolUse":{"toolUseId":"call_2","name":"list"}}}"#,
        r#"contentBlockStop|{"contentBlockIndex":3}"#,
        r#"messageStop|{"stopReason":"tool_use"}"#,
        r#"metadata|{"usage":{"inputTokens":3,"outputTokens":5}}"#,
    ],
    reasoning: "Hm.",
    calls: &[READ, LIST],
    tokens: TOKENS,
};

const COHERE: Spoken = Spoken {
    name: "cohere",
    of: (Dialect::Cohere, Framing::Sse),
    events: &[
        r#"message-start|{"type":"message-start","delta":{"message":{"role":"assistant","content":[],"tool_calls":[]}}}"#,
        r#"tool-plan-delta|{"type":"tool-plan-delta","delta":{"message":{"tool_plan":"Hm."}}}"#,
        r#"content-delta|{"type":"content-delta","index":0,"delta":{"message":{"content":{"text":"你好"}}}}"#,
        r#"content-delta|{"type":"content-delta","index":0,"delta":{"message":{"content":{"text":"🙂"}}}}"#,
        r#"content-end|{"type":"content-end","index":0}"#,
        r#"tool-call-start|{"type":"tool-call-start","index":0,"delta":{"message":{"tool_calls":{"id":"call_1","type":"function","function":{"name":"read","arguments":""}}}}}"#,
        r#"tool-call-delta|{"type":"tool-call-delta","index":0,"delta":{"message":{"tool_calls":{"function":{"arguments":"{\"path\":\"a/ü"}}}}}"#,
        r#"tool-call-delta|{"type":"tool-call-delta","index":0,"delta":{"message":{"tool_calls":{"function":{"arguments":".txt\"}"}}}}}"#,
        r#"tool-call-end|{"type":"tool-call-end","index":0}"#,
        r#"tool-call-start|{"type":"tool-call-start","index":1,"delta":{"message":{"tool_calls":{"id":"call_2","type":"function","function":{"name":"list","arguments":"{}"}}}}}"#,
        r#"tool-call-end|{"type":"tool-call-end","index":1}"#,
        r#"message-end|{"type":"message-end","delta":{"finish_reason":"TOOL_CALL","usage":{"tokens":{"input_tokens":3.0,"output_tokens":5.0}}}}"#,
    ],
    reasoning: "Hm.",
    calls: &[READ, LIST],
    tokens: TOKENS,
};

const COHERE_1: Spoken = Spoken {
    name: "cohere's first version",
    of: (Dialect::Cohere, Framing::NdJson),
    events: &[
        r#"{"event_type":"stream-start","is_finished":false}"#,
        r#"{"event_type":"text-generation","is_finished":false,"text":"你好"}"#,
        r#"{"event_type":"text-generation","is_finished":false,"text":"🙂"}"#,
        r#"{"event_type":"tool-calls-generation","is_finished":false,"tool_calls":[{"name":"read","parameters":{"path":"a/ü.txt"}},{"name":"list","parameters":{}}]}"#,
        r#"{"event_type":"stream-end","is_finished":true,"finish_reason":"COMPLETE","response":{"text":"你好🙂","meta":{"tokens":{"input_tokens":3,"output_tokens":5}}}}"#,
    ],
    reasoning: "",
    calls: &[("", "read", READ.2), ("", "list", "{}")],
    tokens: TOKENS,
};

const OLLAMA: Spoken = Spoken {
    name: "ollama",
    of: (Dialect::Ollama, Framing::NdJson),
    events: &[
        r#"{"message":{"role":"assistant","content":"","thinking":"Hm."},"done":false}"#,
        r#"{"message":{"role":"assistant","content":"你好"},"done":false}"#,
        r#"{"message":{"role":"assistant","content":"🙂"},"done":false}"#,
        r#"{"message":{"role":"assistant","content":"","tool_calls":[{"function":{"name":"read","arguments":{"path":"a/ü.txt"}}},{"function":{"name":"list","arguments":{}}}]},"done":false}"#,
        r#"{"message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","prompt_eval_count":3,"eval_count":5}"#,
    ],
    reasoning: "Hm.",
    calls: &[("", "read", READ.2), ("", "list", "{}")],
    tokens: TOKENS,
};
