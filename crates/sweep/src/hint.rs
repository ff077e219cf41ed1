//! What somebody may have meant.

use luc_workload::nearest::nearest;

/// `; did you mean 'x'?`, if any name looks like the one given; else all names.
pub(crate) fn meant(given: &str, known: &[&str]) -> String {
    match nearest(given, known.iter().copied()) {
        Some(name) => format!("; did you mean '{name}'?"),
        None => format!("; there are {}", known.join(", ")),
    }
}
