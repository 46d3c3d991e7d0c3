//! `Tokens`: how large a request is, roughly, and what it would cost. Nobody's tokenizer: an estimate from the bytes.

use serde::Deserialize;

use crate::stream::Usage;

/// Bytes of text and markup per token, as English and source code have them.
const BYTES_PER_TOKEN: u64 = 4;
/// What an answer has where the request sets no limit.
const USUAL_OUTPUT: u64 = 500;
/// No text goes on for so long without a space or a mark: a file or an image, as base64.
const SHORTEST_FILE: usize = 512;
/// What providers count for an image of usual size.
const TOKENS_PER_FILE: u64 = 1_000;

/// A request's size in tokens, estimated.
///
/// ```
/// use fuseline_llm::Tokens;
///
/// let body = format!(r#"{{"model": "m", "max_tokens": 100, "prompt": "{}"}}"#, "word ".repeat(800));
/// let tokens = Tokens::estimate(body.as_bytes());
/// assert!((1_000..1_030).contains(&tokens.input));
/// assert_eq!(tokens.output, Some(100));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tokens {
    /// Of the request: a quarter of its bytes, embedded files aside.
    pub input: u64,
    /// The most that the answer may have; none where the request does not say.
    pub output: Option<u64>,
}

/// What a model costs, in US dollars per million tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "complete by definition: tokens go in, and come out"
)]
pub struct Price {
    /// For the request's tokens.
    pub input: f64,
    /// For the answer's.
    pub output: f64,
}

impl Price {
    /// What a request of this size costs, in US dollars. An answer without a limit counts as 500 tokens.
    pub fn of(self, tokens: Tokens) -> f64 {
        let output = tokens.output.unwrap_or(USUAL_OUTPUT);
        (self.input * tokens.input as f64 + self.output * output as f64) / 1e6
    }

    /// What an answer cost, in US dollars, by what its provider counted; none where that has counted nothing.
    ///
    /// ```
    /// use fuseline_llm::{Price, Usage};
    ///
    /// let price = Price { input: 2.0, output: 10.0 };
    /// let usage = Usage::of_answer(br#"{"usage": {"prompt_tokens": 1000, "completion_tokens": 300}}"#);
    /// assert_eq!(price.of_usage(usage), Some(0.005));
    /// assert_eq!(price.of_usage(Usage::default()), None);
    /// ```
    pub fn of_usage(self, usage: Usage) -> Option<f64> {
        let Usage {
            input_tokens: input,
            output_tokens: output,
        } = usage;
        input.or(output)?;
        Some(self.of(Tokens {
            input: input.unwrap_or(0),
            output: Some(output.unwrap_or(0)),
        }))
    }
}

impl Tokens {
    /// Estimates a request by its body, whatever its dialect.
    pub fn estimate(body: &[u8]) -> Self {
        let (mut text, mut files) = (body.len(), 0_u64);
        for run in body.split(|byte| !is_base64(*byte)) {
            if run.len() >= SHORTEST_FILE {
                text -= run.len();
                files += 1;
            }
        }
        let text = (text as u64).div_ceil(BYTES_PER_TOKEN);
        Self {
            input: text.saturating_add(files.saturating_mul(TOKENS_PER_FILE)),
            output: Ceiling::of(body),
        }
    }

    /// What a model must have room for: the request and the answer that it asks for.
    pub fn needed(self) -> u64 {
        self.input.saturating_add(self.output.unwrap_or(0))
    }
}

const fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_' | b'=')
}

/// The limit of an answer, by the names that the dialects give it.
#[derive(Deserialize)]
struct Ceiling {
    max_completion_tokens: Option<u64>,
    max_output_tokens: Option<u64>,
    max_tokens: Option<u64>,
    #[serde(rename = "generationConfig", alias = "generation_config")]
    generation: Option<Generation>,
}

#[derive(Deserialize)]
struct Generation {
    #[serde(rename = "maxOutputTokens", alias = "max_output_tokens")]
    max: Option<u64>,
}

impl Ceiling {
    fn of(body: &[u8]) -> Option<u64> {
        let found: Self = serde_json::from_slice(body).ok()?;
        let of_generation = found.generation.and_then(|generation| generation.max);
        found
            .max_completion_tokens
            .or(found.max_output_tokens)
            .or(found.max_tokens)
            .or(of_generation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answers_limit_is_found_in_every_dialect() {
        for (body, output) in [
            (r#"{"max_tokens": 7}"#, Some(7)),
            (r#"{"max_tokens": 7, "max_completion_tokens": 8}"#, Some(8)),
            (r#"{"max_output_tokens": 9, "input": "x"}"#, Some(9)),
            (r#"{"generationConfig": {"maxOutputTokens": 10}}"#, Some(10)),
            (
                r#"{"generation_config": {"max_output_tokens": 11}}"#,
                Some(11),
            ),
            (r#"{"max_tokens": null}"#, None),
            (r#"{"max_tokens": "many"}"#, None),
            ("no JSON", None),
            ("", None),
        ] {
            assert_eq!(Tokens::estimate(body.as_bytes()).output, output, "{body}");
        }
    }

    #[test]
    fn text_counts_by_its_bytes_and_an_embedded_file_as_an_image() {
        let text = "Twelve words, and none of them would be longer than a file. ".repeat(100);
        assert_eq!(Tokens::estimate(text.as_bytes()).input, 1_500);
        let image = format!(
            "{{\"url\":\"data:image/png;base64,{}\"}}",
            "iVBORw0K".repeat(100_000)
        );
        assert_eq!(Tokens::estimate(image.as_bytes()).input, 1_000 + 8);
        assert_eq!(Tokens::default().needed(), 0);
    }

    #[test]
    fn a_price_is_of_both_directions() {
        let price = Price {
            input: 2.0,
            output: 10.0,
        };
        let tokens = |output| Tokens {
            input: 1_000_000,
            output,
        };
        assert_eq!(price.of(tokens(Some(100_000))), 3.0);
        assert_eq!(price.of(tokens(None)), 2.005);
        assert_eq!(tokens(Some(24)).needed(), 1_000_024);
    }
}
