//! Runs of the service with a planted trouble.

use std::fs;
use std::thread;
use std::time::Duration;

use luc_harness::disks::{Disk, DiskSpec, EXT4};
use luc_harness::error::EvaluateError;
use luc_harness::harness::{Harness, missing};
use serde::Serialize;
use serde_json::json;

use super::node::Solr;
use super::service::{Load, Service, Wanted};
use super::settings::{MAX_RUN_TIME, THINK};
use super::trouble::{Means, Trouble};

use crate::answer::Answer;
use crate::cause::{Expected, Judgement, findings_on};
use crate::hosts;
use crate::recorder::Recorder;

/// Number of clients that ask at once.
const CLIENTS: u64 = 4;
/// Number of queries of each client before anything is recorded, so that Java has compiled its hot code.
const QUERIES_BEFORE: u64 = 400;
/// Time that clients ask while a trouble comes and goes.
const ASKED_TIME: Duration = Duration::from_secs(8);
/// Disk of a slow shard's files.
const DISK: DiskSpec = DiskSpec { model: &["--model", "cloud"], ..EXT4 };
/// Offset of the seed of the queries before.
const OTHER_QUERIES: u64 = 1 << 32;
/// The shard's processor, and the others'.
const PROCESSORS: [usize; 2] = [1, 0];

#[derive(Debug, Clone, Serialize)]
pub(super) struct PlantRun {
    /// Names and versions of the programs.
    version: String,
    trouble: &'static str,
    seed: u64,
    shard: usize,
    commands: Vec<String>,
    queries: u64,
    lost_rows: u64,
    /// Whether the parts of each path, and the findings, sum to the requests' time.
    sums: bool,
    /// Judgement of the trace by itself, of one host.
    one_host: Judgement,
    /// Judgement of the trace as those of four hosts with clocks of their own.
    hosts: Judgement,
}

impl PlantRun {
    /// Describes the run in a few words.
    pub(super) fn brief(&self) -> String {
        let views = [("as one host", &self.one_host), ("as four hosts", &self.hosts)];
        let views = views.map(|(name, judged)| {
            if judged.is_right() {
                format!("{name} right")
            } else {
                format!("{name} wrong ({}): {}", judged.wrong.join(", "), judged.first)
            }
        });
        format!("{} {}: {}", self.trouble, self.seed, views.join("; "))
    }
}

/// Records the service while it has a trouble, and judges the first finding.
pub(super) fn once(
    harness: &Harness,
    solr: &Solr,
    trouble: Trouble,
    seed: u64,
) -> Result<PlantRun, EvaluateError> {
    // 1. Start the service, and warm it up.
    let trace = harness.path("trace");
    let disk = (trouble == Trouble::Disk).then(|| Disk::create(harness, &DISK));
    let disk = disk.transpose()?;
    let planted = trouble.draw(seed, Service::SHARDS);
    let wanted = Wanted {
        seed,
        disk: disk.as_ref().map(|disk| (planted.shard, disk.mount.as_path())),
        processor: (trouble == Trouble::Hog).then_some((planted.shard, PROCESSORS)),
    };
    let service = Service::start(harness, solr, wanted)?;
    let load = Load {
        clients: CLIENTS,
        queries: Some(QUERIES_BEFORE),
        longest: MAX_RUN_TIME,
        think: THINK,
        seed: seed + OTHER_QUERIES,
    };
    service.ask(harness, load)?;
    // 2. Record it while it has the trouble.
    let recorder = Recorder::of_fleet(harness, &trace)?;
    let load = Load { queries: None, longest: ASKED_TIME, seed, ..load };
    let node = &service.shards[planted.shard];
    let log = harness.path("trouble.log");
    let means = Means {
        myself: &harness.options.myself,
        log: &log,
        processor: PROCESSORS[0],
        home: &node.home,
    };
    let (asked, culprit) = thread::scope(|scope| {
        let playing = scope.spawn(|| planted.play(node, means));
        (service.ask(harness, load), playing.join())
    });
    let asked = asked?;
    let culprit = culprit.map_err(|_| missing("the trouble"))??;
    let mut commands = vec![recorder.stop()?];
    commands.extend(service.commands());
    let new = culprit.is_new.then_some((planted.shard, culprit.process));
    let parts = service.parts(&asked, new);
    let (name, address) = (node.host.name.clone(), service.front_end.address().to_string());
    drop(service);
    drop(disk);
    // 3. Judge the explanation of one host, and of several.
    let mut expected = Expected {
        kind: trouble.finding(),
        process: Some(culprit.process),
        threads: culprit.threads,
        is_sent_again: trouble == Trouble::Loss,
        ..Expected::default()
    };
    let judged = |answer: &Answer, expected: &Expected| {
        let first = findings_on(answer, &address).first();
        Judgement::new(first, |first| expected.compare(first))
    };
    let answer = Answer::of(harness, &[&trace])?;
    let one_host = judged(&answer, &expected);
    let (lost_rows, sums) = (answer.lost_rows(), answer.sums());
    let clocks = hosts::clocks(&trace, parts.len())?;
    let answer = hosts::explained(harness, &trace, &parts, &clocks)?;
    expected.host = Some(name);
    let hosts = judged(&answer, &expected);
    fs::remove_dir_all(&trace).map_err(EvaluateError::file("remove", &trace))?;
    let run = PlantRun {
        version: solr.version.clone(),
        trouble: trouble.name(),
        seed,
        shard: planted.shard,
        commands,
        queries: asked.queries,
        lost_rows,
        sums: sums && answer.sums(),
        one_host,
        hosts,
    };
    harness.keep(json!(run));
    Ok(run)
}
