//! The keys that are accepted, checked and not obeyed yet. A feature that arrives deletes its rows here.

/// The end of each such key's path, without indexes and names, and the value, as written, that is true already.
const LATER: &[(&str, Option<&str>)] = &[("fleet", None)];

/// The name under which the key at this path is told to have no effect yet, if this value of it has none.
pub(super) fn name(path: &str, value: &str) -> Option<&'static str> {
    let named = |(key, _): &&(&'static str, _)| {
        path.strip_suffix(key)
            .is_some_and(|front| front.is_empty() || front.ends_with('.'))
    };
    let (key, unless) = LATER.iter().find(named)?;
    (*unless != Some(value)).then_some(*key)
}
