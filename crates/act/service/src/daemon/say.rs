//! The daemon's log.

/// Writes a line to the log.
pub(super) fn say(text: std::fmt::Arguments<'_>) {
    eprintln!("lucd: {text}");
}
