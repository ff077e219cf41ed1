//! Part `fleet-cost`: the throughput that servers and their clients lose while `luc record --fleet` records their
//! messages.

pub mod loaded;
mod recorded;
pub(crate) mod servers;

use luc_harness::drift::around;
use luc_harness::error::EvaluateError;
use luc_harness::harness::{Harness, line, missing, parse};
use luc_harness::progress::Progress;
use luc_harness::report::number;
use luc_harness::runs::Runs;
use luc_harness::steal::with_stolen_share;
use luc_harness::{Extent, steal};
use luc_stats::random;
use rand::seq::SliceRandom as _;
use serde::Serialize;
use serde_json::json;

use loaded::Loaded;

use crate::program;
use crate::recorder::Recorder;
use crate::solr::clients::Asked;
use recorded::Rows;
use servers::{LIST, SEARCH_CLIENTS, Server, Servers};

/// Time between the recorder's first file and the first request, s. In it the BPF programs are attached and begin to
/// see system calls.
const WARMUP_S: f64 = 2.0;
/// Duration of the run that calibrates the length of the others, s.
const CALIBRATION_S: f64 = 1.0;
/// Requests of that run for a server whose rate is not known.
const FIRST_REQUESTS: f64 = 20_000.0;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ServerCell {
    /// Redis with this number of clients.
    Redis(u32),
    /// Redis with reads of lists of [`LIST`] values: some 100,000 messages a second.
    RedisLists,
    /// PostgreSQL with transactions of one statement.
    Select,
    /// PostgreSQL with transactions of seven statements.
    Update,
    /// Solr with a front end and two shards, each on a host of its own.
    Search,
}

impl ServerCell {
    const ALL: [Self; 6] = [
        Self::Redis(50),
        Self::Redis(1),
        Self::RedisLists,
        Self::Select,
        Self::Update,
        Self::Search,
    ];

    fn name(self) -> String {
        match self {
            Self::Redis(1) => "Redis, 1 client".to_owned(),
            Self::Redis(clients) => format!("Redis, {clients} clients"),
            Self::RedisLists => format!("Redis, 50 clients, lists of {LIST}"),
            Self::Select => "PostgreSQL, pgbench -S, 8 clients".to_owned(),
            Self::Update => "PostgreSQL, pgbench, 8 clients".to_owned(),
            Self::Search => format!("Solr, {SEARCH_CLIENTS} clients"),
        }
    }

    fn server(self) -> Server {
        match self {
            Self::Redis(_) | Self::RedisLists => Server::Redis,
            Self::Select | Self::Update => Server::Postgresql,
            Self::Search => Server::Solr,
        }
    }

    /// Returns the words of the client, for this many requests or for this time.
    fn words(
        self,
        harness: &Harness,
        servers: &Servers,
        requests: f64,
        seconds: f64,
    ) -> Vec<String> {
        let port = servers.port(self.server());
        match self {
            Self::Redis(clients) => format!(
                "redis-benchmark -h 127.0.0.1 -p {port} -t set -d 100 --csv -c {clients} -n {requests:.0}"
            ),
            Self::RedisLists => format!(
                "redis-benchmark -h 127.0.0.1 -p {port} --csv -c 50 -n {requests:.0} lrange list 0 -1"
            ),
            Self::Select | Self::Update => format!(
                "{} -h 127.0.0.1 -p {port} -U {} -n -c 8 -T {seconds:.0} {}postgres",
                servers.of_postgresql("pgbench"),
                program::USER,
                if self == Self::Select { "-S " } else { "" }
            ),
            Self::Search => return servers.searching(harness, seconds),
        }
        .split(' ')
        .map(str::to_owned)
        .collect()
    }

    /// Parses the requests and requests per second in the client's output.
    fn result(self, said: &str, requests: f64) -> Option<(f64, f64)> {
        let after = |name: &str| {
            let line = said.lines().find_map(|line| line.strip_prefix(name));
            line?.split([' ', '/']).next()?.parse::<f64>().ok()
        };
        match self {
            Self::Redis(_) | Self::RedisLists => {
                let last = said.lines().rfind(|line| !line.is_empty())?;
                let rate = last.split(',').nth(1)?.trim_matches('"').parse().ok()?;
                Some((requests, rate))
            }
            Self::Select | Self::Update => {
                let requests = after("number of transactions actually processed: ")?;
                // Without a transaction pgbench prints no rate.
                let rate = if requests > 0.0 { after("tps = ")? } else { 0.0 };
                Some((requests, rate))
            }
            Self::Search => {
                let asked: Asked = serde_json::from_str(said).ok()?;
                let requests = asked.queries as f64;
                Some((requests, requests / asked.seconds.max(1e-9)))
            }
        }
    }
}

