//! Tests the program with a directory and with a server that speaks S3.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use luc_events::ring::SegmentName;
use luc_events::store::TraceWriter;
use luc_events::tables::{ClockSample, TraceDescription};
use luc_fleet_rings::{StreamLimits, receive};
use rustix::process::{Pid, Signal, kill_process};
use s3s::auth::SimpleAuth;
use s3s::service::S3ServiceBuilder;
use s3s_fs::FileSystem;
use tempfile::TempDir;

const SECOND_NS: u64 = 1_000_000_000;
/// Begin of the ring: 2023-11-14T22:13:20Z.
const BEGIN_S: u64 = 1_700_000_000;
const KEY: &str = "luc";
const SECRET: &str = "not secret";
const TIMEOUT: Duration = Duration::from_secs(60);

/// Ring of host `web.example`, and a directory for temporary files that must be empty at the end.
struct Ring {
    folder: TempDir,
}

impl Ring {
    fn new(segments: u32) -> Self {
        let folder = tempfile::tempdir().expect("a directory");
        for name in ["ring", "tmp", "store"] {
            fs::create_dir(folder.path().join(name)).expect("made");
        }
        let ring = Self { folder };
        for number in 1..=segments {
            ring.add(number);
        }
        ring
    }

    /// Adds the segment of this number, of 10 s.
    fn add(&self, number: u32) {
        let start_ns = u64::from(number - 1) * 10 * SECOND_NS;
        let trace = TraceDescription {
            host: "web.example".to_owned(),
            start_ns,
            end_ns: start_ns + 10 * SECOND_NS,
            realtime_offset_ns: BEGIN_S * SECOND_NS,
            ..TraceDescription::default()
        };
        // A segment appears whole, as a recorder's does.
        let (new, path) = (self.path("new"), self.segment(number));
        let mut writer = TraceWriter::create(&new, trace.clone()).expect("created");
        for row in 0..1_000 {
            let at_ns = start_ns + row;
            let row = ClockSample { at_ns, ..ClockSample::default() };
            writer.add(row).expect("written");
        }
        writer.finish(trace).expect("written");
        fs::rename(new, path).expect("renamed");
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn segment(&self, number: u32) -> PathBuf {
        let name = SegmentName { run: 1, number };
        self.path("ring").join(name.to_string())
    }

    fn command(&self, words: &[&str], place: &TestStore) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_luc-fleet-store"));
        command
            .args(words)
            .current_dir(self.folder.path())
            .env("TMPDIR", self.path("tmp"))
            .env("AWS_ACCESS_KEY_ID", KEY)
            .env("AWS_SECRET_ACCESS_KEY", SECRET)
            .env("AWS_REGION", "us-east-1")
            .env("AWS_ALLOW_HTTP", "true");
        if let Some(address) = place.address {
            command.env("AWS_ENDPOINT_URL", format!("http://{address}"));
        }
        command
    }

    fn run(&self, words: &[&str], place: &TestStore) -> Output {
        self.command(words, place).output().expect("it runs")
    }

    /// Runs a command that must succeed, and returns its standard error.
    fn said(&self, words: &[&str], place: &TestStore) -> String {
        let output = self.run(words, place);
        let said = String::from_utf8(output.stderr).expect("text");
        assert!(output.status.success(), "{words:?}: {said}");
        said
    }

    /// Runs a command that must be refused, and returns the line.
    fn refusal(&self, words: &[&str], place: &TestStore) -> String {
        let output = self.run(words, place);
        let line = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(2), "{words:?}: {line}");
        assert_eq!(line.lines().count(), 1, "{words:?}: {line}");
        assert!(line.starts_with("luc-fleet-store: "), "{line}");
        line
    }

    /// Gets segments from the store, checks that they equal the ring's, and returns their numbers.
    fn come_back(&self, words: &[&str], place: &TestStore) -> Vec<u32> {
        let output = self.run(words, place);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.is_empty(), "{said}");
        let into = tempfile::tempdir().expect("a directory");
        receive(&output.stdout[..], into.path(), StreamLimits::default()).expect("received");
        let mut numbers = Vec::new();
        for name in names(into.path()) {
            let number = name.parse::<SegmentName>().expect("a segment").number;
            let (ours, theirs) = (self.segment(number), into.path().join(&name));
            assert_eq!(names(&ours), names(&theirs));
            for file in names(&ours) {
                let [ours, theirs] = [ours.join(&file), theirs.join(&file)].map(fs::read);
                assert_eq!(ours.expect("read"), theirs.expect("read"), "{name}/{file}");
            }
            numbers.push(number);
        }
        numbers
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        if !thread::panicking() {
            assert_eq!(names(&self.path("tmp")), [""; 0]);
        }
    }
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("listed");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("text"))
        .collect();
    names.sort();
    names
}

