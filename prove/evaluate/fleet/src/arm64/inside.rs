//! Work of one guest, and its results.

use std::fs;

use luc_harness::error::EvaluateError;
use luc_harness::harness::{Harness, figure, missing};
use luc_vm::{GuestKernel, GuestOutcome};
use serde::Serialize;

use super::counted::{self, Counted};
use super::machine::{Tools, parsed, succeeded, unpack};
use super::wire::Wire;
use crate::known::names::{Known, Said};

/// Texts of the kernel's complaints after a power cut.
const CUT_MESSAGES: [&str; 2] = ["EXT4-fs error", "JBD2: Error"];
const SCRIPT: &str = r#"
set -e
modprobe loop
# Some kernels have it built in.
modprobe fuse || test -e /dev/fuse
mkfifo /run/input
known 500 100 </run/input >"$OUT/said" &
exec 5>/run/input
until grep -q '^ready$' "$OUT/said"; do sleep 0.2; done
luc record --fleet --no-calls --quiet --out "$OUT/names" &
recorder=$!
until [ -n "$(ls "$OUT/names" 2>/dev/null)" ]; do sleep 0.2; done
sleep 2
echo >&5
until grep -q '^done$' "$OUT/said"; do sleep 0.2; done
sleep 2
kill -TERM $recorder
wait $recorder
exec 5>&-

luc record --fleet --all --quiet --out "$OUT/wire" -- talk 127.0.0.1 /proc/self/ns/net true

mkdir /run/slow
luc disk create slow --size 256M --flush 30ms --mkfs ext4 --mount /run/slow
luc record --quiet --out /run/trace -- luc bench metarates --dir /run/slow --threads 16 --seconds 5 >/dev/null
luc explain --json /run/trace >"$OUT/explained"
luc disk remove slow

luc powercut --rounds 10 --policy auto --json >"$OUT/cuts.library"
luc powercut --rounds 10 --policy auto --reach notify --json >"$OUT/cuts.notified"
"#;

#[derive(Debug, Serialize)]
pub(super) struct ArmRun {
    pub(super) kernel: String,
    pub(super) seconds: f64,
    /// Functions of threads and holders of locks.
    pub(super) known: Known,
    /// A connection whose bytes are known.
    pub(super) wire: Wire,
    /// First finding of `luc explain` on callers on a slow disk.
    pub(super) finding: String,
    /// Acknowledged files in power cuts with the library, and with notifications.
    pub(super) cuts: [Cuts; 2],
    /// Complaints of the kernel, without those of power cuts.
    pub(super) complaints: Vec<String>,
    pub(super) counted: Vec<Counted>,
}

#[derive(Debug, Serialize)]
pub(super) struct Cuts {
    pub(super) rounds: f64,
    pub(super) acknowledged: f64,
    pub(super) lost: f64,
    pub(super) torn: f64,
}

pub(super) fn once(
    harness: &Harness,
    tools: &Tools,
    kernel: &GuestKernel,
) -> Result<ArmRun, EvaluateError> {
    let outcome = succeeded(kernel, tools.vm(kernel).script(SCRIPT).run()?)?;
    let folder = harness.path("guest");
    unpack(&outcome, &folder)?;
    let said = outcome.file("said").ok_or_else(|| missing("what it said"))?;
    let mut said = said.as_bytes();
    let old = Said::read_to("ready", &mut said)?;
    let new = Said::read_to("done", &mut said)?;
    let explained = parsed(&outcome, "explained")?;
    let finding = explained["findings"][0]["kind"].as_str();
    // A file system says so when its disk's power is cut.
    let all = outcome.complaints().into_iter();
    let complaints = all.filter(|line| !CUT_MESSAGES.iter().any(|cut| line.contains(cut)));
    let run = ArmRun {
        kernel: kernel.release().to_owned(),
        seconds: outcome.wall.as_secs_f64(),
        known: Known::of(&old, &new, &folder.join("names"))?,
        wire: Wire::of(&folder.join("wire"))?,
        finding: finding.unwrap_or("nothing").to_owned(),
        cuts: [cuts(&outcome, "library")?, cuts(&outcome, "notified")?],
        complaints: complaints.map(str::to_owned).collect(),
        counted: counted::run(harness, tools, kernel)?,
    };
    fs::remove_dir_all(&folder).map_err(EvaluateError::file("remove", &folder))?;
    Ok(run)
}

fn cuts(outcome: &GuestOutcome, reach: &str) -> Result<Cuts, EvaluateError> {
    let report = parsed(outcome, &format!("cuts.{reach}"))?;
    Ok(Cuts {
        rounds: figure(&report, "rounds")?,
        acknowledged: figure(&report, "acknowledged")?,
        lost: figure(&report, "lost")?,
        torn: figure(&report, "torn")?,
    })
}
