//! `Pattern`: a model name or a glob over model names, and which of two matching ones is closer.

use globset::{Glob, GlobMatcher};
use toml::de::DeValue;

use super::value::{Setting, Wrong, text};

/// A model name or a glob: `*` and `?` match across `/`, `[ab]` and `{a,b}` choose.
#[derive(Clone, Debug)]
pub struct Pattern {
    text: String,
    /// None for a plain name.
    glob: Option<GlobMatcher>,
}

impl Pattern {
    /// Whether the model is meant.
    pub fn matches(&self, model: &str) -> bool {
        match &self.glob {
            None => self.text == model,
            // Most routes' last word, asked for with every call.
            Some(_) if self.text == "*" => true,
            Some(glob) => glob.is_match(model),
        }
    }

    /// As written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it names one model.
    pub fn is_exact(&self) -> bool {
        self.glob.is_none()
    }

    /// Greater is closer: a plain name above any glob, then by the number of literal characters.
    pub fn rank(&self) -> (bool, usize) {
        (
            self.is_exact(),
            self.text
                .chars()
                .filter(|sign| !GLOB_SIGNS.contains(sign))
                .count(),
        )
    }
}

impl Setting for Pattern {
    const FORM: &'static str = "a model name or a glob such as \"gpt-*\"";

    fn read(value: &DeValue<'_>) -> Result<Self, Wrong> {
        let text = text(value)?;
        if text.is_empty() {
            return Err(Wrong::Value("is empty"));
        }
        let glob = if text.contains(GLOB_SIGNS) {
            Some(
                Glob::new(text)
                    .map_err(|_| Wrong::Value("is no glob"))?
                    .compile_matcher(),
            )
        } else {
            None
        };
        Ok(Self {
            text: text.to_owned(),
            glob,
        })
    }

    fn written(&self) -> String {
        format!("{:?}", self.text)
    }
}

const GLOB_SIGNS: [char; 7] = ['*', '?', '[', ']', '{', '}', '\\'];
