//! What libbpf says while it loads programs, kept to explain why it failed.

use std::sync::{Mutex, MutexGuard, PoisonError};

use libbpf_rs::{PrintLevel, set_print};

/// libbpf's messages since the last [`keep`].
static MESSAGES: Mutex<String> = Mutex::new(String::new());

fn keep_message(_level: PrintLevel, text: String) {
    // The first lines say why. Later ones, such as "failed to load object", only repeat it.
    let mut messages = messages();
    if messages.len() < 4096 {
        messages.push_str(&text);
    }
}

fn messages() -> MutexGuard<'static, String> {
    MESSAGES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps messages from now on. Those of an earlier attempt do not explain a failure of this one.
pub(crate) fn keep() {
    messages().clear();
    set_print(Some((PrintLevel::Warn, keep_message)));
}

/// The error with the first two of libbpf's messages, in one line.
pub(crate) fn reason(error: &libbpf_rs::Error) -> String {
    let messages = messages();
    let first: Vec<&str> = messages
        .lines()
        .filter_map(|line| line.strip_prefix("libbpf: "))
        .take(2)
        .collect();
    if first.is_empty() {
        return error.to_string();
    }
    format!("{error} ({})", first.join("; "))
}
