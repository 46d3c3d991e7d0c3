//! How names are told: as a list, or as the one that was probably meant.

/// The name among the known that was probably meant.
pub(super) fn did_you_mean<'a>(
    written: &str,
    known: impl Iterator<Item = &'a str>,
) -> Option<String> {
    let distance = |name: &str| strsim::damerau_levenshtein(written, name);
    let close = known.map(|name| (distance(name), name)).min()?;
    (close.0 <= 1.max(close.1.len() / 3)).then(|| format!("did you mean {:?}?", close.1))
}

/// A list of texts as one writes them.
pub(super) fn quoted<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<_> = names.map(|name| format!("{name:?}")).collect();
    match names.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => names.concat(),
    }
}
