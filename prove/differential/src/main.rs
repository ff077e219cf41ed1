//! `luc-differential`: random programs are run without LUC and with it. They must be told the same, and a power cut
//! must leave at least what they were promised.
//!
//! - `program`: a program, as text.
//! - `generate`: random programs.
//! - `layout`: a batch of them in shared memory, for the interpreter in `subject/`.
//! - `lane`: one way to run a batch, on an emulated disk.
//! - `place`: a mount namespace, with a `lucd` of its own.
//! - `batch`: one in several ways.
//! - `compare`: results and errno.
//! - `races`: what a program may do to its own call under way.
//! - `promises`: what was promised, and whether the disk has it.
//! - `fuzz`: batches until time is up; `shrink`: what of a program is needed for its difference.

mod arguments;
mod batch;
mod compare;
mod fuzz;
mod generate;
mod lane;
mod layout;
mod place;
mod program;
mod promises;
mod races;
mod shrink;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use arguments::Arguments;
use lane::{Lane, Way};

const USAGE: &str = "\
Random programs with LUC and without it (root)

usage: luc-differential fuzz [--seconds N] [--count N] [--seed N] [--ways library,notify,attach] [--policy POLICY] [--shrink SECONDS] [--json FILE]
       luc-differential replay FILE|SEED [--ways library,notify,attach] [--policy POLICY] [--times N]
       luc-differential shrink FILE|SEED --ways WAY --kind KIND [--policy POLICY]
       luc-differential show SEED

A failing program is printed with its seed, and shrunk. `replay` runs 64 copies at once, so that their calls are held;
`show` prints a program, which can be changed. Exit status: 0, 1 if there are differences, 2 if it cannot run.
";

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("luc-differential: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<ExitCode> {
    let mut words = std::env::args().skip(1);
    let command = words.next().unwrap_or_default();
    let arguments = Arguments::parse(words).with_context(|| USAGE.to_owned())?;
    if ["fuzz", "replay", "shrink"].contains(&command.as_str()) {
        place::enter()?;
    }
    // Ctrl-C ends a batch early, and its disks are removed.
    let _guard =
        luc_host::interrupt_flag::SignalGuard::install().context("signals cannot be taken over")?;
    match command.as_str() {
        "show" => {
            print!("{}", generate::program(arguments.seed_of_file()?));
            Ok(ExitCode::SUCCESS)
        }
        "fuzz" => fuzz(&arguments),
        "replay" => replay(&arguments),
        "shrink" => shrink(&arguments),
        "--help" => {
            print!("{USAGE}");
            Ok(ExitCode::SUCCESS)
        }
        _ => bail!("{USAGE}"),
    }
}

/// The programs that a command runs, and the `lucd` that attaches to them.
struct Setup {
    luc: PathBuf,
    subject: PathBuf,
    _lucd: Option<place::Lucd>,
    _folder: tempfile::TempDir,
}

impl Setup {
    fn make(ways: &[Way]) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let subject = compile(folder.path())?;
        let luc = luc()?;
        Ok(Self { _lucd: place::Lucd::start(ways, &luc)?, luc, subject, _folder: folder })
    }

    fn lanes(&self, ways: &[Way]) -> Result<Vec<Lane>> {
        fuzz::make_lanes(ways, &self.luc, &self.subject)
    }
}

fn fuzz(arguments: &Arguments) -> Result<ExitCode> {
    let options = arguments.options();
    println!("seed {}", options.seed);
    let setup = Setup::make(&options.ways)?;
    let summary = fuzz::run(&options, setup.lanes(&options.ways)?)?;
    let text = serde_json::to_string_pretty(&summary)?;
    if let Some(path) = &arguments.json {
        std::fs::write(path, &text).with_context(|| path.display().to_string())?;
    }
    println!("{text}");
    if let Some(error) = &summary.error {
        bail!("after {} programs: {error}", summary.programs);
    }
    let is_fine = summary.ways.values().all(|one| one.differences.is_empty());
    Ok(ExitCode::from(u8::from(!is_fine)))
}

fn replay(arguments: &Arguments) -> Result<ExitCode> {
    let program = arguments.program()?;
    let setup = Setup::make(&arguments.ways)?;
    let lanes = setup.lanes(&arguments.ways)?;
    let lanes: Vec<_> = lanes.iter().collect();
    let trials = shrink::try_copies(&lanes, &program, arguments.policy, arguments.times)?;
    println!("{}", serde_json::to_string_pretty(&trials)?);
    Ok(ExitCode::from(u8::from(!trials.differences.is_empty())))
}

fn shrink(arguments: &Arguments) -> Result<ExitCode> {
    let program = arguments.program()?;
    let kind = arguments.kind.context("shrink needs --kind")?;
    let setup = Setup::make(&arguments.ways)?;
    let lanes = setup.lanes(&arguments.ways)?;
    let lanes: Vec<_> = lanes.iter().collect();
    let until = Instant::now() + Duration::from_secs(600);
    let small = shrink::shrink(&lanes, &program, arguments.policy, kind, arguments.times, until)?;
    print!("{small}");
    Ok(ExitCode::SUCCESS)
}

/// Finds `luc` beside this program or in the folder above.
fn luc() -> Result<PathBuf> {
    let own = std::env::current_exe()?;
    let folders = own.ancestors().skip(1).take(2);
    let mut found = folders.map(|folder| folder.join("luc"));
    let found = found.find(|path| path.is_file());
    found.context("luc is not beside luc-differential: `make build` first")
}

fn compile(folder: &Path) -> Result<PathBuf> {
    const SOURCES: [(&str, &str); 5] = [
        ("subject.h", include_str!("../subject/subject.h")),
        ("main.c", include_str!("../subject/main.c")),
        ("actors.c", include_str!("../subject/actors.c")),
        ("calls.c", include_str!("../subject/calls.c")),
        ("processes.c", include_str!("../subject/processes.c")),
    ];
    for (name, text) in SOURCES {
        std::fs::write(folder.join(name), text)?;
    }
    let program = folder.join("subject");
    // Bound at its start: a first call is to take no lock of the dynamic loader's. libgcc_s, which pthread_exit would
    // load.
    let options = ["-O1", "-g", "-pthread", "-Wl,-z,now,--no-as-needed", "-lgcc_s", "-o"];
    let sources = SOURCES.iter().map(|(name, _)| *name);
    let compiled = Command::new("cc")
        .args(options)
        .arg(&program)
        .args(sources.filter(|name| name.ends_with(".c")))
        .current_dir(folder)
        .output()
        .context("cc cannot be run: install a C compiler")?;
    if !compiled.status.success() {
        bail!("{}", String::from_utf8_lossy(&compiled.stderr));
    }
    Ok(program)
}
