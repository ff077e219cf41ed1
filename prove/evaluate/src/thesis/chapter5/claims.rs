//! What chapter 5 claims, with a likely cause for each verdict.

use super::super::finding::Claim;

pub(super) const PID_GAINS: Claim = Claim {
    figure: "5.8c",
    says: "Metarates 4: PID batching gains at every speed, up to 2.26 times",
    agrees: "all clients' fsyncs share one commit",
    partly: "the set point is half of the clients, so that the others' fsyncs may miss the commit",
    does_not: "between two rounds the controller unlearns what it has learnt of so few clients",
};

pub(super) const PID_STEADIES: Claim = Claim {
    figure: "5.8a, b",
    says: "Metarates 4: ext4 falls by up to 20 % to the fastest speed, with PID batching by 6 %",
    agrees: "who shares the first commit no longer depends on the speed",
    partly: "the controller has an error of its own, which changes with the speed",
    does_not: "ext4 does not fall here, so that there is nothing to steady",
};

pub(super) const PID_SHORTENS: Claim = Claim {
    figure: "5.8e",
    says: "Metarates 4: synchronization delays are much shorter with PID batching",
    agrees: "an fsync waits for one commit instead of nearly two",
    partly: "at some speeds only",
    does_not: "the hold is longer than what it saves",
};

pub(super) const COPY_GAINS: Claim = Claim {
    figure: "5.9c",
    says: "IOzone: heuristic copy-out is faster at every speed (by how much is in a chart only)",
    agrees: "writes go on in metadata that a commit has in hand",
    partly: "copying begins with the commit after the one that delayed writes: of a round's two commits or so the \
             first is not helped",
    does_not: "copying begins with the commit after the one that delayed writes, and a round has hardly more than one",
};

pub(super) const COPY_STEADIES: Claim = Claim {
    figure: "5.9a, b",
    says: "IOzone: ext4 falls by up to 47 %, with heuristic copy-out hardly at any step",
    agrees: "no write waits any more, whatever the speed",
    partly: "the first commit of a round still delays writes",
    does_not: "ext4 with files of this size does not fall here by more than noise, so that there is little to steady",
};

pub(super) const COPY_UNBLOCKS: Claim = Claim {
    figure: "5.9e",
    says: "IOzone: fewer threads have write delays",
    agrees: "their metadata is journaled from copies",
    partly: "only after the heuristic has switched on",
    does_not: "the heuristic switches on too late for a round",
};

pub(super) const VARMAIL_GAINS: Claim = Claim {
    figure: "5.10a, d",
    says: "varMail 64: PID batching gains 1.03 to 1.23 times, at every speed",
    agrees: "more fsyncs share each commit, and fewer wait for two",
    partly: "the gain depends on which set point the controller finds",
    does_not: "the hold costs what the sharing saves",
};

pub(super) const VARMAIL_FALLS: Claim = Claim {
    figure: "5.10b",
    says: "varMail 64: ext4 falls by up to 11 % when the processor gets faster",
    agrees: "fewer fsyncs are in the transaction when it closes",
    partly: "fewer fsyncs are in the transaction when it closes, a little",
    does_not: "64 threads in a closed loop form two groups that take turns, at every speed",
};

pub(super) const VARMAIL_SHORTENS: Claim = Claim {
    figure: "5.10e",
    says: "varMail 64: an fsync takes 5.3 to 11.6 ms less with PID batching",
    agrees: "fewer wait for two commits",
    partly: "at some speeds only",
    does_not: "the hold is longer than what it saves",
};

pub(super) const VARMAIL_COMMITS: Claim = Claim {
    figure: "5.10f",
    says: "varMail 64: PID batching needs fewer commits",
    agrees: "more fsyncs share each",
    partly: "at some speeds only",
    does_not: "the controller's holds gather no more fsyncs than the commits before them",
};

pub(super) const THREADS_GAIN: Claim = Claim {
    figure: "5.11, 5.12",
    says: "varMail, 4 to 64 threads: PID batching is faster with any number, at 1.6 and 3.1 GHz",
    agrees: "closed loops form two groups, with few threads as with many",
    partly: "the set point of half of the threads suits some numbers of threads only",
    does_not: "the hold costs what the sharing saves",
};

pub(super) const THREADS_DELAY: Claim = Claim {
    figure: "5.11, 5.12",
    says: "varMail: rate and synchronization delay grow with the number of threads",
    agrees: "more threads share a commit, and each commit has more to write",
    partly: "the rate grows, but a commit takes as long on this disk however much it writes",
    does_not: "commits are shared already",
};

pub(super) const OLTP_GAINS: Claim = Claim {
    figure: "5.13",
    says: "oltp: heuristic copy-out gains 1.11 to 1.25 times, at every speed",
    agrees: "writes go on while the log's commit has their inodes in hand",
    partly: "writes go on while the log's commit has their inodes in hand, where the processor is not full anyway",
    does_not: "few writes are delayed, or the processor is full anyway",
};

pub(super) const OLTP_STEADY: Claim = Claim {
    figure: "5.13",
    says: "oltp: slowdowns are minimal, on ext4 and with copy-out",
    agrees: "the writers compute most of the time, and that is faster",
    partly: "a slowdown on one of the two",
    does_not: "delays of writes grow faster than the processor",
};

pub(super) const OLTP_PID: Claim = Claim {
    figure: "5.14",
    says: "oltp: PID batching changes nothing",
    agrees: "one thread syncs: there is nobody to wait for",
    partly: "one thread syncs, and waiting for others costs or spares a little",
    does_not: "one thread syncs, and waiting for others changes when writes are delayed",
};

pub(super) const OLTP_DELAY: Claim = Claim {
    figure: "5.14",
    says: "oltp: delayJC changes nothing",
    agrees: "one thread syncs: there is nobody to wait for",
    partly: "a held commit delays the log, and for so long no write",
    does_not: "a held commit delays no write while it is held: fewer commits, fewer delays",
};

pub(super) const OLTP_BOTH: Claim = Claim {
    figure: "5.14",
    says: "oltp: both together gain as much as copy-out alone (1.25 times)",
    agrees: "batching has nothing to add or to spoil",
    partly: "what batching adds or spoils is more than noise at some speeds",
    does_not: "batching holds the log's commits, which changes what copy-out has to do",
};

pub(super) const OLTP_DELAYED: Claim = Claim {
    figure: "section 5.4.4",
    says: "32 % of oltp's writes are delayed, 22.2 ms each; 0.2 % of varMail's, 0.9 ms",
    agrees: "writes meet commits in oltp, fsyncs meet commits in varMail",
    partly: "writes meet commits in oltp more than in varMail, for as long as this disk's write takes",
    does_not: "a writer that is not delayed writes on and on, so that the delayed ones are a small share of all; varMail's \
               creations and deletions change what commits have in hand",
};

pub(super) const TOGETHER: Claim = Claim {
    figure: "5.15",
    says: "varMail, 8 to 128 threads at three speeds: with PID batching at least as fast; copy-out has no effect",
    agrees: "varMail's delays are fsyncs'",
    partly: "varMail's delays are fsyncs', mostly; with some numbers of threads the hold costs more than it saves, or \
             copies spare something",
    does_not: "the hold costs what the sharing saves",
};
