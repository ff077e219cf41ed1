//! Suggestions for a name that is not known.

/// Returns the name most like `word`, if one is like it at all.
pub fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    known
        .map(|name| (strsim::damerau_levenshtein(word, name), name))
        .filter(|(distance, name)| *distance <= 1 + name.len() / 4)
        .min()
        .map(|(_, name)| name)
}

/// Returns `; did you mean 'x'?`, if any name looks like the one given; else all names.
#[must_use]
pub fn meant(given: &str, known: &[&str]) -> String {
    match nearest(given, known.iter().copied()) {
        Some(name) => format!("; did you mean '{name}'?"),
        None => format!("; there are {}", known.join(", ")),
    }
}
