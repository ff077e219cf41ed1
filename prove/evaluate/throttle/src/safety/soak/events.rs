//! Events among the services and at the throttle.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use luc_harness::disks::Disk;
use luc_harness::error::EvaluateError;
use luc_harness::harness::{Harness, stop_if_interrupted};
use rand::{Rng, RngExt as _};
use rustix::process::Signal;
use serde::Serialize;

use super::super::services::{Daemon, Service, kill};
use super::watch::{Watch, is_frozen};

/// Number of files that services read.
pub(super) const FILES: usize = 8;
/// Maximum number of services at a time.
const MAX_SERVICES: usize = 12;
/// Range of the time for which a process is stopped, ms.
const STOPPED_MS: std::ops::RangeInclusive<u64> = 100..=3000;
/// Time for which a service is frozen by another program.
const FOREIGN_FREEZE_TIME: Duration = Duration::from_secs(6);
/// Script of the protected service, for one period.
const PROTECTED_SCRIPT: &str = "i=0; while [ $i -lt 200 ]; do dd if=\"$M/file-0\" of=/dev/null bs=4k count=1 skip=$((i * 29 % 6000)) \
    iflag=direct 2>/dev/null; sleep 0.05; i=$((i + 1)); done";

/// Scripts of the services. `M` is the disk, `E` a file elsewhere for dd's messages, `N` the service's number. A full
/// disk is no error.
const SERVICE_SCRIPTS: [(&str, &str); 5] = [
    ("reads", "dd if=\"$M/file-$((N % FILES))\" of=/dev/null bs=128k iflag=direct 2>/dev/null"),
    (
        "writes",
        "dd if=/dev/zero of=\"$M/w-$N\" bs=64k count=300 conv=fsync 2>\"$E\" || no_space; rm -f \"$M/w-$N\"",
    ),
    (
        "fsyncs",
        "i=0; while [ $i -lt 40 ]; do dd if=/dev/zero of=\"$M/s-$N\" bs=4k count=1 oflag=append conv=notrunc,fsync \
         2>\"$E\" || no_space; i=$((i + 1)); done; rm -f \"$M/s-$N\"",
    ),
    (
        "fills the disk",
        "dd if=/dev/zero of=\"$M/f-$N\" bs=1M oflag=direct 2>/dev/null || :; rm -f \"$M/f-$N\"",
    ),
    ("sleeps", "sleep $((N % 7 + 1))"),
];

#[derive(Debug, Default, Clone, Serialize)]
pub(super) struct Count {
    arrived: u64,
    /// Services that ended by themselves, without an error.
    ended: u64,
    /// Services that ended with an error, or never.
    lost: u64,
    killed: u64,
    daemon_stopped: u64,
    guardian_stopped: u64,
    daemon_killed: u64,
    guardian_killed: u64,
    /// Services that another program froze.
    foreign: u64,
    /// Services that were thawed although another program froze them.
    thawed_foreign: u64,
}

impl Count {
    pub(super) fn line(&self) -> String {
        format!("{} services, {} lost", self.arrived, self.lost)
    }
}

struct Present {
    service: Service,
    sleeps: bool,
    /// Time since which another program has it frozen.
    foreign_since: Option<Instant>,
}

/// The services and the throttle.
pub(super) struct SoakSite<'a> {
    harness: &'a Harness,
    root: &'a Path,
    mount: PathBuf,
    config: PathBuf,
    daemon: Daemon,
    protected: Service,
    services: Vec<Present>,
    /// Stopped processes, and the times when they continue.
    stopped: Vec<(u32, Instant)>,
    next: usize,
    count: Count,
}

impl<'a> SoakSite<'a> {
    pub(super) fn open(
        harness: &'a Harness,
        root: &'a Path,
        disk: &Disk<'_>,
        config: PathBuf,
    ) -> Result<Self, EvaluateError> {
        let mount = disk.mount.clone();
        Ok(Self {
            protected: Service::start(root, 0, &script(&mount, 0, PROTECTED_SCRIPT))?,
            daemon: Daemon::start(harness, &config)?,
            harness,
            root,
            mount,
            config,
            services: Vec::new(),
            stopped: Vec::new(),
            next: 1,
            count: Count::default(),
        })
    }

    pub(super) fn daemon(&self) -> u32 {
        self.daemon.id()
    }

    pub(super) fn count(&self) -> &Count {
        &self.count
    }

    pub(super) fn step(
        &mut self,
        random: &mut impl Rng,
        may_kill: bool,
        watch: &Watch,
    ) -> Result<(), EvaluateError> {
        self.go_on();
        self.end_foreign(watch);
        self.reap(watch)?;
        if matches!(self.protected.child.try_wait(), Ok(Some(_))) {
            let script = script(&self.mount, 0, PROTECTED_SCRIPT);
            self.protected.run(&script)?;
        }
        match random.random_range(0..100) {
            0..55 if self.services.len() < MAX_SERVICES => self.arrive(random, watch)?,
            55..65 if !self.services.is_empty() => self.kill_one(random, watch),
            65..68 => self.stop(random, false),
            68..71 => self.stop(random, true),
            71..75 => self.freeze_one(watch),
            75..77 if may_kill => self.kill_daemon()?,
            77..79 if may_kill => self.kill_guardian(),
            _ => {}
        }
        Ok(())
    }

