//! Lists of events, as `perf stat -e` takes them.

use std::str::FromStr;

use luc_counters::{CountMode, HardwareEvent};

use super::kernel_events::KernelEvent;
use crate::ProbeError;
use crate::ring_records::COUNTERS;

/// Events to count: names of `perf list`, with or without the modifier `u` or `k`, separated by commas. Those in braces
/// have counters at the same time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CounterList {
    groups: Vec<Vec<HardwareEvent>>,
}

impl CounterList {
    /// Returns the events in groups; a single event is a group of one.
    pub(crate) fn groups(&self) -> &[Vec<HardwareEvent>] {
        &self.groups
    }
}

impl Default for CounterList {
    /// Cycles and instructions of user space, and of the kernel.
    fn default() -> Self {
        let of = |mode| ["cycles", "instructions"].map(|name| HardwareEvent::new(name, mode));
        Self { groups: [CountMode::User, CountMode::Kernel].map(|mode| of(mode).to_vec()).to_vec() }
    }
}

impl FromStr for CounterList {
    type Err = ProbeError;

    fn from_str(text: &str) -> Result<Self, ProbeError> {
        parse(text).map_err(|why| {
            ProbeError::Counters(format!(
                "--counters {text}: {why}; give names of `perf list`, such as cycles:u,instructions:u"
            ))
        })
    }
}

fn parse(text: &str) -> Result<CounterList, String> {
    let mut groups: Vec<Vec<HardwareEvent>> = Vec::new();
    for item in split(text, true)? {
        let words = match item.strip_prefix('{') {
            Some(inner) => split(inner.strip_suffix('}').ok_or("a { without }")?, false)?,
            None => vec![item],
        };
        groups.push(words.into_iter().map(event).collect::<Result<_, _>>()?);
    }
    let events: Vec<&HardwareEvent> = groups.iter().flatten().collect();
    if events.len() > COUNTERS {
        return Err(format!("more than {COUNTERS} events"));
    }
    for (place, event) in events.iter().enumerate() {
        if events[..place].contains(event) {
            return Err(format!("{event} is there twice"));
        }
    }
    Ok(CounterList { groups })
}

fn event(word: &str) -> Result<HardwareEvent, String> {
    let event = HardwareEvent::of_perf(word);
    KernelEvent::of(&event)?;
    Ok(event)
}

/// Splits a text at commas, except those inside an event (`cpu/event=0x3c,umask=0x1/`) and, with `groups`, inside a
/// group.
fn split(text: &str, groups: bool) -> Result<Vec<&str>, String> {
    let mut parts = Vec::new();
    let (mut begin, mut in_slashes, mut in_group) = (0, false, false);
    for (at, letter) in text.char_indices() {
        match letter {
            '/' => in_slashes = !in_slashes,
            '{' if groups && !in_group && at == begin => in_group = true,
            '}' if in_group => in_group = false,
            '{' | '}' => return Err(format!("a {letter} that is not one of a group")),
            ',' if !in_slashes && !in_group => {
                parts.push(&text[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[begin..]);
    if parts.iter().any(|part| part.is_empty()) {
        return Err("an event without a name".to_owned());
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn events(text: &str) -> Vec<Vec<String>> {
        let list: CounterList = text.parse().expect(text);
        let names =
            |group: &Vec<HardwareEvent>| group.iter().map(HardwareEvent::to_string).collect();
        list.groups().iter().map(names).collect()
    }

    #[test]
    fn braces_make_groups_and_slashes_keep_commas() {
        assert_eq!(
            events("{cycles:u,instructions:u},page-faults,r1a2:k,L1-dcache-load-misses:u"),
            [
                vec!["cycles:u", "instructions:u"],
                vec!["page-faults"],
                vec!["r1a2:k"],
                vec!["l1-dcache-load-misses:u"],
            ]
        );
        assert_eq!(
            CounterList::default(),
            "{cycles:u,instructions:u},{cycles:k,instructions:k}".parse().expect("the same")
        );
    }

    #[test]
    fn what_cannot_be_counted_is_refused_in_one_line() {
        let many: Vec<String> = (0..=COUNTERS).map(|code| format!("r{code:x}")).collect();
        for (text, part) in [
            ("", "without a name"),
            ("cycles,,instructions", "without a name"),
            ("{cycles", "a { without }"),
            ("cycles}", "a } that is not one"),
            ("{a,{b}}", "a { that is not one"),
            ("cycles:u,CYCLES:u", "cycles:u is there twice"),
            ("cycels", "no event `cycels`"),
            ("../../etc/event=1/", "no event"),
            (&many.join(","), "more than 48"),
        ] {
            let error = text.parse::<CounterList>().unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
            assert_eq!(error.lines().count(), 1);
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[a-z0-9{},/:=.\u{e4} -]{0,40}") {
            let _ = text.parse::<CounterList>();
        }
    }
}
