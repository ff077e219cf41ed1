//! A run's outcome as text for people.

use std::fmt;

use luc_units::number_formats::FormattedTime;

use crate::controller_decision;
use crate::gated_run_outcome::{FileSystemOutcome, GateOutcome, GatedRunOutcome};
use crate::participants::UnreachedProgram;
use crate::preload_obstacle::reasons;

impl fmt::Display for GatedRunOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(reason) = &self.refused {
            return writeln!(
                f,
                "luc: the gate was not used, so the command ran as without it: {reason}"
            );
        }
        match &self.notified {
            _ if self.calls() > 0 => {}
            None => writeln!(
                f,
                "luc: no fsync, fdatasync or msync was seen by the library in {:.1} s",
                self.elapsed_s
            )?,
            Some(_) => writeln!(
                f,
                "luc: no fsync or fdatasync of a file was seen in {:.1} s",
                self.elapsed_s
            )?,
        }
        for file_system in &self.file_systems {
            write!(f, "{file_system}")?;
        }
        if let Some(keeper) = self.notified.and_then(|notified| notified.keeper) {
            writeln!(
                f,
                "luc: programs go on; process {keeper} (luc-keeper) lets their calls pass, and ends with the last of them"
            )?;
        }
        write_unreached(f, &self.unreached)
    }
}

/// Lines about the programs that the library did not reach, and about those that it perhaps did not.
fn write_unreached(f: &mut fmt::Formatter<'_>, unreached: &[UnreachedProgram]) -> fmt::Result {
    let (known, suspected): (Vec<_>, Vec<_>) =
        unreached.iter().partition(|one| one.calls.is_some());
    let text = |one: &&UnreachedProgram| {
        let mut words = Vec::new();
        if one.processes > 1 {
            words.push(format!("{} processes", one.processes));
        }
        if let Some(calls) = one.calls {
            words.push(format!("{calls} call{}", if calls == 1 { "" } else { "s" }));
        }
        words.push(reasons(&one.obstacles));
        format!("{} ({})", one.program, words.join(", "))
    };
    let texts = |all: &[&UnreachedProgram]| all.iter().map(text).collect::<Vec<_>>().join(", ");
    if !known.is_empty() {
        writeln!(
            f,
            "luc: not reached by the library, their calls ran as without luc: {}; --reach notify reaches them",
            texts(&known)
        )?;
    }
    if !suspected.is_empty() {
        writeln!(
            f,
            "luc: perhaps not reached by the library, if they synchronize at all: {}; --reach notify would",
            texts(&suspected)
        )?;
    }
    Ok(())
}

impl fmt::Display for FileSystemOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.mount_point.is_empty() { &self.device } else { &self.mount_point };
        write!(f, "luc: {place} ({} on {}): ", self.kind, self.device)?;
        let counts =
            [(self.fsyncs, "fsync"), (self.fdatasyncs, "fdatasync"), (self.msyncs, "msync")];
        let mut first = true;
        for (count, name) in counts.into_iter().filter(|(count, _)| *count > 0) {
            let plural = if count == 1 { "" } else { "s" };
            write!(f, "{}{count} {name}{plural}", if first { "" } else { ", " })?;
            first = false;
        }
        if let (Some(mean), Some(p50), Some(p99)) = (self.mean_us, self.p50_us, self.p99_us) {
            write!(
                f,
                "; mean {}, median {}, p99 {}",
                FormattedTime::from_us(mean),
                FormattedTime::from_us(p50),
                FormattedTime::from_us(p99)
            )?;
        }
        if self.failed > 0 {
            write!(f, "; {} failed", self.failed)?;
        }
        writeln!(f)?;
        if let (Some(commits), Some(served)) = (self.commits, self.calls_per_commit) {
            writeln!(f, "     {commits} journal commits, {served:.1} calls served by each")?;
        }
        match (&self.gate, self.journal) {
            (Some(gate), _) => write!(f, "{gate}"),
            (None, _) if self.left_to_kernel => {
                writeln!(f, "     gate: calls only counted: the kernel module batches here")
            }
            (None, "jbd2") if self.is_off => writeln!(f, "     gate: off, calls only counted"),
            (None, "jbd2") => writeln!(f, "     gate: no call was held"),
            (None, "fast_commit") => writeln!(
                f,
                "     gate: stood aside: fast_commit shares commits by itself, and loses data in power \
                 cuts on some kernels (try `luc powercut`)"
            ),
            (None, "none") => {
                writeln!(f, "     gate: stood aside: this file system has no journal")
            }
            (None, _) => {
                writeln!(f, "     gate: stood aside: it only knows ext4's journal")
            }
        }
    }
}

