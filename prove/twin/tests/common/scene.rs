//! A run with a planted trouble, and the durations of its searches.

use std::collections::BTreeSet;

use luc_twin::truth::{
    Folder, Kind, Planted, Question, Tree, Truth, Work, WorkKind, streams, trees,
};

use super::{folder, output, run};

/// Truth of a run with a trouble, and the host of the trouble.
pub(crate) struct Scene {
    pub(crate) folder: Folder,
    pub(crate) trees: Vec<Tree>,
    /// Index among the folder's processes.
    host: usize,
    pub(crate) planted: Vec<Planted>,
}

impl Scene {
    pub(crate) fn run(kind: Kind, arguments: &[&str]) -> Self {
        let base = ["--documents", "2000", "--clients", "4", "--requests", "50"];
        let folder = run(&[&base[..], arguments].concat());
        let trees = trees(&folder).expect("whole");
        streams(&folder).expect("whole streams");
        let hosts: BTreeSet<usize> = (0..folder.processes.len())
            .filter(|at| {
                let here = &folder.processes[*at].header.host;
                let mut planted = folder.planted();
                planted.any(|(process, _)| process.header.host == *here)
            })
            .collect();
        assert_eq!(hosts.len(), 1, "one host has it");
        let planted: Vec<Planted> = folder.planted().map(|(_, planted)| *planted).collect();
        for planted in &planted {
            assert_eq!(planted.kind, kind);
            assert!(0 < planted.from_ns && planted.from_ns < planted.to_ns);
            assert!(planted.times > 0 && planted.strength > 0);
        }
        Self { host: *hosts.first().expect("a host"), folder, trees, planted }
    }

    pub(crate) fn process(&self) -> &Truth {
        &self.folder.processes[self.host]
    }

    pub(crate) fn planted_work(&self) -> Vec<Work> {
        let work = self.process().work();
        work.filter(|work| work.kind == WorkKind::Planted).copied().collect()
    }

    /// Durations of searches at the planted host: of requests that the trouble's own work rows name, and of the others.
    pub(crate) fn searches(&self) -> [Vec<u64>; 2] {
        let planted: BTreeSet<u64> = self.planted_work().iter().map(|work| work.request).collect();
        self.split(|search| planted.contains(&search.request))
    }

    /// Durations of searches at the planted host: of those that overlap a time of the trouble, and of the others.
    pub(crate) fn searches_by_time(&self) -> [Vec<u64>; 2] {
        self.split(|search| {
            let is_in = |planted: &Planted| {
                search.asked_ns <= planted.to_ns && planted.from_ns <= search.gathered_ns
            };
            self.planted.iter().any(is_in)
        })
    }

    fn split(&self, is_met: impl Fn(&Question) -> bool) -> [Vec<u64>; 2] {
        let searches = self.trees.iter().flat_map(|tree| &tree.searches);
        let here = searches.filter(|search| search.host == self.host);
        let (met, others): (Vec<&Question>, _) = here.partition(|search| is_met(search));
        [met, others].map(|part| part.iter().map(|search| took(search)).collect())
    }
}

/// Time between a question and its answer, seen from the asking process.
pub(crate) fn took(question: &Question) -> u64 {
    question.gathered_ns - question.asked_ns
}

pub(crate) fn median(times: &[u64]) -> u64 {
    let mut times = times.to_vec();
    times.sort_unstable();
    assert!(times.len() > 10, "{} are too few", times.len());
    times[times.len() / 2]
}

/// Asserts that one median is at least `least` times another.
pub(crate) fn assert_ratio(met: &[u64], others: &[u64], least: f64) {
    let (met, others) = (median(met) as f64, median(others) as f64);
    assert!(met > least * others, "{met} ns and {others} ns");
}

/// Asserts that the longest search during the trouble took many times as long as the others.
pub(crate) fn assert_longer(scene: &Scene) {
    let [met, others] = scene.searches_by_time();
    let longest = met.iter().max().expect("some");
    assert!(*longest > 3 * median(&others), "{longest} ns");
}

/// Whether this kernel can do it. Marks the test as skipped if not.
pub(crate) fn can_be_done(options: &[&str]) -> bool {
    let folder = folder();
    let truth = folder.path().join("truth");
    let tried = output(&truth, &[options, &["--requests", "4"]].concat());
    let said = String::from_utf8_lossy(&tried.stderr).into_owned();
    let can = tried.status.success() || !said.contains("cannot be done here");
    if !can {
        luc_testkit::skipped!("{said}");
    }
    can
}

/// Makes a directory on a disk that lives as long as the value.
pub(crate) fn plant_in_directory(kind: &str) -> (tempfile::TempDir, String) {
    let folder = folder();
    let plant = format!("{kind}:{}", folder.path().display());
    (folder, plant)
}
