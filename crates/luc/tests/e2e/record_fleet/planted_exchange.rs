//! Planted exchanges of known bytes.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread;

use super::two_hosts::TwoHosts;

/// Requests and answers on one connection, one after the other: bytes to the server, bytes back.
pub(crate) type PlantedExchange = Vec<(usize, usize)>;

/// Small and larger messages, and one way only.
pub(crate) fn some() -> PlantedExchange {
    vec![(1, 1), (100, 3000), (70_000, 5), (17, 0), (0, 40_000)]
}

/// Two ends of one connection.
pub(crate) struct ConnectedPair {
    pub(crate) client: TcpStream,
    pub(crate) server: TcpStream,
}

impl ConnectedPair {
    /// Connects from the client to `to`, where the server listens at `bind`.
    pub(crate) fn new(place: &TwoHosts, bind: &str, to: &str) -> Self {
        let listener = place.server.within(|| TcpListener::bind((bind, 0)).expect("bound"));
        let port = listener.local_addr().expect("its address").port();
        let client = place.client.within(|| TcpStream::connect((to, port)).expect("connected"));
        let (server, _) = listener.accept().expect("accepted");
        Self { client, server }
    }

    pub(crate) fn client_port(&self) -> u32 {
        u32::from(self.client.local_addr().expect("its address").port())
    }

    /// Each request is sent by one call, and answered by one call when all of it has come.
    pub(crate) fn exchange(&self, messages: &PlantedExchange) {
        thread::scope(|scope| {
            scope.spawn(|| {
                for (request, answer) in messages {
                    receive(&self.server, *request);
                    send(&self.server, *answer);
                }
            });
            for (request, answer) in messages {
                send(&self.client, *request);
                receive(&self.client, *answer);
            }
        });
    }
}

pub(crate) fn send(mut stream: &TcpStream, bytes: usize) {
    if bytes > 0 {
        stream.write_all(&vec![7; bytes]).expect("sent");
    }
}

pub(crate) fn receive(mut stream: &TcpStream, bytes: usize) {
    stream.read_exact(&mut vec![0; bytes]).expect("received");
}

/// The bytes of all requests, and of all answers.
pub(crate) fn totals(messages: &PlantedExchange) -> [u64; 2] {
    let requests: usize = messages.iter().map(|message| message.0).sum();
    let answers: usize = messages.iter().map(|message| message.1).sum();
    [requests as u64, answers as u64]
}