impl fmt::Display for GateOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.gated > 0 {
            let served = self.gated as f64 / f64::from(self.rounds.max(1));
            writeln!(
                f,
                "     gate: {} calls in {} rounds of {served:.1}; held {} on average, {} at most; \
                 {} at their own deadline; data written first in {}",
                self.gated,
                self.rounds,
                FormattedTime::from_us(self.mean_wait_us),
                FormattedTime::from_us(self.longest_wait_us),
                self.timed_out,
                FormattedTime::from_us(self.mean_write_back_us)
            )?;
        } else {
            writeln!(f, "     gate: no call was held")?;
        }
        controller_decision::write(
            f,
            self.decision.as_ref(),
            self.flush_decision.as_ref(),
            self.gated > 0,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CommandEnding;
    use crate::participants::ParticipantTable;
    use crate::preload_obstacle::PreloadObstacle;
    use luc_notify::command_notifier::NotifiedRun;

    fn outcome(file_systems: Vec<FileSystemOutcome>) -> GatedRunOutcome {
        GatedRunOutcome {
            policy: "auto".into(),
            ending: CommandEnding::Exited(0),
            stop_signal: None,
            elapsed_s: 1.0,
            processes: 1,
            refused: None,
            notified: None,
            unreached: Vec::new(),
            participants: ParticipantTable::default(),
            file_systems,
        }
    }

    fn file_system(journal: &'static str) -> FileSystemOutcome {
        FileSystemOutcome {
            device: "sda1".into(),
            mount_point: "/srv".into(),
            kind: "ext4".into(),
            journal,
            fsyncs: 10,
            fdatasyncs: 1,
            msyncs: 0,
            failed: 0,
            mean_us: Some(12_800.0),
            p50_us: Some(12_700.0),
            p99_us: Some(25_000.0),
            commits: Some(2),
            calls_per_commit: Some(5.5),
            left_to_kernel: false,
            is_off: false,
            gate: None,
        }
    }

    #[test]
    fn a_file_system_without_a_journal_is_said_plainly() {
        let text = outcome(vec![file_system("none")]).to_string();
        assert!(
            text.contains("/srv (ext4 on sda1): 10 fsyncs, 1 fdatasync; mean 12.8 ms"),
            "{text}"
        );
        assert!(text.contains("has no journal"), "{text}");
    }

    #[test]
    fn a_journal_left_to_the_module_is_said() {
        let left = FileSystemOutcome { left_to_kernel: true, ..file_system("jbd2") };
        let text = outcome(vec![left]).to_string();
        assert!(text.contains("the kernel module batches here"), "{text}");
    }

    #[test]
    fn the_gate_is_off_only_where_the_policy_says_so() {
        let off = FileSystemOutcome { is_off: true, ..file_system("jbd2") };
        let text = outcome(vec![off]).to_string();
        assert!(text.contains("gate: off"), "{text}");
        let text = outcome(vec![file_system("jbd2")]).to_string();
        assert!(!text.contains("off"), "{text}");
    }

    #[test]
    fn silence_is_explained() {
        assert!(outcome(vec![]).to_string().contains("no fsync"));
    }

    #[test]
    fn what_is_not_known_of_notified_calls_is_left_out() {
        let notified = GatedRunOutcome {
            processes: 0,
            notified: Some(NotifiedRun { no_new_privs: false, keeper: Some(7) }),
            ..outcome(vec![FileSystemOutcome {
                mean_us: None,
                p50_us: None,
                p99_us: None,
                ..file_system("jbd2")
            }])
        };
        let text = notified.to_string();
        assert!(text.contains("10 fsyncs, 1 fdatasync\n"), "{text}");
        assert!(text.contains("process 7 (luc-keeper)"), "{text}");
        assert_eq!(notified.mean_us(), None);
    }

    #[test]
    fn programs_that_were_not_reached_are_named() {
        let unreached = |program: &str, processes, calls, obstacle| UnreachedProgram {
            program: program.to_owned(),
            processes,
            calls,
            obstacles: [obstacle].into(),
        };
        let run = GatedRunOutcome {
            unreached: vec![
                unreached("smtpd", 3, Some(812), PreloadObstacle::Environment),
                unreached("sudo", 1, None, PreloadObstacle::Privileges),
            ],
            ..outcome(vec![file_system("jbd2")])
        };
        let text = run.to_string();
        assert!(
            text.contains(
                "without luc: smtpd (3 processes, 812 calls, started with a cleaned environment);"
            ),
            "{text}"
        );
        assert!(
            text.contains(
                "perhaps not reached by the library, if they synchronize at all: sudo (its start"
            ),
            "{text}"
        );
    }
}
