//! `--reach`: how the gate gets to a command's calls.

use std::fmt;
use std::path::Path;

use anyhow::bail;
use luc_gate::inspect::Gateability;
use luc_launch::GateReach as LaunchReach;
use luc_module::level::EffectiveLevel;

/// Way in which the gate reaches a command's calls, by --reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(in crate::commands) enum ReachOption {
    /// The library for programs that can load it, notifications for others: static programs, Go programs, and those
    /// of other C libraries or machines. As root, set-user-ID programs are notified, too
    Auto,
    /// A library that is loaded into dynamically linked programs
    Library,
    /// Notifications of system calls (Linux 5.19), for every program that the command starts, whatever it does to its
    /// environment. Without root, no program below can gain privileges then (no_new_privs: no sudo)
    Notify,
}

impl fmt::Display for ReachOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Library => "library",
            Self::Notify => "notify",
        })
    }
}

/// Harm that notifications do to programs without root.
const HARM: &str =
    "luc is not root, so no program below it can gain privileges (no sudo, ping or postdrop)";

/// Way to a command's calls that was decided on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DecidedReach {
    Library,
    /// Asked for, although the kernel module batches everywhere.
    NeedsNone,
    /// Chosen for a program that only notifications reach.
    Notified,
    NotifiedAsAsked,
}

impl ReachOption {
    /// Decides for a program.
    ///
    /// # Errors
    /// Notifications were asked for, and this kernel has none.
    pub(super) fn decide(
        self,
        program: &Gateability,
        level: EffectiveLevel,
    ) -> anyhow::Result<DecidedReach> {
        Ok(match self {
            Self::Library => DecidedReach::Library,
            Self::Auto if level == EffectiveLevel::Kernel => DecidedReach::Library,
            Self::Auto if is_for_notifier(program) && luc_notify::available().is_ok() => {
                DecidedReach::Notified
            }
            Self::Auto => DecidedReach::Library,
            Self::Notify if level == EffectiveLevel::Kernel => DecidedReach::NeedsNone,
            Self::Notify => {
                luc_notify::available()?;
                DecidedReach::NotifiedAsAsked
            }
        })
    }
}

/// Whether only notifications reach a program, and leave it the privileges that it adds.
fn is_for_notifier(program: &Gateability) -> bool {
    program.needs_notifier() || program.adds_privileges() && luc_notify::is_privileged()
}

impl DecidedReach {
    /// The way in which a program would be reached, in one line. The error says why it would not be.
    pub(super) fn check(
        self,
        path: &Path,
        program: &Gateability,
        level: EffectiveLevel,
    ) -> anyhow::Result<String> {
        let mut name = path.display().to_string();
        if let Some(interpreter) = program.interpreter() {
            name += &format!(" (a script of {})", interpreter.display());
        }
        if level == EffectiveLevel::Kernel {
            return Ok(format!("{name}: by the kernel module, as every program"));
        }
        if self.is_notified() {
            let mut text = format!("{name}: by notifications of its system calls");
            match self {
                Self::Notified => text += &format!(": {}", program.reason().unwrap_or_default()),
                _ => text += ", as --reach notify asks",
            }
            if !luc_notify::is_privileged() {
                text += &format!("; {HARM}");
            }
            return Ok(text);
        }
        luc_launch::preload_library::find()?;
        if let Some(reason) = program.reason() {
            bail!(
                "{name} cannot be gated: {reason}; try --reach notify, or run it without the gate"
            );
        }
        let mut text = format!(
            "{name}: by the library, as are programs that it starts with its environment, but for static ones and Go"
        );
        let preloaded = std::env::var("LD_PRELOAD").unwrap_or_default();
        if preloaded.contains("eatmydata") {
            text += "; eatmydata in LD_PRELOAD comes first: it leaves no fsync to share";
        } else if !preloaded.is_empty() {
            text += &format!("; behind LD_PRELOAD's own {preloaded}");
        }
        Ok(text)
    }

    pub(super) fn is_notified(self) -> bool {
        matches!(self, Self::Notified | Self::NotifiedAsAsked)
    }

    pub(super) fn reach(self) -> LaunchReach {
        match self {
            Self::Library | Self::NeedsNone => LaunchReach::Library,
            Self::Notified => LaunchReach::NotifierIfPossible,
            Self::NotifiedAsAsked => LaunchReach::Notifier,
        }
    }

    /// A line that the user should know before the start, if there is one. Harm is reported also with --quiet.
    pub(super) fn note(
        self,
        path: &Path,
        program: &Gateability,
        level: EffectiveLevel,
        is_quiet: bool,
    ) -> Option<String> {
        let path = path.display();
        let is_harmed = self.is_notified() && !luc_notify::is_privileged();
        match self {
            Self::Library if level == EffectiveLevel::Kernel => None,
            Self::Library => {
                let reason = program.reason()?;
                let without = if level == EffectiveLevel::Gate {
                    "luc"
                } else {
                    "the gate"
                };
                Some(format!(
                    "{path} cannot be gated: {reason}; it runs as without {without}"
                ))
            }
            Self::NeedsNone => Some(
                "--reach notify is not needed: the kernel module batches the calls of every program"
                    .to_owned(),
            ),
            Self::Notified if is_harmed => {
                let reason = program.reason().unwrap_or_default();
                Some(format!(
                    "{path}: {reason}; notifications of its system calls do, but {HARM}; --reach library leaves them out"
                ))
            }
            Self::NotifiedAsAsked if is_harmed => {
                Some(format!("{HARM}; {}", luc_notify::INTERRUPTS))
            }
            Self::NotifiedAsAsked if !is_quiet => Some(luc_notify::INTERRUPTS.to_owned()),
            Self::Notified if !is_quiet => {
                let reason = program.reason().unwrap_or_default();
                Some(format!("{path}: {reason}; notifications of its system calls do"))
            }
            Self::Notified | Self::NotifiedAsAsked => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use luc_gate::inspect::Privilege;

    #[test]
    fn only_programs_that_nothing_else_reaches_are_notified_unasked() {
        let decide = |reach: ReachOption, program: Gateability, level| {
            reach.decide(&program, level).expect("decided").is_notified()
        };
        let gate = EffectiveLevel::Gate;
        let can = luc_notify::available().is_ok();
        assert_eq!(decide(ReachOption::Auto, Gateability::Static, gate), can);
        assert_eq!(decide(ReachOption::Auto, Gateability::Go, gate), can);
        let of_musl = Gateability::ForeignLibc { loader: "/lib/ld-other.so.1".into() };
        assert_eq!(decide(ReachOption::Auto, of_musl, gate), can);
        // Without root they would keep it from the privileges that it is made for.
        let set_id = Gateability::SetId(Privilege::Group);
        let is_root = luc_notify::is_privileged();
        assert_eq!(decide(ReachOption::Auto, set_id, gate), can && is_root);
        assert!(!decide(ReachOption::Auto, Gateability::Gateable, gate));
        assert!(!decide(ReachOption::Auto, Gateability::Static, EffectiveLevel::Kernel));
        assert!(!decide(ReachOption::Notify, Gateability::Static, EffectiveLevel::Kernel));
        assert!(!decide(ReachOption::Library, Gateability::Static, gate));
        if can {
            assert!(decide(ReachOption::Notify, Gateability::Gateable, gate));
        }
    }
}