struct TestStore {
    /// Address of the server, if any.
    address: Option<SocketAddr>,
    url: String,
    /// Directory with the store's objects.
    files: PathBuf,
}

impl TestStore {
    fn directory(ring: &Ring) -> Self {
        let files = ring.path("store");
        Self { address: None, url: format!("file://{}", files.display()), files }
    }

    /// Starts a server with a bucket, which ends with the test's process.
    fn server(ring: &Ring) -> Self {
        let root = ring.path("store");
        let files = root.join("traces");
        fs::create_dir(&files).expect("made");
        let mut service = S3ServiceBuilder::new(FileSystem::new(&root).expect("a store"));
        service.set_auth(SimpleAuth::from_single(KEY, SECRET));
        let service = service.build();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.set_nonblocking(true).expect("set");
        let address = listener.local_addr().expect("an address");
        thread::spawn(move || {
            let runtime = tokio::runtime::Runtime::new().expect("a runtime");
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
                loop {
                    let (socket, _) = listener.accept().await.expect("a client");
                    let service = service.clone();
                    tokio::spawn(async move {
                        // A client that is gone is no error.
                        let _ = Builder::new(TokioExecutor::new())
                            .serve_connection(TokioIo::new(socket), service)
                            .await;
                    });
                }
            });
        });
        Self { address: Some(address), url: "s3://traces".to_owned(), files }
    }
}

/// Pushes segments and gets them back, each once.
fn there_and_back(ring: &Ring, place: &TestStore) {
    let url = &format!("{}/rings", place.url);
    let said = ring.said(&["push", "ring", url], place);
    assert!(said.contains("/rings/web.example: 3 segments, "), "{said}");
    assert!(said.contains("; 0 were there"), "{said}");
    ring.add(4);
    let said = ring.said(&["push", "ring", url], place);
    assert!(said.contains(": 1 segments, ") && said.contains("; 3 were there"), "{said}");
    let objects = names(&place.files.join("rings/web.example"));
    let expected: Vec<String> = (0..4)
        .map(|number: u64| {
            let [begin, end] = [number, number + 1].map(|tens| (BEGIN_S + tens * 10) * 1_000);
            format!("segment-0001-{:06}.{begin}-{end}.tar", number + 1)
        })
        .collect();
    assert_eq!(objects, expected);

    let output = ring.run(&["stored", url, "--json"], place);
    let hosts: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(hosts[0]["host"], "web.example");
    assert_eq!(hosts[0]["segments"], 4);
    assert_eq!(hosts.as_array().map(Vec::len), Some(1));
    let output = ring.run(&["stored", url], place);
    let text = String::from_utf8(output.stdout).expect("text");
    let times = "web.example: 2023-11-14T22:13:20Z to 2023-11-14T22:14:00Z, 4 segments, ";
    assert!(text.starts_with(times), "{text}");

    let host = &format!("{url}/web.example");
    assert_eq!(ring.come_back(&["window", host], place), [1, 2, 3, 4]);
    let around = ["window", host, "--around", "2023-11-14T22:13:41Z", "--span", "4s"];
    assert_eq!(ring.come_back(&around, place), [2, 3]);
    let until = ["window", host, "--to", "1700000005"];
    assert_eq!(ring.come_back(&until, place), [1]);

    let later = ["window", host, "--from", "1800000000"];
    let line = ring.refusal(&later, place);
    assert!(line.contains("it has no segment of that time"), "{line}");
    let line = ring.refusal(&["window", url], place);
    assert!(line.contains("it has no segment of that time"), "{line}");
}

