//! Workload of a request: built-in, a personality of Filebench, a file, or a trace.

use std::collections::BTreeMap;
use std::path::Path;

use luc_filebench::trace_to_workload::{self, DerivedPersonality};
use luc_workload::name_suggestion::nearest;
use toml::Value;

use super::error::AdviseError;
use luc_sweep::{BuiltinWorkload, PlanWorkload, option_value};

/// Built-in workloads with their default number of clients.
const BUILT_IN: [(&str, BuiltinWorkload, usize); 4] = [
    ("metarates", BuiltinWorkload::Metarates, 16),
    ("varmail", BuiltinWorkload::Varmail, 16),
    ("oltp", BuiltinWorkload::Oltp, 10),
    ("initial-write", BuiltinWorkload::InitialWrite, 16),
];
/// Prefix that selects the personality if a built-in workload has the same name.
const PREFIX: &str = "filebench/";
/// More than the files of the built-in workloads take.
const BUILT_IN_BYTES: f64 = 2e8;

/// Workload of a request for advice as the sweep's plan has it.
#[derive(Debug)]
pub(super) struct ResolvedWorkload {
    pub(super) workload: PlanWorkload,
    pub(super) threads: usize,
    pub(super) bytes: f64,
    pub(super) about: String,
}

/// Workload as the user named it, with its options.
#[derive(Debug)]
pub(super) struct WorkloadRequest<'a> {
    pub(super) given: &'a str,
    pub(super) set: &'a [String],
    pub(super) seconds: Option<f64>,
    pub(super) threads: Option<usize>,
    pub(super) default_seconds: f64,
}

impl WorkloadRequest<'_> {
    pub(super) fn resolve(&self) -> Result<ResolvedWorkload, AdviseError> {
        if let Some(&(name, bench, threads)) = BUILT_IN.iter().find(|known| known.0 == self.given) {
            return self.built_in(name, bench, threads);
        }
        let file = self.given.strip_prefix(PREFIX).unwrap_or(self.given);
        if Path::new(file).is_dir() {
            return self.trace(Path::new(file));
        }
        if luc_filebench::stock(file).is_none() && !Path::new(file).is_file() {
            let names = BUILT_IN.iter().map(|known| known.0).chain(luc_filebench::stock_names());
            let hint = nearest(file, names).map(|name| format!("; did you mean '{name}'?"));
            return Err(AdviseError::UnknownWorkload {
                given: self.given.to_owned(),
                hint: hint.unwrap_or_default(),
            });
        }
        self.personality(file, luc_filebench::text(file)?)
    }

    fn built_in(
        &self,
        name: &str,
        bench: BuiltinWorkload,
        threads: usize,
    ) -> Result<ResolvedWorkload, AdviseError> {
        let mut options = BTreeMap::new();
        for pair in self.set {
            let (option, value) = pair.split_once('=').ok_or_else(|| {
                AdviseError::Option(format!("--set {pair}: write OPTION=VALUE, as in file-size=1k"))
            })?;
            options.insert(option.to_owned(), option_value(value));
        }
        // It runs by rounds, not by time.
        if bench != BuiltinWorkload::InitialWrite {
            let seconds = self.seconds.unwrap_or(self.default_seconds);
            options.insert("seconds".to_owned(), Value::Float(seconds));
        } else if self.seconds.is_some() {
            return Err(AdviseError::Option(
                "--seconds: initial-write takes as long as it takes: write --set rounds=N"
                    .to_owned(),
            ));
        }
        let threads = self.threads.unwrap_or(threads);
        let words: Vec<String> =
            options.iter().map(|(name, value)| format!("{name} {value}")).collect();
        let clients = if bench == BuiltinWorkload::Oltp { "writers" } else { "threads" };
        Ok(ResolvedWorkload {
            about: format!("luc bench {name}, {threads} {clients}, {}", words.join(", "))
                .trim_end_matches(", ")
                .to_owned(),
            workload: PlanWorkload {
                name: name.to_owned(),
                bench: Some(bench),
                options,
                ..PlanWorkload::default()
            },
            threads,
            bytes: BUILT_IN_BYTES,
        })
    }

    /// Derives a workload from the trace in `directory`.
    fn trace(&self, directory: &Path) -> Result<ResolvedWorkload, AdviseError> {
        let DerivedPersonality { text, counts } = trace_to_workload::derive(directory)?;
        let mut resolved = self.personality(&directory.display().to_string(), text)?;
        let percent = |count: u64| 100.0 * count as f64 / counts.kept().max(1) as f64;
        resolved.about = format!(
            "made of a trace with {} calls ({:.0} % writes, {:.0} % reads, {:.0} % syncs, {:.0} % creations, {:.0} % \
             removals): {}",
            counts.kept(),
            percent(counts.writes),
            percent(counts.reads),
            percent(counts.syncs),
            percent(counts.creations),
            percent(counts.removals),
            resolved.about
        );
        Ok(resolved)
    }

    /// Resolves the personality in `text`, which is called `file`.
    pub(super) fn personality(
        &self,
        file: &str,
        text: String,
    ) -> Result<ResolvedWorkload, AdviseError> {
        let mut set = self.set.to_vec();
        if self.threads.is_some() {
            if !text.contains("$nthreads") {
                return Err(AdviseError::Option(format!(
                    "--threads: {file} has no $nthreads: leave it out, or give its own variable with --set"
                )));
            }
            set.push("nthreads={threads}".to_owned());
        }
        let threads = self.threads.unwrap_or(1);
        let given: Vec<String> =
            set.iter().map(|pair| pair.replace("{threads}", &threads.to_string())).collect();
        let parsed = luc_filebench::WorkloadFile::parse(file, &text, &given)?;
        let mut options = BTreeMap::new();
        let seconds = match self.seconds {
            None if parsed.ends_by_itself() => None,
            seconds => Some(seconds.unwrap_or(self.default_seconds)),
        };
        options.extend(seconds.map(|seconds| ("seconds".to_owned(), Value::Float(seconds))));
        if !set.is_empty() {
            let set = set.iter().cloned().map(Value::String).collect();
            options.insert("set".to_owned(), Value::Array(set));
        }
        let length = seconds.map_or("to its end".to_owned(), |seconds| format!("{seconds} s"));
        let sets: String = given.iter().map(|pair| format!(", {pair}")).collect();
        Ok(ResolvedWorkload {
            about: format!(
                "Filebench's language, {file}: {} threads, {length}{sets}",
                parsed.clients()
            ),
            bytes: parsed.bytes(),
            workload: PlanWorkload {
                name: name_of(file),
                filebench: Some(file.to_owned()),
                text,
                options,
                ..PlanWorkload::default()
            },
            threads,
        })
    }
}

