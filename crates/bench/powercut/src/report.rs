//! Report on the rounds.

use luc_disk::CutReport;
use luc_workload::workers::ClientKind;
use serde::Serialize;

use super::PowercutRequest;
use super::fsck::FsckProgram;

/// Result of a round. A round without findings is a [`BadRound`] with nothing bad in it.
pub(super) struct RoundResult {
    pub(super) round: BadRound,
    pub(super) cut: CutReport,
}

/// Report of `luc powercut` on all rounds.
#[derive(Debug, Clone, Serialize)]
pub struct PowercutReport {
    /// Seed of the first round.
    pub seed: u64,
    pub rounds: u64,
    pub fs: String,
    pub mkfs_options: String,
    pub mount_options: String,
    pub model: luc_disk::ModelSpec,
    pub size_bytes: u64,
    /// The gate's policy, if the clients ran under it.
    pub policy: Option<String>,
    /// Number of our clients; absent with a command.
    pub clients: Option<usize>,
    /// Kind of the clients; absent with a command.
    pub client_kind: Option<ClientKind>,
    /// The command that was run instead.
    pub command: Option<Vec<String>>,
    /// Whether the clients skipped their fsyncs, for experiments.
    pub unsafe_no_fsync: bool,
    /// The checker run after each round; absent if none is known for the file system.
    pub checker: Option<String>,
    /// Acknowledgements read before the cuts.
    pub acknowledged: u64,
    /// Acknowledged files, or changes of files, that were gone.
    pub lost: u64,
    /// Acknowledged files with other contents.
    pub torn: u64,
    /// Rounds after which the file system could not be mounted.
    pub not_mountable: u64,
    /// Rounds after which its checker found something.
    pub fsck_unclean: u64,
    /// Unflushed sectors that outlived the cuts with their newest contents.
    pub sectors_kept: u64,
    /// Sectors that went back to an older unflushed version.
    pub sectors_stale: u64,
    /// Sectors that went back to their flushed contents.
    pub sectors_lost: u64,
    pub interrupted: bool,
    pub bad_rounds: Vec<BadRound>,
}

#[derive(Debug, Clone, Serialize)]
pub struct BadRound {
    /// `--rounds 1 --seed` this repeats it.
    pub seed: u64,
    /// Acknowledgements read before the cut.
    pub acknowledged: u64,
    pub lost: u64,
    pub torn: u64,
    /// Whether it could not be mounted.
    pub not_mountable: bool,
    /// Whether the checker found something.
    pub fsck_unclean: bool,
    /// The first few findings, one line each.
    pub examples: Vec<String>,
}

impl PowercutReport {
    pub(super) fn new(plan: &PowercutRequest, checker: Option<&FsckProgram>) -> Self {
        let ours = plan.command.is_none();
        let words = |command: &Vec<std::ffi::OsString>| {
            command.iter().map(|word| word.to_string_lossy().into_owned()).collect()
        };
        Self {
            seed: plan.seed,
            rounds: 0,
            fs: plan.fs.clone(),
            mkfs_options: plan.mkfs_options.clone(),
            mount_options: plan.mount_options.clone(),
            model: plan.model.clone(),
            size_bytes: plan.size_bytes,
            policy: plan.policy.clone(),
            clients: ours.then_some(plan.clients),
            client_kind: ours.then_some(plan.kind),
            command: plan.command.as_ref().map(words),
            unsafe_no_fsync: plan.unsafe_no_fsync,
            checker: checker.map(FsckProgram::command_line),
            acknowledged: 0,
            lost: 0,
            torn: 0,
            not_mountable: 0,
            fsck_unclean: 0,
            sectors_kept: 0,
            sectors_stale: 0,
            sectors_lost: 0,
            interrupted: false,
            bad_rounds: Vec::new(),
        }
    }

    /// Returns whether every acknowledged fsync was durable and every file system whole.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.bad_rounds.is_empty()
    }

    pub(super) fn add(&mut self, outcome: RoundResult) {
        let RoundResult { round, cut } = outcome;
        self.rounds += 1;
        self.acknowledged += round.acknowledged;
        self.lost += round.lost;
        self.torn += round.torn;
        self.not_mountable += u64::from(round.not_mountable);
        self.fsck_unclean += u64::from(round.fsck_unclean);
        self.sectors_kept += cut.kept_sectors;
        self.sectors_stale += cut.stale_sectors;
        self.sectors_lost += cut.lost_sectors;
        if round.lost + round.torn > 0 || round.not_mountable || round.fsck_unclean {
            self.bad_rounds.push(round);
        }
    }
}
