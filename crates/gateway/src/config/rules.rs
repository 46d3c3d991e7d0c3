//! Whose rules the classifier goes by at a provider: as written, or as its address tells.

use std::collections::BTreeSet;

use fuseline_llm::Classifier;
use http::Uri;

use super::document::Document;
use super::reader::Section;
use super::value::type_of;
use super::words::{did_you_mean, quoted};

/// Hosts and the names of their rules. One that begins with a dot stands for all below it, one that ends with a dot for
/// all that begin so. The dialect alone tells nothing: whoever speaks it may answer with errors of his own.
#[rustfmt::skip]
const HOSTS: [(&str, &str); 25] = [
    ("api.openai.com", "openai"),
    (".api.openai.com", "openai"),
    ("api.anthropic.com", "anthropic"),
    (".openai.azure.com", "azure"),
    (".cognitiveservices.azure.com", "azure"),
    (".services.ai.azure.com", "azure"),
    ("generativelanguage.googleapis.com", "google"),
    ("aiplatform.googleapis.com", "vertex"),
    ("-aiplatform.googleapis.com", "vertex"),
    ("bedrock-runtime.", "bedrock"),
    ("bedrock-runtime-fips.", "bedrock"),
    ("api.groq.com", "groq"),
    ("openrouter.ai", "openrouter"),
    ("api.mistral.ai", "mistral"),
    ("api.cohere.com", "cohere"),
    ("api.cohere.ai", "cohere"),
    ("api.deepseek.com", "deepseek"),
    ("api.x.ai", "xai"),
    ("api.together.xyz", "together"),
    ("api.together.ai", "together"),
    ("api.fireworks.ai", "fireworks"),
    ("api.cerebras.ai", "cerebras"),
    ("api.cloudflare.com", "cloudflare"),
    ("api.minimax.io", "minimax"),
    ("router.huggingface.co", "huggingface"),
];

/// The name by which the classifier knows who answers at this address; empty where nobody is known, and then the rules
/// for everybody hold.
pub(super) fn of_address(address: &Uri) -> &'static str {
    let host = address.host().unwrap_or_default().to_ascii_lowercase();
    let is_meant = |known: &str| match (known.starts_with(['.', '-']), known.ends_with('.')) {
        (true, _) => host.ends_with(known),
        (_, true) => host.starts_with(known),
        _ => host == known,
    };
    let found = HOSTS.iter().find(|(known, _)| is_meant(known));
    found.map_or("", |(_, name)| name)
}

/// The key `rules` of a provider. Whether there are such rules is seen when those of the operator's own are read.
pub(super) fn read(section: &mut Section<'_, '_>) -> Option<String> {
    let value = section.raw(
        "rules",
        "a provider's name in the rules, such as \"groq\"",
        "whose rules judge its answers; not written: those of the provider that base_url names, if it is a known one",
    )?;
    let Some(name) = value.get_ref().as_str() else {
        let (path, known) = (section.path("rules"), names(&Classifier::default()));
        let document = &mut section.document;
        document.mistake(&path, type_of(value.get_ref()), format!("write {known}"));
        return None;
    };
    Some(name.to_owned())
}

/// Tells of rules that a provider names and nobody has written.
pub(super) fn check(name: &str, key: &str, classifier: &Classifier, document: &mut Document<'_>) {
    let known: BTreeSet<&str> = classifier.providers().collect();
    if !known.contains(name) {
        let remedy = did_you_mean(name, known.iter().copied());
        let remedy = remedy.unwrap_or_else(|| format!("write {}", names(classifier)));
        document.mistake(key, "is not known", remedy);
    }
}

fn names(classifier: &Classifier) -> String {
    let known: BTreeSet<&str> = classifier.providers().collect();
    quoted(known.iter().copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_tell_whose_rules_hold_and_strangers_have_none() {
        for (address, name) in [
            ("https://api.openai.com/v1", "openai"),
            ("https://EU.api.OpenAI.com/v1", "openai"),
            ("https://mine.openai.azure.com/openai", "azure"),
            (
                "https://generativelanguage.googleapis.com/v1beta/openai",
                "google",
            ),
            (
                "https://europe-west4-aiplatform.googleapis.com/v1",
                "vertex",
            ),
            ("https://bedrock-runtime.eu-west-1.amazonaws.com", "bedrock"),
            ("https://api.openai.com.example.org/v1", ""),
            ("https://notopenai.azure.com", ""),
            ("http://127.0.0.1:8000/v1", ""),
        ] {
            assert_eq!(of_address(&address.parse().unwrap()), name, "{address}");
        }
    }

    #[test]
    fn every_host_leads_to_rules_that_there_are() {
        let known: BTreeSet<&str> = Classifier::builtin().providers().collect();
        for (host, name) in HOSTS {
            assert!(known.contains(name), "{host}: {name}");
        }
    }
}
