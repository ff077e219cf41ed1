//! Compares the disk after the cut with the acknowledgements before it.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};

use super::client_content::{FileAmendment, RoundWriter};

/// State of an acknowledged file after the cut: right, lost or torn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AckedFileVerdict {
    Right,
    /// The file, or its acknowledged change as a whole, is gone.
    Lost,
    /// The file has contents that it should never have had.
    Torn,
}

/// Acknowledgements before the cut.
#[derive(Debug, Default)]
pub(super) struct Acknowledgements {
    /// Our clients: the last step acknowledged, per client.
    pub(super) steps: BTreeMap<u32, u32>,
    /// A command's files: length and hash when the line was read.
    pub(super) files: BTreeMap<PathBuf, FileFingerprint>,
    pub(super) count: u64,
}

/// Length and hash of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileFingerprint(usize, u64);

impl FileFingerprint {
    pub(super) fn of(contents: &[u8]) -> Self {
        let mut hasher = DefaultHasher::new();
        contents.hash(&mut hasher);
        Self(contents.len(), hasher.finish())
    }
}

/// Acknowledged files that were lost or torn, with examples.
#[derive(Debug, Default)]
pub(super) struct DurabilityFindings {
    pub(super) lost: u64,
    pub(super) torn: u64,
    /// The first few, one line each.
    pub(super) examples: Vec<String>,
}

impl DurabilityFindings {
    const EXAMPLES: usize = 5;

    fn note(&mut self, name: &str, verdict: AckedFileVerdict, found: &str) {
        let word = match verdict {
            AckedFileVerdict::Right => return,
            AckedFileVerdict::Lost => {
                self.lost += 1;
                "lost"
            }
            AckedFileVerdict::Torn => {
                self.torn += 1;
                "torn"
            }
        };
        if self.examples.len() < Self::EXAMPLES {
            self.examples.push(format!("{name} {word}: {found}"));
        }
    }
}

/// Checks every acknowledged file below `dir`.
pub(super) fn check(dir: &Path, seed: u64, acknowledged: &Acknowledgements) -> DurabilityFindings {
    let mut findings = DurabilityFindings::default();
    for (&client, &last) in &acknowledged.steps {
        let writer = RoundWriter { seed, client };
        for file in (0..=last).filter(|&step| writer.file(step) == step) {
            let contents = std::fs::read(dir.join(writer.name(file)));
            let amendment =
                writer.amendment(file).map(|amend| (amend, writer.amended(file, amend)));
            let verdict = match &contents {
                Ok(contents) => {
                    judge(contents, &writer.body(file), amendment.as_ref(), last > file)
                }
                Err(error) => unreadable(error),
            };
            findings.note(&writer.name(file), verdict, &describe(&contents));
        }
    }
    for (path, fingerprint) in &acknowledged.files {
        let contents = std::fs::read(dir.join(path));
        let verdict = match &contents {
            Ok(contents) if FileFingerprint::of(contents) == *fingerprint => {
                AckedFileVerdict::Right
            }
            Ok(_) => AckedFileVerdict::Torn,
            Err(error) => unreadable(error),
        };
        findings.note(&path.display().to_string(), verdict, &describe(&contents));
    }
    findings
}

fn unreadable(error: &io::Error) -> AckedFileVerdict {
    if error.kind() == io::ErrorKind::NotFound {
        AckedFileVerdict::Lost
    } else {
        AckedFileVerdict::Torn
    }
}

fn describe(contents: &io::Result<Vec<u8>>) -> String {
    match contents {
        Ok(contents) => format!("{} bytes that differ", contents.len()),
        Err(error) => error.to_string(),
    }
}

