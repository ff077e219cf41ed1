//! Compares the disk after the cut with the acknowledgements before it.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};

use super::content::{Amend, Writer};

/// State of an acknowledged file after the cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Right,
    /// The file, or its acknowledged change as a whole, is gone.
    Lost,
    /// The file has contents that it should never have had.
    Torn,
}

/// Acknowledgements before the cut.
#[derive(Debug, Default)]
pub(super) struct Acknowledged {
    /// Our clients: the last step acknowledged, per client.
    pub(super) steps: BTreeMap<u32, u32>,
    /// A command's files: length and hash when the line was read.
    pub(super) files: BTreeMap<PathBuf, Fingerprint>,
    pub(super) count: u64,
}

/// Length and hash of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fingerprint(usize, u64);

impl Fingerprint {
    pub(super) fn of(contents: &[u8]) -> Self {
        let mut hasher = DefaultHasher::new();
        contents.hash(&mut hasher);
        Self(contents.len(), hasher.finish())
    }
}

#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) lost: u64,
    pub(super) torn: u64,
    /// The first few, one line each.
    pub(super) examples: Vec<String>,
}

impl Findings {
    const EXAMPLES: usize = 5;

    fn note(&mut self, name: &str, verdict: Verdict, found: &str) {
        let word = match verdict {
            Verdict::Right => return,
            Verdict::Lost => {
                self.lost += 1;
                "lost"
            }
            Verdict::Torn => {
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
pub(super) fn check(dir: &Path, seed: u64, acknowledged: &Acknowledged) -> Findings {
    let mut findings = Findings::default();
    for (&client, &last) in &acknowledged.steps {
        let writer = Writer { seed, client };
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
            Ok(contents) if Fingerprint::of(contents) == *fingerprint => Verdict::Right,
            Ok(_) => Verdict::Torn,
            Err(error) => unreadable(error),
        };
        findings.note(&path.display().to_string(), verdict, &describe(&contents));
    }
    findings
}

fn unreadable(error: &io::Error) -> Verdict {
    if error.kind() == io::ErrorKind::NotFound { Verdict::Lost } else { Verdict::Torn }
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
    amendment: Option<&(Amend, Vec<u8>)>,
    amendment_acknowledged: bool,
) -> Verdict {
    let Some((amend, amended)) = amendment else {
        return if contents == made { Verdict::Right } else { Verdict::Torn };
    };
    if amendment_acknowledged {
        return match contents {
            _ if contents == amended => Verdict::Right,
            _ if contents == made => Verdict::Lost,
            _ => Verdict::Torn,
        };
    }
    let possible = match amend {
        Amend::Append => contents.starts_with(made) && contents.len() <= amended.len(),
        Amend::Replace => contents == made || contents == amended,
        Amend::Overwrite => {
            contents.len() == made.len()
                && contents
                    .iter()
                    .zip(made.iter().zip(amended))
                    .all(|(found, (old, new))| found == old || found == new)
        }
    };
    if possible { Verdict::Right } else { Verdict::Torn }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_in_flight_may_be_there_or_not() {
        let append = (Amend::Append, b"oldnew".to_vec());
        for found in ["old", "oldn", "oldxyz"] {
            assert_eq!(judge(found.as_bytes(), b"old", Some(&append), false), Verdict::Right);
        }
        for found in ["", "ol", "xld", "oldnew and more"] {
            assert_eq!(judge(found.as_bytes(), b"old", Some(&append), false), Verdict::Torn);
        }
        let overwrite = (Amend::Overwrite, b"new".to_vec());
        for (found, verdict) in [
            ("old", Verdict::Right),
            ("new", Verdict::Right),
            ("nld", Verdict::Right),
            ("xld", Verdict::Torn),
            ("ne", Verdict::Torn),
        ] {
            assert_eq!(
                judge(found.as_bytes(), b"old", Some(&overwrite), false),
                verdict,
                "{found}"
            );
        }
        let replace = (Amend::Replace, b"newer".to_vec());
        for (found, verdict) in
            [("old", Verdict::Right), ("newer", Verdict::Right), ("new", Verdict::Torn)]
        {
            assert_eq!(judge(found.as_bytes(), b"old", Some(&replace), false), verdict, "{found}");
        }
    }

    #[test]
    fn an_acknowledged_change_must_be_there() {
        for amend in [Amend::Append, Amend::Overwrite, Amend::Replace] {
            let change = (amend, b"oldnew".to_vec());
            for (found, verdict) in [
                ("oldnew", Verdict::Right),
                ("old", Verdict::Lost),
                ("oldne", Verdict::Torn),
                ("", Verdict::Torn),
            ] {
                assert_eq!(judge(found.as_bytes(), b"old", Some(&change), true), verdict);
            }
        }
        assert_eq!(judge(b"x", b"x", None, false), Verdict::Right);
        assert_eq!(judge(b"", b"x", None, false), Verdict::Torn);
    }

    #[test]
    fn a_directory_of_files_is_checked() {
        let scratch =
            luc_workload::scratch::Scratch::create(&std::env::temp_dir()).expect("scratch");
        let dir = scratch.path();
        let writer = Writer { seed: 3, client: 2 };
        let mut acknowledged = Acknowledged { count: 5, ..Acknowledged::default() };
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
        acknowledged.files.insert(PathBuf::from("log"), Fingerprint::of(b"line"));
        std::fs::write(dir.join("log"), "lin").expect("write");
        let findings = check(dir, 3, &acknowledged);
        assert_eq!((findings.lost, findings.torn), (1, 2), "{findings:?}");
        assert_eq!(findings.examples.len(), 3);
    }
}
