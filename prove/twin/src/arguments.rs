//! The command line, and its translation into the library's options.

use std::net::SocketAddrV4;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use luc_twin::{
    BackEndOptions, ClientOptions, Corpus, DEFAULT_ROWS, FrontEndOptions, Loop, NeighbourOptions,
    ProcessOptions, RunOptions, Serve, Spec, TwinError,
};

/// A small scale-out search service with planted troubles, which writes down the truth about itself.
#[derive(Debug, Parser)]
#[command(name = "luc-twin", version)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve one partition until a line comes on the standard input, or its end
    BackEnd(BackEnd),
    /// Scatter, gather and merge until a line comes on the standard input, or its end
    FrontEnd(FrontEndOptions),
    /// Ask all queries of all clients
    Client(Client),
    /// Start all of it in network namespaces, and leave a folder of truth (root)
    Run(Run),
    /// Remove a cgroup when the standard input has ended
    #[command(hide = true)]
    RemoveCgroup {
        /// Path of the cgroup to remove
        path: PathBuf,
    },
    /// Be in the way of a back end until the standard input ends
    #[command(hide = true)]
    Neighbour(Neighbour),
}

#[derive(Debug, Args)]
pub(crate) struct Neighbour {
    /// The process that this one ends with
    pub(crate) parent: u32,
    #[command(subcommand)]
    way: Way,
}

#[derive(Debug, Subcommand)]
enum Way {
    /// Stop a process by a signal, and let it go on
    Stop {
        /// Id of the process
        process: u32,
        /// Time of each stop, ms
        stopped_ms: u64,
        /// Time between two stops, ms
        between_ms: u64,
    },
    /// Write to a file, and have the kernel write that to the disk
    Write {
        /// Directory of the file, which has no name
        directory: PathBuf,
        /// Bytes that are written at a time
        bytes: u64,
    },
}

impl Neighbour {
    pub(crate) fn options(self) -> NeighbourOptions {
        match self.way {
            Way::Stop { process, stopped_ms, between_ms } => NeighbourOptions::Stop {
                process,
                stopped: Duration::from_millis(stopped_ms),
                between: Duration::from_millis(between_ms),
            },
            Way::Write { directory, bytes } => NeighbourOptions::Write { directory, bytes },
        }
    }
}

const DOCUMENTS: u32 = 20_000;
const VOCABULARY: u32 = 20_000;
const CLIENTS: u32 = 4;
const REQUESTS: u32 = 200;
const HITS: u8 = 10;
const THINK_US: u64 = 1_000;

#[derive(Debug, Args)]
pub(crate) struct BackEnd {
    #[command(flatten)]
    process: ProcessOptions,
    /// All random numbers follow from it
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Documents of the whole corpus
    #[arg(long, default_value_t = DOCUMENTS)]
    documents: u32,
    /// Different words
    #[arg(long, default_value_t = VOCABULARY)]
    vocabulary: u32,
    /// Sizes of the partitions relative to each other
    #[arg(long, value_delimiter = ',', value_name = "N,...", required = true)]
    weights: Vec<u32>,
    /// Number of this partition, from 0
    #[arg(long)]
    partition: usize,
    /// Address to listen at
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: SocketAddrV4,
    /// Threads that serve: thread, pool:W, pool:W:worker or shared:W
    ///
    /// thread: one for each connection. pool:W: W workers, and the connection's thread answers. pool:W:worker: the
    /// worker answers. shared:W: the worker answers, with one connection to each back end.
    #[arg(long, default_value_t = Serve::Thread)]
    serve: Serve,
    /// The mean of an exponential delay before each search, us
    #[arg(long, default_value_t = 0)]
    delay_us: u64,
    /// Expected number of searches, by which troubles begin and end
    #[arg(long, default_value_t = u64::from(CLIENTS * REQUESTS))]
    searches: u64,
    /// A trouble: cpu[:MS], disk:DIR, journal:DIR, lock[:MS], pool[:W], larger, tick[:MS], quota[:%], loss[:%], stop[:MS],
    /// rate[:KBIT/S], writer:DIR
    #[arg(long = "plant", value_name = "KIND[:HOW]")]
    plants: Vec<Spec>,
    /// The cgroup that this process is in, for a quota
    #[arg(long, value_name = "DIR")]
    cgroup: Option<PathBuf>,
}

