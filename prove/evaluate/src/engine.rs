//! Part `engine`: the cost of the engine of Filebench's files, beside loops of the same calls and fio, on tmpfs.

use std::path::{Path, PathBuf};
use std::process::Command;

use luc_stats::random;
use luc_workload::scratch::Scratch;
use rand::seq::SliceRandom as _;
use serde_json::{Value, json};

use crate::error::EvaluateError;
use crate::harness::{Harness, figure, line, missing};
use crate::progress::Progress;
use crate::steal::{self, with_stolen_share};

/// A tmpfs on every Linux.
const TMPFS: &str = "/dev/shm";
const TMPFS_MAGIC: u64 = 0x0102_1994;
const THREADS: usize = 2;
const LOOP: &str = include_str!("engine.c");

/// System call that is made over and over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Call {
    Read,
    Stat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Maker {
    Engine,
    Loop,
    ClockedLoop,
    InlineLoop,
    Fio,
}

impl Call {
    const ALL: [Self; 2] = [Self::Read, Self::Stat];

    fn name(self) -> &'static str {
        match self {
            Self::Read => "pread of a byte",
            Self::Stat => "fstat",
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Stat => "stat",
        }
    }

    fn makers(self) -> &'static [Maker] {
        match self {
            Self::Read => {
                &[Maker::Engine, Maker::Loop, Maker::ClockedLoop, Maker::InlineLoop, Maker::Fio]
            }
            Self::Stat => &[Maker::Engine, Maker::Loop, Maker::ClockedLoop, Maker::InlineLoop],
        }
    }

    /// Returns the workload file. Each thread has a file of its own, as in the loop and in fio: two threads that read
    /// one page would wait for its reference count.
    fn file(self) -> String {
        let flowop = match self {
            Self::Read => "flowop read name=op,fd=1,iosize=1,random,iters=1000000000",
            Self::Stat => "flowop statfile name=op,fd=1,iters=1000000000",
        };
        let (mut filesets, mut threads) = (String::new(), String::new());
        for number in 1..=THREADS {
            filesets += &format!(
                "define fileset name=set{number},path=$dir,size=1k,entries=1,dirwidth=1,prealloc\n"
            );
            threads += &format!(
                "thread name=t{number},instances=1 {{\n  \
                 flowop openfile name=open{number},filesetname=set{number},fd=1\n  {flowop}\n}}\n"
            );
        }
        format!("set $dir=/tmp\n{filesets}define process name=p {{\n{threads}}}\n")
    }
}

impl Maker {
    fn name(self) -> &'static str {
        match self {
            Self::Engine => "luc bench filebench",
            Self::Loop => "plain loop",
            Self::ClockedLoop => "loop that reads the clock",
            Self::InlineLoop => "the same without the C library",
            Self::Fio => "fio",
        }
    }
}

struct Bench<'a> {
    harness: &'a Harness,
    looping: PathBuf,
    directory: PathBuf,
    seconds: f64,
}

pub(super) fn run(harness: &Harness) -> Result<(), EvaluateError> {
    let repeats = harness.options.repeats.unwrap_or(7);
    let scratch = Scratch::create(Path::new(TMPFS)).map_err(|error| EvaluateError::Missing {
        what: format!("a tmpfs at {TMPFS} ({error})"),
    })?;
    let about = rustix::fs::statfs(scratch.path())
        .map_err(|error| EvaluateError::file("look at", scratch.path())(error.into()))?;
    if about.f_type as u64 != TMPFS_MAGIC {
        return Err(missing("a tmpfs at /dev/shm"));
    }
    let bench = Bench {
        harness,
        looping: harness.compile("loop", LOOP, &[])?,
        directory: scratch.path().to_owned(),
        seconds: harness.options.seconds.unwrap_or(3.0),
    };
    let has_fio = harness.execute(Command::new("fio").arg("--version"), &[0]).is_ok();
    let mut order: Vec<(Call, Maker)> = Vec::new();
    for call in Call::ALL.into_iter().filter(|call| harness.options.wants(call.name())) {
        let makers = call.makers().iter().copied();
        let makers = makers.filter(|&maker| maker != Maker::Fio || has_fio);
        order.extend(makers.map(|maker| (call, maker)));
    }
    let mut progress = Progress::new(harness.part, order.len() * repeats);
    for repeat in 0..repeats {
        order.shuffle(&mut random::stream(harness.options.seed, repeat as u64));
        for &(call, maker) in &order {
            let once =
                |may_repeat| bench.measure_rate(CallTrial { call, maker, repeat }, may_repeat);
            let rate = steal::undisturbed(harness, once)?;
            progress.step(&format!(
                "{}, {}: {:.2} million/s",
                call.name(),
                maker.name(),
                rate / 1e6
            ));
        }
    }
    Ok(())
}