/// Judges a file of ours by its contents, its first body and its later change. A change that was not acknowledged may
/// be in any state that the power cut allows.
fn judge(
    contents: &[u8],
    made: &[u8],
    amendment: Option<&(FileAmendment, Vec<u8>)>,
    amendment_acknowledged: bool,
) -> AckedFileVerdict {
    let Some((amend, amended)) = amendment else {
        return if contents == made { AckedFileVerdict::Right } else { AckedFileVerdict::Torn };
    };
    if amendment_acknowledged {
        return match contents {
            _ if contents == amended => AckedFileVerdict::Right,
            _ if contents == made => AckedFileVerdict::Lost,
            _ => AckedFileVerdict::Torn,
        };
    }
    let possible = match amend {
        FileAmendment::Append => contents.starts_with(made) && contents.len() <= amended.len(),
        FileAmendment::Replace => contents == made || contents == amended,
        FileAmendment::Overwrite => {
            contents.len() == made.len()
                && contents
                    .iter()
                    .zip(made.iter().zip(amended))
                    .all(|(found, (old, new))| found == old || found == new)
        }
    };
    if possible { AckedFileVerdict::Right } else { AckedFileVerdict::Torn }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_in_flight_may_be_there_or_not() {
        let append = (FileAmendment::Append, b"oldnew".to_vec());
        for found in ["old", "oldn", "oldxyz"] {
            assert_eq!(
                judge(found.as_bytes(), b"old", Some(&append), false),
                AckedFileVerdict::Right
            );
        }
        for found in ["", "ol", "xld", "oldnew and more"] {
            assert_eq!(
                judge(found.as_bytes(), b"old", Some(&append), false),
                AckedFileVerdict::Torn
            );
        }
        let overwrite = (FileAmendment::Overwrite, b"new".to_vec());
        for (found, verdict) in [
            ("old", AckedFileVerdict::Right),
            ("new", AckedFileVerdict::Right),
            ("nld", AckedFileVerdict::Right),
            ("xld", AckedFileVerdict::Torn),
            ("ne", AckedFileVerdict::Torn),
        ] {
            assert_eq!(
                judge(found.as_bytes(), b"old", Some(&overwrite), false),
                verdict,
                "{found}"
            );
        }
        let replace = (FileAmendment::Replace, b"newer".to_vec());
        for (found, verdict) in [
            ("old", AckedFileVerdict::Right),
            ("newer", AckedFileVerdict::Right),
            ("new", AckedFileVerdict::Torn),
        ] {
            assert_eq!(judge(found.as_bytes(), b"old", Some(&replace), false), verdict, "{found}");
        }
    }

    #[test]
    fn an_acknowledged_change_must_be_there() {
        for amend in [FileAmendment::Append, FileAmendment::Overwrite, FileAmendment::Replace] {
            let change = (amend, b"oldnew".to_vec());
            for (found, verdict) in [
                ("oldnew", AckedFileVerdict::Right),
                ("old", AckedFileVerdict::Lost),
                ("oldne", AckedFileVerdict::Torn),
                ("", AckedFileVerdict::Torn),
            ] {
                assert_eq!(judge(found.as_bytes(), b"old", Some(&change), true), verdict);
            }
        }
        assert_eq!(judge(b"x", b"x", None, false), AckedFileVerdict::Right);
        assert_eq!(judge(b"", b"x", None, false), AckedFileVerdict::Torn);
    }

    #[test]
    fn a_directory_of_files_is_checked() {
        let scratch =
            luc_workload::scratch_directory::ScratchDirectory::create(&std::env::temp_dir())
                .expect("scratch");
        let dir = scratch.path();
        let writer = RoundWriter { seed: 3, client: 2 };
        let mut acknowledged = Acknowledgements { count: 5, ..Acknowledgements::default() };
        acknowledged.steps.insert(2, 4);
        for file in [0, 1, 4] {
            std::fs::write(dir.join(writer.name(file)), writer.body(file)).expect("write");
        }
        let amend = writer.amendment(2).expect("step 3 changes file 2");
        let amended = writer.amended(2, amend);
        std::fs::write(dir.join(writer.name(2)), amended).expect("write");
        let findings = check(dir, 3, &acknowledged);
        assert_eq!((findings.lost, findings.torn), (0, 0), "{findings:?}");

        std::fs::remove_file(dir.join(writer.name(1))).expect("remove");
        std::fs::write(dir.join(writer.name(4)), "something else").expect("write");
        acknowledged.files.insert(PathBuf::from("log"), FileFingerprint::of(b"line"));
        std::fs::write(dir.join("log"), "lin").expect("write");
        let findings = check(dir, 3, &acknowledged);
        assert_eq!((findings.lost, findings.torn), (1, 2), "{findings:?}");
        assert_eq!(findings.examples.len(), 3);
    }
}