/// Returns the file's name in a form that a key may have.
pub(super) fn name_of(file: &str) -> String {
    let stem = Path::new(file).file_stem().unwrap_or_default().to_string_lossy();
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || "._+-".contains(c) { c } else { '-' }
    };
    let name: String = stem.chars().map(plain).collect();
    if name.is_empty() { "workload".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(given: &str) -> WorkloadRequest<'_> {
        WorkloadRequest { given, set: &[], seconds: None, threads: None, default_seconds: 5.0 }
    }

    #[test]
    fn names_are_found() {
        let built_in = asked("varmail").resolve().expect("built in");
        assert_eq!(built_in.workload.bench, Some(BuiltinWorkload::Varmail));
        assert_eq!(built_in.threads, 16);
        for name in ["filebench/varmail", "webserver", "fileserver"] {
            let personality = asked(name).resolve().expect(name);
            assert!(personality.workload.filebench.is_some(), "{name}");
            assert!(personality.bytes > 1e6, "{name}: {}", personality.bytes);
            assert_eq!(personality.workload.options["seconds"], Value::Float(5.0));
        }
        // It ends when its files are made.
        let to_its_end = asked("createfiles").resolve().expect("stock");
        assert!(!to_its_end.workload.options.contains_key("seconds"));
    }

    #[test]
    fn a_wrong_name_has_the_nearest() {
        for (given, meant) in [("varmial", "varmail"), ("webservr", "webserver")] {
            let error = asked(given).resolve().expect_err("refused").to_string();
            assert!(error.contains(&format!("did you mean '{meant}'?")), "{error}");
            assert_eq!(error.lines().count(), 1);
        }
    }

    #[test]
    fn threads_and_variables_go_where_the_file_has_them() {
        let set = ["nfiles=50".to_owned()];
        let many = WorkloadRequest { set: &set, threads: Some(3), ..asked("webserver") };
        let found = many.resolve().expect("stock");
        assert_eq!(found.threads, 3);
        assert!(found.about.contains("nfiles=50, nthreads=3"), "{}", found.about);
        assert!(found.bytes < 1e7, "{}", found.bytes);
        let error = WorkloadRequest { threads: Some(3), ..asked("copyfiles") }
            .personality("x.f", "define fileset name=a".to_owned())
            .expect_err("no such variable");
        assert!(error.to_string().contains("$nthreads"), "{error}");
    }

    #[test]
    fn names_for_results_are_plain() {
        assert_eq!(name_of("/a/my work,load.f"), "my-work-load");
        assert_eq!(name_of(""), "workload");
    }
}