/// A way of recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum RecordingMode {
    Unrecorded,
    /// Records all processes, without the network.
    Record,
    /// Records all processes: the server and its clients.
    Fleet,
    /// Records all processes, with the names that requests carry.
    Tokens,
    /// Records the server only, as on a host whose clients are elsewhere.
    FleetOfServer,
    /// Records sums only, of all processes.
    Sums,
}

impl RecordingMode {
    const RECORDERS: [Self; 5] =
        [Self::Record, Self::Fleet, Self::Tokens, Self::FleetOfServer, Self::Sums];

    /// Returns the words of `luc`; `None` without a recorder.
    fn words(self, trace: &str, servers: &[u32]) -> Option<Vec<String>> {
        let options = match self {
            Self::Unrecorded => return None,
            Self::Record => String::new(),
            Self::Fleet => " --fleet".to_owned(),
            Self::Tokens => " --fleet --tokens".to_owned(),
            Self::Sums => " --fleet --summary".to_owned(),
            Self::FleetOfServer => {
                let of = servers.iter().map(|process| format!(" --pid {process}"));
                " --fleet".to_owned() + &of.collect::<String>()
            }
        };
        let words = format!("record{options} --quiet --out {trace}");
        Some(words.split(' ').map(str::to_owned).collect())
    }
}

#[derive(Debug, Clone, Serialize)]
struct CostRun {
    setting: RecordingMode,
    /// Command line of the recorder.
    recorder: Option<String>,
    command: String,
    requests: f64,
    requests_per_s: f64,
    loaded: Loaded,
    /// Counts of the trace's rows, if there is a trace.
    rows: Option<Rows>,
    stolen_share: f64,
    disturbed: bool,
}

/// Cell and recorder of a run, and the client's work.
struct CostTrial {
    cell: ServerCell,
    setting: RecordingMode,
    requests: f64,
    seconds: f64,
}

/// Makes part `fleet-cost`.
///
/// # Errors
/// A server, a client or the recorder that cannot be run, and interruption.
pub fn run(harness: &Harness) -> Result<(), EvaluateError> {
    let Extent { repeats, seconds } = harness.options.extent(10, 3.0);
    let cells: Vec<ServerCell> =
        ServerCell::ALL.into_iter().filter(|cell| harness.options.wants(&cell.name())).collect();
    harness.keep_processors_awake()?;
    harness.let_others_pass()?;
    let servers = Servers::start(harness, cells.iter().map(|cell| cell.server()))?;
    let mut work = Vec::new();
    for &cell in &cells {
        work.push((cell, calibrate(harness, &servers, cell, seconds)?));
    }
    harness.keep(json!({ "servers": servers.versions }));
    let earlier = Runs::open(harness);
    let mut progress = Progress::new(harness.part, cells.len() * repeats);
    for repeat in 0..repeats {
        let mut random = random::stream(harness.options.seed, repeat as u64);
        let mut order = work.clone();
        order.shuffle(&mut random);
        for (cell, requests) in order {
            let mut recorders = RecordingMode::RECORDERS;
            recorders.shuffle(&mut random);
            let key = json!({ "cell": cell.name(), "round": repeat, "seconds": seconds });
            let result = earlier.get(&key, || {
                let mut runs = Vec::new();
                for setting in around(RecordingMode::Unrecorded, &recorders) {
                    steal::undisturbed(harness, |may_repeat| {
                        let trial = CostTrial { cell, setting, requests, seconds };
                        let run = measure(harness, &servers, trial, may_repeat)?;
                        let stolen_share = run.stolen_share;
                        runs.push(run);
                        Ok(((), stolen_share))
                    })?;
                }
                Ok(json!(runs))
            })?;
            let rate = result[0]["requests_per_s"].as_f64().unwrap_or(0.0);
            progress.step(&format!("{}: {}/s", cell.name(), number(rate)));
        }
    }
    Ok(())
}

