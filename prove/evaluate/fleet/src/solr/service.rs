//! The search service: a front end and two shards, each a node on a host of its own. The clients are on another host.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use luc_harness::error::EvaluateError;
use luc_harness::harness::{Harness, missing, parse, stop_if_interrupted};

use super::clients::Asked;
use super::node::{Node, Setup, Solr, shard_at};
use super::tap::Tapped;
use crate::hosts::HostPart;
use crate::named::Named;
use crate::network::{Host, Network};
use crate::program::{ANSWER_TIMEOUT, POLL_INTERVAL};
use crate::running::Running;

/// Last parts of the nodes' addresses.
const FRONT_END: u8 = 2;
const SHARDS: [(u8, &str); 2] = [(10, "shard-0"), (11, "shard-1")];

/// Options of the service.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Wanted<'w> {
    /// Seed of the documents.
    pub(crate) seed: u64,
    /// A shard, and the directory of its files.
    pub(super) disk: Option<(usize, &'w Path)>,
    /// A shard, its processor, and the others' processor.
    pub(super) processor: Option<(usize, [usize; 2])>,
}

/// The service, which is ended when dropped.
#[derive(Debug)]
pub(crate) struct Service {
    pub(crate) front_end: Node,
    pub(crate) shards: Vec<Node>,
    /// Addresses of the shards in Solr's format.
    shard_list: String,
    network: Network,
}

/// Work of the clients.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    pub(crate) clients: u64,
    /// Number of queries of each client; `None`: as many as it can.
    pub(crate) queries: Option<u64>,
    pub(crate) longest: Duration,
    pub(crate) think: Duration,
    pub(crate) seed: u64,
}

impl Service {
    pub(super) const SHARDS: usize = SHARDS.len();

    /// Starts the service, and waits until it answers.
    ///
    /// # Errors
    /// A host or a node that cannot be made.
    pub(crate) fn start(
        harness: &Harness,
        solr: &Solr,
        wanted: Wanted<'_>,
    ) -> Result<Self, EvaluateError> {
        let network = Network::make(harness, "clients")?;
        let hosts = SHARDS.map(|(number, name)| network.link(harness, name, number));
        let hosts = hosts.into_iter().collect::<Result<Vec<Host>, _>>()?;
        let list: Vec<String> = hosts.iter().map(shard_at).collect();
        let shard_list = list.join(",");
        let start = |host: Host, home: &Path, shard: Option<usize>| {
            let setup = Setup {
                home,
                is_shard: shard.is_some(),
                shards: &shard_list,
                seed: wanted.seed * 100 + shard.unwrap_or_default() as u64,
                processor: wanted
                    .processor
                    .map(|(of, [own, others])| if Some(of) == shard { own } else { others }),
            };
            solr.start(harness, host, setup)
        };
        let mut shards = Vec::new();
        for (place, host) in hosts.into_iter().enumerate() {
            let on_disk = wanted.disk.filter(|(of, _)| *of == place);
            let home = on_disk.map_or_else(
                || harness.path(&format!("{}.home", host.name)),
                |(_, folder)| folder.join("home"),
            );
            shards.push(start(host, &home, Some(place))?);
        }
        let host = network.link(harness, "front-end", FRONT_END)?;
        let home = harness.path("front-end.home");
        let front_end = start(host, &home, None)?;
        for node in shards.iter().chain([&front_end]) {
            node.wait()?;
        }
        Ok(Self { front_end, shards, shard_list, network })
    }

    pub(crate) fn processes(&self) -> Vec<u32> {
        let nodes = self.shards.iter().chain([&self.front_end]);
        nodes.map(|node| node.server.process()).collect()
    }

    pub(super) fn commands(&self) -> Vec<String> {
        let nodes = self.shards.iter().chain([&self.front_end]);
        nodes.map(|node| node.server.command.clone()).collect()
    }

    /// Returns the parts of a trace by host: the clients', the front end's and the shards'. `new` is one more process
    /// on a shard's host.
    pub(super) fn parts(&self, asked: &Asked, new: Option<(usize, u32)>) -> Vec<HostPart> {
        let part = |host: &Host, processes| HostPart {
            name: host.name.clone(),
            namespace: host.namespace,
            processes,
        };
        let of_node = |node: &Node| part(&node.host, vec![node.server.process()]);
        let mut parts =
            vec![part(&self.network.first, vec![asked.process]), of_node(&self.front_end)];
        parts.extend(self.shards.iter().enumerate().map(|(place, node)| {
            let mut part = of_node(node);
            let here = new.filter(|(of, _)| *of == place);
            part.processes.extend(here.map(|(_, process)| process));
            part
        }));
        parts
    }

    pub(super) fn tap(&self, harness: &Harness) -> Result<Tap, EvaluateError> {
        let to = harness.path("tapped.json");
        let mut command = self.network.first.command();
        command.arg(&harness.options.myself).arg("tap").arg(&to);
        let running = Running::start(command, &harness.path("tap.log"))?;
        let began = Instant::now();
        while !Tapped::has_begun(&to)? {
            stop_if_interrupted()?;
            if began.elapsed() > ANSWER_TIMEOUT {
                return Err(missing("the tap's file"));
            }
            thread::sleep(POLL_INTERVAL);
        }
        Ok(Tap { running, to })
    }

    /// Returns the command line of clients.
    pub(crate) fn clients(&self, harness: &Harness, load: Load) -> std::process::Command {
        let mut command = self.network.first.command();
        command.arg(&harness.options.myself).arg("search-clients");
        command.arg(self.front_end.address().to_string());
        command.arg(&self.shard_list);
        command.args(["--clients", &load.clients.to_string()]);
        if let Some(queries) = load.queries {
            command.args(["--queries", &queries.to_string()]);
        }
        command.args(["--seconds", &load.longest.as_secs_f64().to_string()]);
        command.args(["--think-ms", &load.think.as_millis().to_string()]);
        command.args(["--seed", &load.seed.to_string()]);
        command
    }

    pub(crate) fn ask(&self, harness: &Harness, load: Load) -> Result<Asked, EvaluateError> {
        let said = harness.execute(&mut self.clients(harness, load), &[0])?.stdout;
        parse(&said, "what the clients did")
    }

    /// Separates queries from the calls that were made for them.
    pub(super) fn apart(&self, named: Vec<Named>) -> (Vec<Named>, Vec<Named>) {
        let front_end = self.front_end.address();
        named.into_iter().partition(|one| one.to == front_end)
    }
}

#[derive(Debug)]
pub(super) struct Tap {
    running: Running,
    to: PathBuf,
}

impl Tap {
    /// Ends the tap, and returns the names that it has seen.
    pub(super) fn end(self) -> Result<Vec<Named>, EvaluateError> {
        self.running.end()?;
        Tapped::take(&self.to)
    }
}