impl BackEnd {
    pub(crate) fn options(self) -> BackEndOptions {
        BackEndOptions {
            process: self.process,
            corpus: Corpus {
                seed: self.seed,
                documents: self.documents,
                vocabulary: self.vocabulary,
                weights: self.weights,
            },
            partition: self.partition,
            listen: self.listen,
            serve: self.serve,
            delay_us: self.delay_us,
            searches: self.searches,
            plants: self.plants,
            cgroup: self.cgroup,
        }
    }
}

/// Number and times of the clients' queries.
#[derive(Debug, Args)]
struct Queries {
    /// Number of clients
    #[arg(long, default_value_t = CLIENTS)]
    clients: u32,
    /// Queries of each
    #[arg(long, default_value_t = REQUESTS)]
    requests: u32,
    /// Documents that a query asks for
    #[arg(long, default_value_t = HITS)]
    hits: u8,
    /// The mean of an exponential time between an answer and the next query, us
    #[arg(long, default_value_t = THINK_US, conflicts_with = "per_s")]
    think_us: u64,
    /// Queries per second of all clients, at times that do not depend on answers
    #[arg(long, value_name = "RATE")]
    per_s: Option<f64>,
}

impl Queries {
    fn looped(&self) -> Loop {
        match self.per_s {
            Some(per_s) => Loop::Open { per_s },
            None => Loop::Closed { think_us: self.think_us },
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Client {
    #[command(flatten)]
    process: ProcessOptions,
    /// All random numbers follow from it
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Different words
    #[arg(long, default_value_t = VOCABULARY)]
    vocabulary: u32,
    /// Address of the front end
    #[arg(long, value_name = "ADDRESS:PORT")]
    front_end: SocketAddrV4,
    #[command(flatten)]
    queries: Queries,
    /// Have all use one connection
    #[arg(long)]
    one_connection: bool,
    /// A trouble: share
    #[arg(long = "plant", value_name = "KIND")]
    plants: Vec<Spec>,
}

impl Client {
    pub(crate) fn options(self) -> ClientOptions {
        ClientOptions {
            process: self.process,
            corpus: Corpus {
                seed: self.seed,
                documents: 0,
                vocabulary: self.vocabulary,
                weights: Vec::new(),
            },
            front_end: self.front_end,
            clients: self.queries.clients,
            requests: self.queries.requests,
            hits: self.queries.hits,
            looped: self.queries.looped(),
            one_connection: self.one_connection,
            plants: self.plants,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// The folder of truth: new, or empty
    truth: PathBuf,
    /// All random numbers follow from it
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Partitions
    #[arg(long, default_value_t = 2)]
    back_ends: usize,
    /// Documents of the whole corpus
    #[arg(long, default_value_t = DOCUMENTS)]
    documents: u32,
    /// Different words
    #[arg(long, default_value_t = VOCABULARY)]
    vocabulary: u32,
    #[command(flatten)]
    queries: Queries,
    /// Threads that serve: thread, pool:W, pool:W:worker or shared:W
    ///
    /// thread: one for each connection. pool:W: W workers, and the connection's thread answers. pool:W:worker: the
    /// worker answers. shared:W: the worker answers, with one connection to each back end.
    #[arg(long, default_value_t = Serve::Thread)]
    serve: Serve,
    /// The mean of an exponential delay before each search, us
    #[arg(long, default_value_t = 0)]
    delay_us: u64,
    /// Rows of truth that each thread has room for
    #[arg(long, default_value_t = DEFAULT_ROWS)]
    rows: usize,
    /// Wait for a line on the standard input before the first query, when all processes are there
    #[arg(long)]
    wait: bool,
    /// A trouble, at a back end that is drawn: cpu[:MS], disk:DIR, journal:DIR, lock[:MS], pool[:W], larger[:TIMES],
    /// tick[:MS], quota[:%], loss[:%], stop[:MS], rate[:KBIT/S], writer:DIR, or among clients: share
    #[arg(long = "plant", value_name = "KIND[:HOW]")]
    plants: Vec<Spec>,
}

impl Run {
    /// Whether the run waits for a line before the first query.
    pub(crate) fn waits(&self) -> bool {
        self.wait
    }

    pub(crate) fn options(self) -> Result<RunOptions, TwinError> {
        let program = std::env::current_exe()
            .map_err(|source| TwinError::System { what: "finding this program".into(), source })?;
        Ok(RunOptions {
            program,
            truth: self.truth,
            seed: self.seed,
            back_ends: self.back_ends,
            documents: self.documents,
            vocabulary: self.vocabulary,
            clients: self.queries.clients,
            requests: self.queries.requests,
            hits: self.queries.hits,
            looped: self.queries.looped(),
            serve: self.serve,
            delay_us: self.delay_us,
            rows: self.rows,
            plants: self.plants,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;

    fn parse(arguments: Vec<OsString>) -> Command {
        let all = ["luc-twin".into()].into_iter().chain(arguments);
        Arguments::try_parse_from(all).expect("parsed").command
    }

    fn process(parent: Option<u32>) -> ProcessOptions {
        ProcessOptions {
            host: "a host".into(),
            truth: "/a folder".into(),
            rows: 17,
            parent,
            own_network: parent.is_some(),
        }
    }

    fn corpus() -> Corpus {
        Corpus { seed: u64::MAX, documents: 12, vocabulary: 13, weights: vec![1, 7] }
    }

    fn at(address: &str) -> SocketAddrV4 {
        address.parse().expect("an address")
    }

    #[test]
    fn what_the_library_asks_for_is_understood() {
        let back_end = BackEndOptions {
            process: process(Some(3)),
            corpus: corpus(),
            partition: 1,
            listen: at("1.2.3.4:5"),
            serve: "pool:3:worker".parse().expect("valid"),
            delay_us: 6,
            searches: 99,
            plants: ["cpu:4", "disk:/var/a b"].map(|spec| spec.parse().expect("valid")).into(),
            cgroup: Some("/sys/fs/cgroup/x".into()),
        };
        match parse(back_end.arguments()) {
            Command::BackEnd(parsed) => assert_eq!(parsed.options(), back_end),
            other => panic!("{other:?}"),
        }
        let front_end = FrontEndOptions {
            process: process(None),
            seed: 5,
            listen: at("1.2.3.4:5"),
            serve: Serve::Shared { workers: 2 },
            back_ends: vec![at("1.2.3.4:6"), at("1.2.3.4:7")],
        };
        match parse(front_end.arguments()) {
            Command::FrontEnd(parsed) => assert_eq!(parsed, front_end),
            other => panic!("{other:?}"),
        }
        for looped in [Loop::Closed { think_us: 7 }, Loop::Open { per_s: 12.5 }] {
            let client = ClientOptions {
                process: process(Some(4)),
                corpus: Corpus { documents: 0, weights: Vec::new(), ..corpus() },
                front_end: at("1.2.3.4:5"),
                clients: 3,
                requests: 4,
                hits: 5,
                looped,
                one_connection: true,
                plants: vec!["share".parse().expect("valid")],
            };
            match parse(client.arguments()) {
                Command::Client(parsed) => assert_eq!(parsed.options(), client),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn the_help_is_sound() {
        use clap::CommandFactory as _;
        Arguments::command().debug_assert();
    }
}
