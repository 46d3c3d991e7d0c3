//! The usage that a whole answer tells, in whichever dialect it is.

use serde::Deserialize;

use super::Usage;
use super::json::usage;

/// The fields of all dialects beside each other: no two of them mean different things by one name.
#[derive(Deserialize)]
struct Answer {
    usage: Option<Tokens>,
    #[serde(rename = "usageMetadata")]
    gemini: Option<Gemini>,
    /// Of Cohere's first version.
    meta: Option<Meta>,
    /// Of Ollama.
    prompt_eval_count: Option<f64>,
    eval_count: Option<f64>,
}

#[derive(Default, Deserialize)]
struct Tokens {
    prompt_tokens: Option<f64>,
    completion_tokens: Option<f64>,
    input_tokens: Option<f64>,
    output_tokens: Option<f64>,
    cache_creation_input_tokens: Option<f64>,
    cache_read_input_tokens: Option<f64>,
    /// Bedrock writes in another case.
    #[serde(rename = "inputTokens")]
    bedrock_input: Option<f64>,
    #[serde(rename = "outputTokens")]
    bedrock_output: Option<f64>,
    #[serde(rename = "cacheReadInputTokens")]
    bedrock_cache_read: Option<f64>,
    #[serde(rename = "cacheWriteInputTokens")]
    bedrock_cache_write: Option<f64>,
    /// Of Cohere's second version.
    tokens: Option<Cohere>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Gemini {
    prompt_token_count: Option<f64>,
    candidates_token_count: Option<f64>,
    thoughts_token_count: Option<f64>,
}

#[derive(Deserialize)]
struct Meta {
    tokens: Option<Cohere>,
}

#[derive(Deserialize)]
struct Cohere {
    input_tokens: Option<f64>,
    output_tokens: Option<f64>,
}

impl Usage {
    /// What a whole answer says that it used; nothing where it does not say.
    ///
    /// ```
    /// use fuseline_llm::Usage;
    ///
    /// let usage = Usage::of_answer(br#"{"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}"#);
    /// assert_eq!((usage.input_tokens, usage.output_tokens), (Some(3), Some(2)));
    /// assert_eq!(Usage::of_answer(b"no JSON"), Usage::default());
    /// ```
    pub fn of_answer(body: &[u8]) -> Self {
        serde_json::from_slice(body).map_or_else(|_| Self::default(), Answer::usage)
    }
}

impl Answer {
    fn usage(self) -> Usage {
        if let Some(tokens) = self.gemini {
            let output = [tokens.candidates_token_count, tokens.thoughts_token_count];
            return usage([tokens.prompt_token_count], output);
        }
        let told = self.usage.unwrap_or_default();
        if let Some(tokens) = told
            .tokens
            .or_else(|| self.meta.and_then(|meta| meta.tokens))
        {
            return usage([tokens.input_tokens], [tokens.output_tokens]);
        }
        // Who writes the same count under both names means one of them.
        let input = told.prompt_tokens.or(told.input_tokens);
        let output = told.completion_tokens.or(told.output_tokens);
        usage(
            [
                input.or(told.bedrock_input).or(self.prompt_eval_count),
                told.cache_creation_input_tokens,
                told.cache_read_input_tokens,
                told.bedrock_cache_read,
                told.bedrock_cache_write,
            ],
            [output.or(told.bedrock_output).or(self.eval_count)],
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_dialect_tells_what_an_answer_used() {
        for (body, input, output) in [
            (
                r#"{"choices":[{"message":{"content":"so"}}],"usage":{"prompt_tokens":3.0,"completion_tokens":2}}"#,
                Some(3),
                Some(2),
            ),
            (
                r#"{"data":[],"usage":{"prompt_tokens":8,"total_tokens":8}}"#,
                Some(8),
                None,
            ),
            (
                r#"{"output":[],"usage":{"input_tokens":3,"input_tokens_details":{"cached_tokens":2},"output_tokens":2}}"#,
                Some(3),
                Some(2),
            ),
            (
                r#"{"usage":{"prompt_tokens":3,"input_tokens":3,"completion_tokens":2,"output_tokens":2}}"#,
                Some(3),
                Some(2),
            ),
            (
                r#"{"type":"message","usage":{"input_tokens":3,"cache_read_input_tokens":4,"output_tokens":1}}"#,
                Some(7),
                Some(1),
            ),
            (
                r#"{"candidates":[],"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":2,"thoughtsTokenCount":4}}"#,
                Some(3),
                Some(6),
            ),
            (
                r#"{"output":{},"usage":{"inputTokens":3,"outputTokens":1,"cacheReadInputTokens":2}}"#,
                Some(5),
                Some(1),
            ),
            (
                r#"{"usage":{"billed_units":{"input_tokens":1},"tokens":{"input_tokens":3.0,"output_tokens":2}}}"#,
                Some(3),
                Some(2),
            ),
            (
                r#"{"meta":{"tokens":{"input_tokens":3,"output_tokens":2}}}"#,
                Some(3),
                Some(2),
            ),
            (
                r#"{"done":true,"prompt_eval_count":3,"eval_count":2}"#,
                Some(3),
                Some(2),
            ),
            (r#"{"usage":null}"#, None, None),
            (r#"{"usage":"much"}"#, None, None),
            ("[]", None, None),
            ("", None, None),
        ] {
            let usage = Usage::of_answer(body.as_bytes());
            assert_eq!(
                (usage.input_tokens, usage.output_tokens),
                (input, output),
                "{body}"
            );
        }
    }
}
