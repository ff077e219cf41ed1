//! A planted exchange: clients ask a front end, which asks a back end.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::two_hosts::TwoHosts;

/// Requests of each client.
pub(crate) const REQUESTS: usize = 15;
/// Clients ask with this many bytes and the request's number.
pub(crate) const ASKED: usize = 1_000;
/// The front end then asks with this many more.
pub(crate) const MORE: usize = 10_000;
/// Numbers of each client's first request, by who works for it.
pub(crate) const ALONE: usize = 0;
pub(crate) const WORKER_ANSWERS: usize = 100;
pub(crate) const READER_ANSWERS: usize = 200;
pub(crate) const KINDS: [usize; 3] = [ALONE, WORKER_ANSWERS, READER_ANSWERS];
/// Number of bytes of each answer, of both ends.
pub(crate) const ANSWER: usize = 300;
/// Ports of the front end and the back end.
const FRONT_END: u16 = 7002;
const BACK_END: u16 = 7003;
/// Time that the back end takes for an answer.
const WORK: Duration = Duration::from_millis(3);

fn send(mut stream: &TcpStream, bytes: usize) {
    stream.write_all(&vec![7; bytes]).expect("sent");
}

/// Reads a whole request: the sizes tell where one ends.
fn receive(mut stream: &TcpStream, bytes: usize) {
    stream.read_exact(&mut vec![0; bytes]).expect("received");
}

/// Three clients ask at once. A thread of the front end does all the work for the first. For the others it hands over
/// to a worker. The worker answers itself, or has the thread that read the request do it. The back end is on the
/// third host.
///
/// The recorder thins packets by addresses, whatever namespace they are of. So each exchange has addresses of its
/// own, and keeps its packets whatever other tests send at the same time.
pub(crate) fn exchange(place: &TwoHosts) {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = std::process::id() + 101 * COUNT.fetch_add(1, Ordering::Relaxed);
    let network = format!("10.78.{}", number % 250);
    for (host, device, last) in
        [(&place.client, "eth0", 1), (&place.server, "eth0", 2), (&place.between, "bridge", 3)]
    {
        host.run(&format!("ip address add {network}.{last}/24 dev {device}"));
    }
    let front_address = format!("{network}.2:{FRONT_END}");
    let back_address = format!("{network}.3:{BACK_END}");
    let back_end = place.between.within(|| listen(&back_address));
    let front_end = place.server.within(|| listen(&front_address));
    thread::scope(|scope| {
        for first in KINDS {
            let client = place.client.within(|| connect(&front_address));
            let (server, _) = front_end.accept().expect("accepted");
            let caller = place.server.within(|| connect(&back_address));
            let (worker, _) = back_end.accept().expect("accepted");
            named(scope, "back-end", move || {
                for number in first..first + REQUESTS {
                    receive(&worker, MORE + ASKED + number);
                    thread::sleep(WORK);
                    send(&worker, ANSWER);
                }
            });
            named(scope, "front-end", move || {
                if first == ALONE {
                    serve_alone(&server, &caller);
                } else {
                    serve_by_a_worker(&server, &caller, first);
                }
            });
            named(scope, "client", move || {
                for number in first..first + REQUESTS {
                    send(&client, ASKED + number);
                    receive(&client, ANSWER);
                    thread::sleep(Duration::from_millis(2));
                }
            });
        }
    });
}

fn named<'scope>(
    scope: &'scope thread::Scope<'scope, '_>,
    name: &str,
    work: impl FnOnce() + Send + 'scope,
) {
    let thread = thread::Builder::new().name(name.to_owned());
    thread.spawn_scoped(scope, work).expect("a thread");
}

fn listen(address: &str) -> TcpListener {
    TcpListener::bind(address).expect("bound")
}

fn connect(address: &str) -> TcpStream {
    let address: SocketAddr = address.parse().expect("an address");
    TcpStream::connect(address).expect("connected")
}

fn serve_alone(server: &TcpStream, caller: &TcpStream) {
    for number in 0..REQUESTS {
        receive(server, ASKED + number);
        send(caller, MORE + ASKED + number);
        receive(caller, ANSWER);
        send(server, ANSWER);
    }
}

fn serve_by_a_worker(server: &TcpStream, caller: &TcpStream, first: usize) {
    let (asked, to_do) = mpsc::channel();
    let (done, answered) = mpsc::channel();
    thread::scope(|scope| {
        named(scope, "worker", move || {
            for number in to_do {
                send(caller, MORE + ASKED + number);
                receive(caller, ANSWER);
                if first == WORKER_ANSWERS {
                    send(server, ANSWER);
                }
                done.send(()).expect("somebody waits");
            }
        });
        for number in first..first + REQUESTS {
            receive(server, ASKED + number);
            asked.send(number).expect("a worker");
            answered.recv().expect("an answer");
            if first == READER_ANSWERS {
                send(server, ANSWER);
            }
        }
        drop(asked);
    });
}