/// A call and its maker in a round.
struct CallTrial {
    call: Call,
    maker: Maker,
    repeat: usize,
}

impl Bench<'_> {
    /// Makes a run. Returns calls per second, and the share of the processors' time that was stolen meanwhile.
    fn measure_rate(
        &self,
        CallTrial { call, maker, repeat }: CallTrial,
        may_repeat: bool,
    ) -> Result<(f64, f64), EvaluateError> {
        let mut command = self.command(call, maker)?;
        let (finished, stolen_share) =
            with_stolen_share(|| self.harness.execute(&mut command, &[0]))?;
        let rate = rate(maker, &finished.stdout)?;
        self.harness.keep(json!({
            "call": call.name(), "by": maker.name(), "repeat": repeat, "command": line(&command),
            "per_s": rate.round(), "stolen_share": stolen_share,
            "disturbed": steal::is_disturbed(may_repeat, stolen_share),
        }));
        Ok((rate, stolen_share))
    }

    fn command(&self, call: Call, maker: Maker) -> Result<Command, EvaluateError> {
        let seconds = self.seconds.to_string();
        Ok(match maker {
            Maker::Engine => {
                let file = self.harness.path(&format!("{}.f", call.word()));
                std::fs::write(&file, call.file()).map_err(EvaluateError::file("write", &file))?;
                let mut command = self.harness.luc(&["bench", "filebench"]);
                command.arg(file).args(["--json", "--seconds", &seconds]);
                command.arg("--dir").arg(&self.directory);
                command
            }
            Maker::Loop | Maker::ClockedLoop | Maker::InlineLoop => {
                let how = match maker {
                    Maker::ClockedLoop => "clock",
                    Maker::InlineLoop => "inline",
                    _ => "plain",
                };
                let mut command = Command::new(&self.looping);
                command.args([call.word(), how, &THREADS.to_string(), &seconds]);
                command.arg(&self.directory);
                command
            }
            Maker::Fio => {
                let mut command = Command::new("fio");
                command.args([
                    "--name=byte",
                    "--rw=randread",
                    "--bs=1",
                    "--filesize=1k",
                    "--ioengine=psync",
                    "--thread",
                    "--norandommap",
                    "--time_based",
                    "--group_reporting",
                    "--output-format=json",
                ]);
                command.arg(format!("--numjobs={THREADS}"));
                command.arg(format!("--runtime={seconds}"));
                command.arg(format!("--directory={}", self.directory.display()));
                command
            }
        })
    }
}

/// Returns the calls per second in a program's output.
fn rate(maker: Maker, said: &str) -> Result<f64, EvaluateError> {
    let json = || serde_json::from_str::<Value>(said).map_err(|_| missing("the rate"));
    match maker {
        Maker::Engine => figure(&json()?, "flowops_per_second"),
        Maker::Loop | Maker::ClockedLoop | Maker::InlineLoop => {
            said.trim().parse().map_err(|_| missing("the rate"))
        }
        Maker::Fio => figure(&json()?["jobs"][0]["read"], "iops"),
    }
}