#[test]
fn segments_go_to_a_directory_and_come_back() {
    let ring = Ring::new(3);
    there_and_back(&ring, &TestStore::directory(&ring));
}

#[test]
fn segments_go_to_a_server_and_come_back() {
    let ring = Ring::new(3);
    there_and_back(&ring, &TestStore::server(&ring));
}

#[test]
fn objects_that_are_no_segments_are_left_out_or_named() {
    let ring = Ring::new(2);
    let place = TestStore::server(&ring);
    ring.said(&["push", "ring", &place.url, "--host", "web"], &place);
    let folder = place.files.join("web");
    for other in ["notes.txt", "segment-0001-000003.tar", "segment-0001-000003.9-1.tar"] {
        fs::write(folder.join(other), "no segment").expect("written");
    }
    let host = &format!("{}/web", place.url);
    assert_eq!(ring.come_back(&["window", host], &place), [1, 2]);
    // One that is called like a segment of this time.
    let all = names(&folder);
    let name = all.iter().find(|name| name.starts_with("segment-0001-000002.")).expect("an object");
    let whole = fs::read(folder.join(name)).expect("read");
    for (content, reason) in [
        (&b"no segment"[..], "it is no segment"),
        (&b""[..], "it has no file"),
        (&whole[..700], "it is no segment"),
    ] {
        fs::write(folder.join(name), content).expect("written");
        let line = ring.refusal(&["window", host], &place);
        assert!(line.contains(name) && line.contains(reason), "{line}");
    }
    fs::remove_file(folder.join(name)).expect("removed");
    ring.add(3);
    ring.said(&["push", "ring", &place.url, "--host", "web", "--from", "1700000021"], &place);
    let line = ring.refusal(&["window", host], &place);
    assert!(line.contains("segment 2 of that time is missing"), "{line}");
}

#[test]
fn what_cannot_be_reached_is_said_in_one_line() {
    let ring = Ring::new(1);
    let place = TestStore::server(&ring);
    let line = ring.refusal(&["push", "ring", "s3://nobody/rings"], &place);
    assert!(line.contains("s3://nobody/rings/web.example: "), "{line}");
    assert!(line.contains("AWS_"), "{line}");
    let mut command = ring.command(&["stored", &place.url], &place);
    let output = command.env("AWS_SECRET_ACCESS_KEY", "wrong").output().expect("it runs");
    let line = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{line}");
    assert_eq!(line.lines().count(), 1, "{line}");
    for words in [
        &["push", "nothing", "s3://traces"][..],
        &["push", "ring", "rings"],
        &["push", "ring", "ftp://a/b"],
        &["push", "ring", "s3://traces", "--host"],
        &["window", "s3://traces", "--around", "yesterday"],
        &["stored"],
    ] {
        ring.refusal(words, &place);
    }
    assert_eq!(names(&place.files), [""; 0]);
}

#[test]
fn a_push_that_goes_on_takes_what_is_new_until_it_is_interrupted() {
    let ring = Ring::new(1);
    let place = TestStore::server(&ring);
    let child = ring
        .command(&["push", "ring", &place.url, "--every", "50ms"], &place)
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs");
    let folder = place.files.join("web.example");
    let waits_for = |objects: usize| {
        let begin = Instant::now();
        while !folder.exists() || names(&folder).len() < objects {
            assert!(begin.elapsed() < TIMEOUT, "{objects} objects");
            thread::sleep(Duration::from_millis(10));
        }
    };
    waits_for(1);
    // A bucket that is away for a while.
    let away = ring.path("store/away");
    fs::rename(&place.files, &away).expect("renamed");
    ring.add(2);
    thread::sleep(Duration::from_millis(200));
    fs::rename(&away, &place.files).expect("renamed");
    waits_for(2);
    let id = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    kill_process(id.expect("an id"), Signal::INT).expect("it runs");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130));
}
