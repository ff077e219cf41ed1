//! A whole run: all processes, each in a network namespace of its own on one bridge, and one folder of truth.
//!
//! All that a run makes belongs to its processes: neither namespaces nor files for plants have names. Each process ends
//! with the run's process (`PR_SET_PDEATHSIG`), so nothing stays, even after SIGKILL. Only a cgroup has a name, and
//! `cgroup` starts a process that removes it.

mod cgroup;
mod host;

use std::ffi::OsString;
use std::net::SocketAddrV4;
use std::path::{Path, PathBuf};

use luc_network::Namespace;
use luc_twin_truth::Kind;
use rand::RngExt as _;

use crate::back_end::BackEndOptions;
use crate::client::{ClientOptions, Loop};
use crate::corpus::Corpus;
use crate::error::TwinError;
use crate::front_end::{FrontEndOptions, MAX_BACK_ENDS};
use crate::network;
use crate::plant::{self, larger};
use crate::process::ProcessOptions;
use crate::serve::{Answerer, Serve};
use crate::spec::Spec;
use cgroup::Cgroup;
use host::Host;

pub use cgroup::remove_at_end as remove_cgroup_at_end;

const PORT: u16 = 7_000;
/// Last parts of the hosts' addresses.
const CLIENT: u8 = 1;
const FRONT_END: u8 = 2;
const FIRST_BACK_END: u8 = 10;

#[derive(Debug, Clone, PartialEq)]
pub struct RunOptions {
    /// This program, which is every process of the run.
    pub program: PathBuf,
    /// Folder of truth. It is made, and must not have files of another run.
    pub truth: PathBuf,
    pub seed: u64,
    pub back_ends: usize,
    /// Number of documents in the corpus.
    pub documents: u32,
    pub vocabulary: u32,
    pub clients: u32,
    /// Number of queries of each client.
    pub requests: u32,
    /// Number of documents that a query asks for.
    pub hits: u8,
    pub looped: Loop,
    /// Way in which the threads of servers share requests.
    pub serve: Serve,
    /// Mean of an exponential delay before each search, us.
    pub delay_us: u64,
    /// Room for rows of each thread.
    pub rows: usize,
    /// Troubles to plant, at back ends that are drawn.
    pub plants: Vec<Spec>,
}

impl RunOptions {
    /// Makes a run. The calling thread is moved into a network namespace of its own: call it in the first thread of a
    /// process that does nothing else.
    ///
    /// `says` is called when all processes are there, before the first query.
    ///
    /// # Errors
    /// What cannot be done here, or a process that failed; the others are ended.
    pub fn run(&self, says: impl FnOnce()) -> Result<(), TwinError> {
        if !(1..=MAX_BACK_ENDS).contains(&self.back_ends) {
            return Err(TwinError::Option {
                what: format!("--back-ends {}", self.back_ends),
                why: format!("there are 1 to {MAX_BACK_ENDS}"),
            });
        }
        self.make_folder()?;
        network::enter_new()?;
        luc_network::make_bridge(Namespace::Own, None)?;
        let corpus = self.corpus()?;
        let mut cgroups = Vec::new();
        let mut back_ends = Vec::new();
        for partition in 0..self.back_ends {
            let cgroup = self.cgroup(partition)?;
            let options = self.back_end(partition, &corpus, cgroup.as_ref());
            let number = FIRST_BACK_END + partition as u8;
            let host = self.start(&options.process.host, options.arguments(), number)?;
            if let Some(cgroup) = &cgroup {
                cgroup.add(host.process())?;
            }
            cgroups.extend(cgroup);
            back_ends.push(host);
        }
        // They make their indexes at the same time.
        for host in &mut back_ends {
            host.go_on()?;
        }
        for host in &mut back_ends {
            host.wait_until_ready()?;
        }
        let options = self.front_end();
        let mut front_end = self.start(&options.process.host, options.arguments(), FRONT_END)?;
        front_end.go_on()?;
        front_end.wait_until_ready()?;
        let options = self.client(corpus);
        let mut client = self.start(&options.process.host, options.arguments(), CLIENT)?;
        says();
        client.go_on()?;
        client.wait()?;
        // In this order nobody closes a connection on which somebody waits.
        front_end.end()?;
        back_ends.into_iter().try_for_each(Host::end)?;
        cgroups.into_iter().try_for_each(Cgroup::end)
    }

