//! Why a thread waits at a unix socket: for the one that used the other end last.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use super::{has_fleet, json};
use crate::common::fleet_recording::FleetRecording;
use crate::common::is_root;

#[test]
fn who_has_the_other_end_of_a_unix_socket_is_named() {
    if !is_root() || !has_fleet() {
        return;
    }
    let (mut client, mut server) = UnixStream::pair().expect("a pair");
    let recording = FleetRecording::start(&["--all"]);
    let (read, has_read) = channel();
    let (stop, stopped) = channel();
    let number = || rustix::thread::gettid().as_raw_nonzero().get();
    let server = thread::spawn(move || {
        server.read_exact(&mut [0; 5]).expect("received");
        read.send(number()).expect("heard");
        let () = stopped.recv().expect("the end");
        server.write_all(&[0; 3]).expect("sent");
    });
    let client = thread::spawn(move || {
        client.write_all(&[0; 5]).expect("sent");
        client.read_exact(&mut [0; 3]).expect("received");
        number()
    });
    let server_thread = has_read.recv().expect("a number");
    // The client waits by now.
    thread::sleep(Duration::from_millis(300));
    let trace = recording.stop();
    stop.send(()).expect("heard");
    server.join().expect("no failure");
    let client_thread = client.join().expect("no failure");
    let host = format!("here={}", trace.path().display());
    let why = json(&["why", "--json", &format!("{client_thread}@here"), &host]);
    let links = why["links"].as_array().expect("links");
    let threads: Vec<_> = links.iter().map(|link| link["thread"].as_i64()).collect();
    let expected = [client_thread, server_thread].map(|thread| Some(i64::from(thread)));
    assert!(threads.starts_with(&expected), "{why}");
}