    fn arrive(&mut self, random: &mut impl Rng, watch: &Watch) -> Result<(), EvaluateError> {
        let (what, work) = SERVICE_SCRIPTS[random.random_range(0..SERVICE_SCRIPTS.len())];
        let number = self.next;
        self.next += 1;
        let service = Service::start(self.root, number, &script(&self.mount, number, work))?;
        watch.add(&service.group.path);
        self.services.push(Present { service, sleeps: what == "sleeps", foreign_since: None });
        self.count.arrived += 1;
        Ok(())
    }

    fn kill_one(&mut self, random: &mut impl Rng, watch: &Watch) {
        let index = random.random_range(0..self.services.len());
        let gone = self.services.swap_remove(index);
        watch.remove(&gone.service.group.path);
        self.count.killed += 1;
    }

    fn stop(&mut self, random: &mut impl Rng, guardian: bool) {
        // Both at once could keep no bound.
        if !self.stopped.is_empty() {
            return;
        }
        let process = if guardian { self.daemon.guardian() } else { Some(self.daemon.id()) };
        let Some(process) = process else { return };
        let until = Instant::now() + Duration::from_millis(random.random_range(STOPPED_MS));
        kill(process, Signal::STOP);
        self.stopped.push((process, until));
        if guardian {
            self.count.guardian_stopped += 1;
        } else {
            self.count.daemon_stopped += 1;
        }
    }

    fn go_on(&mut self) {
        let now = Instant::now();
        self.stopped.retain(|(process, until)| {
            if *until <= now {
                kill(*process, Signal::CONT);
            }
            *until > now
        });
    }

    /// Freezes a service, as another program, that the throttle has no reason to freeze.
    fn freeze_one(&mut self, watch: &Watch) {
        let sleeper = self
            .services
            .iter_mut()
            .find(|present| present.sleeps && present.foreign_since.is_none());
        let Some(present) = sleeper else { return };
        let path = &present.service.group.path;
        watch.remove(path);
        if !is_frozen(path) && fs::write(path.join("cgroup.freeze"), "1").is_ok() {
            present.foreign_since = Some(Instant::now());
            self.count.foreign += 1;
        }
    }

    fn end_foreign(&mut self, watch: &Watch) {
        for present in &mut self.services {
            let Some(since) = present.foreign_since else {
                continue;
            };
            let path = &present.service.group.path;
            let is_over = since.elapsed() >= FOREIGN_FREEZE_TIME;
            if !is_frozen(path) {
                self.count.thawed_foreign += 1;
            }
            if is_over || !is_frozen(path) {
                let _ = fs::write(path.join("cgroup.freeze"), "0");
                present.foreign_since = None;
                watch.add(path);
            }
        }
    }

    fn kill_daemon(&mut self) -> Result<(), EvaluateError> {
        if !self.stopped.is_empty() {
            return Ok(());
        }
        kill(self.daemon.id(), Signal::KILL);
        self.daemon = Daemon::start(self.harness, &self.config)?;
        self.count.daemon_killed += 1;
        Ok(())
    }

    fn kill_guardian(&mut self) {
        if let Some(guardian) = self.daemon.guardian().filter(|_| self.stopped.is_empty()) {
            kill(guardian, Signal::KILL);
            self.count.guardian_killed += 1;
        }
    }

    /// Removes services that have ended.
    fn reap(&mut self, watch: &Watch) -> Result<(), EvaluateError> {
        let mut index = 0;
        while index < self.services.len() {
            let child = &mut self.services[index].service.child;
            let ended = child.try_wait().map_err(EvaluateError::file("wait for", "sh"))?;
            let Some(status) = ended else {
                index += 1;
                continue;
            };
            if status.success() {
                self.count.ended += 1;
            } else {
                self.count.lost += 1;
            }
            let gone = self.services.swap_remove(index);
            watch.remove(&gone.service.group.path);
        }
        Ok(())
    }

    /// Waits for the remaining services. Those that do not end are lost.
    pub(super) fn finish(
        &mut self,
        watch: &Watch,
        patience: Duration,
    ) -> Result<(), EvaluateError> {
        let begun = Instant::now();
        while !self.services.is_empty() && begun.elapsed() < patience {
            stop_if_interrupted()?;
            self.go_on();
            self.end_foreign(watch);
            self.reap(watch)?;
            sleep(Duration::from_millis(20));
        }
        self.count.lost += self.services.len() as u64;
        Ok(())
    }

    /// Ends the daemon in order. Returns the counts, and the number of services that are still frozen.
    pub(super) fn close(self, watch: &Watch) -> (Count, usize) {
        // A process that is still stopped could not end.
        for (process, _) in &self.stopped {
            kill(*process, Signal::CONT);
        }
        self.daemon.end();
        (self.count, watch.frozen_now())
    }
}

fn script(mount: &Path, number: usize, work: &str) -> String {
    format!(
        "M='{}' N={number} FILES={FILES}; E=\"$M.said-$N\"; no_space() {{ grep -q 'No space' \"$E\"; }}; set -e; {work}; \
         rm -f \"$E\"",
        mount.display()
    )
}