/// Returns the number of requests that take `seconds` unrecorded.
fn calibrate(
    harness: &Harness,
    servers: &Servers,
    cell: ServerCell,
    seconds: f64,
) -> Result<f64, EvaluateError> {
    let mut requests = FIRST_REQUESTS;
    // The second run is long enough to tell.
    for wanted_s in [CALIBRATION_S, seconds] {
        let words = cell.words(harness, servers, requests, CALIBRATION_S);
        let mut command = std::process::Command::new(&words[0]);
        command.args(&words[1..]);
        let said = harness.execute(&mut command, &[0])?.stdout;
        let (_, rate) =
            cell.result(&said, requests).ok_or_else(|| missing("the rate of requests"))?;
        requests = (rate * wanted_s).max(1.0).round();
    }
    Ok(requests)
}

fn measure(
    harness: &Harness,
    servers: &Servers,
    CostTrial { cell, setting, requests, seconds }: CostTrial,
    may_repeat: bool,
) -> Result<CostRun, EvaluateError> {
    let trace = harness.path("trace");
    let processes = servers.processes(cell.server());
    let recorder = setting
        .words(&trace.display().to_string(), &processes)
        .map(|words| Recorder::start(harness, &words, &trace))
        .transpose()?;
    let mut command = std::process::Command::new(&harness.options.myself);
    command.args(["loaded", "--warmup", &WARMUP_S.to_string()]);
    for process in &processes {
        command.args(["--server", &process.to_string()]);
    }
    if let Some(recorder) = &recorder {
        command.args(["--recorder", &recorder.process().to_string()]);
    }
    command.arg("--");
    command.args(cell.words(harness, servers, requests, seconds));
    let (finished, stolen_share) = with_stolen_share(|| harness.execute(&mut command, &[0]))?;
    let recorded_by = recorder.map(Recorder::stop).transpose()?;
    let loaded: Loaded = parse(&finished.stdout, "what the client did")?;
    let (requests, requests_per_s) =
        cell.result(&loaded.said, requests).ok_or_else(|| missing("the rate of requests"))?;
    let rows = recorded_by.is_some().then(|| recorded::take_rows(&trace)).transpose()?;
    Ok(CostRun {
        setting,
        recorder: recorded_by,
        command: line(&command),
        requests,
        requests_per_s,
        loaded,
        rows,
        stolen_share,
        disturbed: steal::is_disturbed(may_repeat, stolen_share),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_clients_say() {
        let said = "\"test\",\"rps\",\"avg_latency_ms\"\n\"SET\",\"98765.43\",\"0.25\"\n";
        assert_eq!(ServerCell::Redis(50).result(said, 300.0), Some((300.0, 98_765.43)));
        let said = "\"test\",\"rps\"\n\"lrange list 0 -1\",\"70175.44\"\n";
        assert_eq!(ServerCell::RedisLists.result(said, 9.0), Some((9.0, 70_175.44)));
        let said = "pgbench (15)\nnumber of transactions actually processed: 6103\n\
                    latency average = 3.9 ms\ntps = 2034.5 (without initial connection time)\n";
        assert_eq!(ServerCell::Update.result(said, 1.0), Some((6103.0, 2034.5)));
        let of_each = "number of transactions actually processed: 80/80\ntps = 9\n";
        assert_eq!(ServerCell::Select.result(of_each, 1.0), Some((80.0, 9.0)));
        let of_none = "number of transactions actually processed: 0\n";
        assert_eq!(ServerCell::Select.result(of_none, 1.0), Some((0.0, 0.0)));
        assert_eq!(ServerCell::Select.result("FATAL", 1.0), None);
        assert_eq!(ServerCell::Redis(1).result("", 1.0), None);
        let said = r#"{"process": 7, "queries": 90, "seconds": 3.0}"#;
        assert_eq!(ServerCell::Search.result(said, 1.0), Some((90.0, 30.0)));
        assert_eq!(ServerCell::Search.result("luc-evaluate: ", 1.0), None);
    }

    #[test]
    fn the_recorder_s_words() {
        assert_eq!(RecordingMode::Unrecorded.words("t", &[7]), None);
        let words = |servers| RecordingMode::FleetOfServer.words("t", servers);
        let words = |servers| words(servers).expect("a recorder").join(" ");
        assert_eq!(words(&[7]), "record --fleet --pid 7 --quiet --out t");
        assert_eq!(words(&[7, 8]), "record --fleet --pid 7 --pid 8 --quiet --out t");
    }
}
