//! Counted events and modes of the processor.

use std::fmt;

use serde::Serialize;

/// Mode in which the processor counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CountMode {
    /// All modes together.
    Total,
    /// User space only (`exclude_kernel`; perf's modifier `u`).
    User,
    /// Kernel only (`exclude_user`; perf's modifier `k`).
    Kernel,
}

impl CountMode {
    /// All modes, in the order of reports.
    pub const ALL: [Self; 3] = [Self::User, Self::Kernel, Self::Total];
}

impl fmt::Display for CountMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Total => "total",
            Self::User => "user",
            Self::Kernel => "kernel",
        })
    }
}

/// An event in a mode.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct HardwareEvent {
    /// Name as perf's, in lower case and without modifiers: `cycles`, `int_misc.clears_count`, `cpu/event=0x3c/`.
    pub name: String,
    /// Mode in which it is counted.
    pub mode: CountMode,
}

impl HardwareEvent {
    /// Makes an event in a mode.
    #[must_use]
    pub fn new(name: &str, mode: CountMode) -> Self {
        Self { name: canonical(name), mode }
    }

    /// Reads an event as `perf stat` prints it, modifiers included: `cycles:u`, `instructions:kpp`, `cpu/event=0xc0/u`.
    #[must_use]
    pub fn of_perf(text: &str) -> Self {
        let text = text.trim();
        // A PMU's event has its modifiers after the last slash, which a colon may come before.
        let (name, modifiers) = match text.rfind('/') {
            Some(slash) => (&text[..=slash], text[slash + 1..].trim_start_matches(':')),
            None => text.rsplit_once(':').unwrap_or((text, "")),
        };
        if modifiers.is_empty() || !modifiers.chars().all(|c| MODIFIERS.contains(c)) {
            return Self::new(text, CountMode::Total);
        }
        let mode = match (modifiers.contains('u'), modifiers.contains('k')) {
            (true, false) => CountMode::User,
            (false, true) => CountMode::Kernel,
            _ => CountMode::Total,
        };
        Self::new(name, mode)
    }
}

impl fmt::Display for HardwareEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.name;
        let separator = if name.ends_with('/') { "" } else { ":" };
        match self.mode {
            CountMode::Total => f.write_str(name),
            CountMode::User => write!(f, "{name}{separator}u"),
            CountMode::Kernel => write!(f, "{name}{separator}k"),
        }
    }
}

/// Modifiers that perf knows (`man perf-list`).
const MODIFIERS: &str = "ukhIGHpPSDWeb";

/// Names are compared without regard to case, as perf does.
fn canonical(name: &str) -> String {
    name.trim().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn perf_names_have_a_mode() {
        for (text, name, mode) in [
            ("cycles", "cycles", CountMode::Total),
            ("cycles:u", "cycles", CountMode::User),
            ("INST_RETIRED.ANY:kpp", "inst_retired.any", CountMode::Kernel),
            ("instructions:uk", "instructions", CountMode::Total),
            ("instructions:ppp", "instructions", CountMode::Total),
            ("cpu/event=0xc0,umask=0x1/u", "cpu/event=0xc0,umask=0x1/", CountMode::User),
            ("cpu_core/cycles/:k", "cpu_core/cycles/", CountMode::Kernel),
            ("cpu_core/cycles/", "cpu_core/cycles/", CountMode::Total),
            ("sched:sched_switch", "sched:sched_switch", CountMode::Total),
            ("", "", CountMode::Total),
        ] {
            let event = HardwareEvent::of_perf(text);
            assert_eq!((event.name.as_str(), event.mode), (name, mode), "{text}");
            assert_eq!(HardwareEvent::of_perf(&event.to_string()), event);
        }
    }
}
