//! The daemon's log.

pub(super) fn say(text: std::fmt::Arguments<'_>) {
    eprintln!("lucd: {text}");
}
