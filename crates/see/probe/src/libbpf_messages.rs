//! Messages of libbpf while it loads programs, kept to explain a failure.

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

/// Returns the error with the first two of libbpf's messages, or the verifier's last line, in one line.
pub(crate) fn reason(error: &libbpf_rs::Error) -> String {
    let messages = messages();
    let first: Vec<&str> = messages
        .lines()
        .filter_map(|line| line.strip_prefix("libbpf: "))
        .filter(|line| !line.ends_with(LOG_BEGIN))
        .take(2)
        .collect();
    if first.is_empty() {
        return error.to_string();
    }
    let first = first.join("; ");
    match refusal(&messages) {
        Some(refusal) => format!("{error} ({first}; {refusal})"),
        None => format!("{error} ({first})"),
    }
}

/// Returns the program that the kernel refused, by these messages, if it was a program.
pub(crate) fn refused_program() -> Option<String> {
    program_in(&messages()).map(str::to_owned)
}

fn program_in(messages: &str) -> Option<&str> {
    messages.lines().find_map(|line| {
        let (name, rest) = line.strip_prefix("libbpf: prog '")?.split_once("': ")?;
        let is_refusal = rest.starts_with("BPF program load failed") || rest.contains("relocat");
        is_refusal.then_some(name)
    })
}

/// Marks of the verifier's log in libbpf's messages, and the prefix of its summary line.
const LOG_BEGIN: &str = "-- BEGIN PROG LOAD LOG --";
const LOG_END: &str = "-- END PROG LOAD LOG --";
const SUMMARY_PREFIX: &str = "processed ";

/// Returns the last line of the kernel's verifier.
fn refusal(messages: &str) -> Option<&str> {
    let (_, log) = messages.split_once(LOG_BEGIN)?;
    let (log, _) = log.split_once(LOG_END)?;
    let mut lines = log.lines().rev().map(str::trim);
    lines.find(|line| !line.is_empty() && !line.starts_with(SUMMARY_PREFIX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verifier_s_last_words_are_found() {
        let log = "libbpf: prog 'one': BPF program load failed: -EACCES\n\
                   libbpf: prog 'one': -- BEGIN PROG LOAD LOG --\n0: (85) call bpf_helper#5\n\
                   helper access to the packet is not allowed\n\
                   processed 1 insns (limit 1000000) max_states_per_insn 0\n\
                   -- END PROG LOAD LOG --\nlibbpf: failed to load object\n";
        assert_eq!(refusal(log), Some("helper access to the packet is not allowed"));
        assert_eq!(refusal("libbpf: no program\n"), None);
        assert_eq!(program_in(log), Some("one"));
        assert_eq!(program_in("libbpf: failed to load object\n"), None);
    }
}
