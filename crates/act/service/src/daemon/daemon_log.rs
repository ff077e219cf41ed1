//! The daemon's log: standard error, which systemd collects.

pub(super) fn say(text: std::fmt::Arguments<'_>) {
    eprintln!("lucd: {text}");
}
