//! The usage that a whole answer tells, in whichever dialect it is.

use super::Usage;
use super::json::usage;
use crate::json::{Object as _, Value, object};

object! {
    /// Where an answer says it: the fields of all dialects beside each other, since no two of them mean different things
    /// by one name.
    pub(crate) struct Told {
        pub(crate) usage,
        pub(crate) gemini = "usageMetadata",
        /// Of Cohere's first version.
        pub(crate) meta,
        /// Of Ollama.
        pub(crate) prompt_eval_count,
        pub(crate) eval_count,
    }
}

object! {
    struct Tokens {
        prompt_tokens,
        completion_tokens,
        input_tokens,
        output_tokens,
        cache_creation_input_tokens,
        cache_read_input_tokens,
        /// Bedrock writes in another case.
        bedrock_input = "inputTokens",
        bedrock_output = "outputTokens",
        bedrock_cache_read = "cacheReadInputTokens",
        bedrock_cache_write = "cacheWriteInputTokens",
        /// Of Cohere's second version.
        tokens,
    }
}

object! {
    struct Gemini {
        prompt = "promptTokenCount",
        candidates = "candidatesTokenCount",
        thoughts = "thoughtsTokenCount",
    }
}

object! {
    /// Of Cohere.
    struct Meta {
        tokens,
    }
}

object! {
    struct Cohere {
        input_tokens,
        output_tokens,
    }
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
        Told::of(body).map_or_else(Self::default, |told| told.usage())
    }
}

impl Told<'_> {
    pub(crate) fn usage(&self) -> Usage {
        let number = |value: Option<Value<'_>>| value?.number();
        if let Some(tokens) = self.gemini.and_then(Gemini::read) {
            let output = [tokens.candidates, tokens.thoughts].map(number);
            return usage([number(tokens.prompt)], output);
        }
        let told = self.usage.and_then(Tokens::read).unwrap_or_default();
        let of_cohere = || self.meta.and_then(Meta::read)?.tokens;
        if let Some(tokens) = told.tokens.or_else(of_cohere).and_then(Cohere::read) {
            return usage(
                [number(tokens.input_tokens)],
                [number(tokens.output_tokens)],
            );
        }
        // Who writes the same count under both names means one of them.
        let input = told.prompt_tokens.or(told.input_tokens);
        let output = told.completion_tokens.or(told.output_tokens);
        let input = [
            input.or(told.bedrock_input).or(self.prompt_eval_count),
            told.cache_creation_input_tokens,
            told.cache_read_input_tokens,
            told.bedrock_cache_read,
            told.bedrock_cache_write,
        ];
        let output = output.or(told.bedrock_output).or(self.eval_count);
        usage(input.map(number), [number(output)])
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