    fn make_folder(&self) -> Result<(), TwinError> {
        let failed = || TwinError::file(&self.truth);
        std::fs::create_dir_all(&self.truth).map_err(failed())?;
        let mut entries = self.truth.read_dir().map_err(failed())?;
        if entries.next().is_some() {
            return Err(TwinError::Option {
                what: self.truth.display().to_string(),
                why: "the folder is not empty; give another one".into(),
            });
        }
        Ok(())
    }

    fn start(&self, name: &str, arguments: Vec<OsString>, number: u8) -> Result<Host, TwinError> {
        let host = Host::start(&self.program, name, arguments)?;
        let address = network::address(number);
        luc_network::link(Namespace::Own, host.process(), number, address)?;
        Ok(host)
    }

    fn corpus(&self) -> Result<Corpus, TwinError> {
        let mut weights = vec![1; self.back_ends];
        for spec in &self.plants {
            if spec.kind == Kind::Larger
                && let Some(weight) = weights.get_mut(self.place(spec.kind))
            {
                *weight = larger::weight(spec, self.seed)?;
            }
        }
        Ok(Corpus {
            seed: self.seed,
            documents: self.documents,
            vocabulary: self.vocabulary,
            weights,
        })
    }

    /// Draws the back end where a trouble is planted.
    fn place(&self, kind: Kind) -> usize {
        // Another seed than the plant's own, whose strength would follow from its place.
        plant::random(self.seed.rotate_left(32), kind).random_range(0..self.back_ends)
    }

    fn plants_of(&self, partition: usize) -> Vec<Spec> {
        let here = self.plants.iter();
        here.filter(|spec| spec.kind != Kind::Share && self.place(spec.kind) == partition)
            .cloned()
            .collect()
    }

    /// Way in which back ends serve: where one has a pool that is too small, the others have one that is large enough.
    fn serve_of_back_ends(&self) -> Serve {
        let is_pool = self.plants.iter().any(|spec| spec.kind == Kind::Pool);
        if is_pool && self.serve == Serve::Thread {
            return Serve::Pool { workers: self.clients.max(1), answerer: Answerer::Connection };
        }
        self.serve
    }

    fn cgroup(&self, partition: usize) -> Result<Option<Cgroup>, TwinError> {
        let plants = self.plants_of(partition);
        if plants.iter().any(|spec| spec.kind == Kind::Quota) {
            return Cgroup::make(&self.program).map(Some);
        }
        Ok(None)
    }

    fn back_end(
        &self,
        partition: usize,
        corpus: &Corpus,
        cgroup: Option<&Cgroup>,
    ) -> BackEndOptions {
        BackEndOptions {
            process: self.process(format!("back-end-{partition}")),
            corpus: corpus.clone(),
            partition,
            listen: address_of(partition),
            serve: self.serve_of_back_ends(),
            delay_us: self.delay_us,
            searches: u64::from(self.clients) * u64::from(self.requests),
            plants: self.plants_of(partition),
            cgroup: cgroup.map(|cgroup| cgroup.path().to_owned()),
        }
    }

    fn front_end(&self) -> FrontEndOptions {
        FrontEndOptions {
            process: self.process("front-end".into()),
            seed: self.seed,
            listen: SocketAddrV4::new(network::address(FRONT_END), PORT),
            serve: self.serve,
            back_ends: (0..self.back_ends).map(address_of).collect(),
        }
    }

    fn client(&self, corpus: Corpus) -> ClientOptions {
        let plants = self.plants.iter();
        ClientOptions {
            process: self.process("client".into()),
            corpus,
            front_end: SocketAddrV4::new(network::address(FRONT_END), PORT),
            clients: self.clients,
            requests: self.requests,
            hits: self.hits,
            looped: self.looped,
            one_connection: matches!(self.serve, Serve::Shared { .. }),
            plants: plants.filter(|spec| spec.kind == Kind::Share).cloned().collect(),
        }
    }

    fn process(&self, host: String) -> ProcessOptions {
        ProcessOptions {
            host,
            truth: absolute(&self.truth),
            rows: self.rows,
            parent: Some(std::process::id()),
            own_network: true,
        }
    }
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

fn address_of(partition: usize) -> SocketAddrV4 {
    SocketAddrV4::new(network::address(FIRST_BACK_END + partition as u8), PORT)
}
