//! A made-up run with one request, whole and then broken in each way.

use std::net::SocketAddrV4;

use crate::file::Truth;
use crate::folder::Folder;
use crate::row::{
    Connection, Direction, Header, Message, MessageKind, Role, Row, VERSION, Work, WorkKind,
};
use crate::stream::streams;
use crate::tree::trees;

const BYTES: u32 = 100;
const ROOT: u64 = 0x100;

/// Ends of the connections: indexes of hosts by name (back-end-0, back-end-1, client, front-end).
const CONNECTIONS: [(usize, usize); 3] = [(2, 3), (3, 0), (3, 1)];

fn address(host: usize, port: u16) -> SocketAddrV4 {
    SocketAddrV4::new([10, 0, 0, host as u8 + 1].into(), port)
}

/// Addresses of a connection's ends: the asking and the answering one.
fn ends(connection: usize) -> [SocketAddrV4; 2] {
    let (asks, answers) = CONNECTIONS[connection];
    [address(asks, 40_000 + connection as u16), address(answers, 7_000)]
}

fn host(name: &str, role: Role) -> Truth {
    Truth {
        header: Header {
            version: VERSION,
            role,
            host: name.to_owned(),
            process: 1,
            namespace: 2,
            seed: 3,
            options: Vec::new(),
            dropped_rows: 0,
        },
        rows: Vec::new(),
    }
}

/// Adds a question and its answer on a connection, from one time to another.
fn ask(
    folder: &mut Folder,
    connection: usize,
    (request, parent): (u64, u64),
    kinds: [MessageKind; 2],
    [from_ns, to_ns]: [u64; 2],
) {
    let (asks, answers) = CONNECTIONS[connection];
    let [asking, answering] = ends(connection);
    let mut add = |at_host: usize, kind, direction, at_ns| {
        let is_asker = at_host == asks;
        let rows = &mut folder.processes[at_host].rows;
        let [local, remote] = if is_asker { [asking, answering] } else { [answering, asking] };
        let before = rows.iter().filter(|row| {
            matches!(row, Row::Message(message)
                if message.local == local && message.remote == remote
                    && message.direction == direction)
        });
        let first_byte = before.count() as u64 * u64::from(BYTES);
        rows.push(Row::Message(Message {
            at_ns,
            thread: 1,
            request,
            parent,
            kind,
            direction,
            local,
            remote,
            first_byte,
            bytes: BYTES,
        }));
    };
    add(asks, kinds[0], Direction::Sent, from_ns);
    add(answers, kinds[0], Direction::Received, from_ns + 1);
    add(answers, kinds[1], Direction::Sent, to_ns - 1);
    add(asks, kinds[1], Direction::Received, to_ns);
}

fn whole() -> Folder {
    let mut folder = Folder {
        processes: vec![
            host("back-end-0", Role::BackEnd),
            host("back-end-1", Role::BackEnd),
            host("client", Role::Client),
            host("front-end", Role::FrontEnd),
        ],
    };
    let search = [MessageKind::Search, MessageKind::Found];
    let snippets = [MessageKind::Snippets, MessageKind::Texts];
    let query = [MessageKind::Query, MessageKind::Answer];
    ask(&mut folder, 0, (ROOT, 0), query, [1_000, 2_000]);
    ask(&mut folder, 1, (ROOT + 1, ROOT), search, [1_100, 1_200]);
    ask(&mut folder, 2, (ROOT + 3, ROOT), search, [1_110, 1_300]);
    ask(&mut folder, 2, (ROOT + 4, ROOT), snippets, [1_400, 1_500]);
    for (connection, messages) in [(0, 1), (1, 1), (2, 2)] {
        let (asks, answers) = CONNECTIONS[connection];
        let [asking, answering] = ends(connection);
        let bytes = u64::from(BYTES) * messages;
        for (at, local, remote) in [(asks, asking, answering), (answers, answering, asking)] {
            folder.processes[at].rows.push(Row::Connection(Connection {
                local,
                remote,
                sent_bytes: bytes,
                received_bytes: bytes,
                retransmitted_bytes: 0,
            }));
        }
    }
    folder
}

/// Returns the run with each message changed by `change`, which gets its host's index. Messages for which it returns
/// `false` are left out.
fn changed(change: impl Fn(usize, &mut Message) -> bool) -> Folder {
    let mut folder = whole();
    for (at, process) in folder.processes.iter_mut().enumerate() {
        process.rows.retain_mut(|row| match row {
            Row::Message(message) => change(at, message),
            _ => true,
        });
    }
    folder
}

fn said_of_trees(folder: &Folder) -> String {
    trees(folder).expect_err("broken").to_string()
}

fn said_of_streams(folder: &Folder) -> String {
    streams(folder).expect_err("broken").to_string()
}

#[test]
fn a_whole_run_is_a_tree_and_six_streams() {
    let folder = whole();
    let trees = trees(&folder).expect("whole");
    assert_eq!(trees.len(), 1);
    assert_eq!(trees[0].query.host, 3);
    let hosts: Vec<usize> = trees[0].searches.iter().map(|search| search.host).collect();
    assert_eq!(hosts, [0, 1]);
    assert_eq!(trees[0].snippets[0].host, 1);
    assert_eq!(trees[0].snippets[0].gathered_ns, 1_500);
    assert_eq!(streams(&folder), Ok(6));
}

#[test]
fn what_is_missing_in_a_tree_is_said() {
    for kind in [MessageKind::Query, MessageKind::Answer, MessageKind::Search, MessageKind::Texts] {
        for direction in [Direction::Sent, Direction::Received] {
            let folder =
                changed(|_, message| message.kind != kind || message.direction != direction);
            assert!(said_of_trees(&folder).contains("missing"), "{kind:?}");
        }
    }
    let unasked = changed(|_, message| message.request != ROOT + 3);
    assert!(said_of_trees(&unasked).contains("of 2 back ends"));
    let headless = changed(|_, message| message.request != ROOT);
    assert!(said_of_trees(&headless).contains("there is no request 100"));
}

#[test]
fn what_is_wrong_in_a_tree_is_said() {
    let twice = {
        let mut folder = whole();
        let again = folder.processes[2].rows[0];
        folder.processes[2].rows.push(again);
        folder
    };
    assert!(said_of_trees(&twice).contains("twice"));
    let late = changed(|_, message| {
        if (message.kind, message.direction) == (MessageKind::Search, Direction::Received) {
            message.at_ns += 1_000;
        }
        true
    });
    assert!(said_of_trees(&late).contains("out of order"));
    let early = changed(|_, message| {
        if message.kind == MessageKind::Snippets || message.kind == MessageKind::Texts {
            message.at_ns -= 250;
        }
        true
    });
    assert!(said_of_trees(&early).contains("before all was gathered"));
    let outside = changed(|_, message| {
        if message.parent == ROOT && message.kind.is_question() {
            message.at_ns -= 110;
        }
        true
    });
    assert!(said_of_trees(&outside).contains("not inside"));
    let estranged = changed(|at, message| {
        if at == 0 {
            message.parent = 7;
        }
        true
    });
    assert!(said_of_trees(&estranged).contains("disagree"));
}

#[test]
fn what_is_wrong_in_a_stream_is_said() {
    let gap = changed(|at, message| {
        if at == 1 && message.request == ROOT + 4 && message.direction == Direction::Sent {
            message.first_byte += 1;
        }
        true
    });
    assert!(said_of_streams(&gap).contains("begins at 101"));
    let lost = changed(|at, message| at != 1 || message.request != ROOT + 4);
    assert!(said_of_streams(&lost).contains("the kernel has counted Some(200)"));
    let other = changed(|at, message| {
        if at == 2 && message.direction == Direction::Received {
            message.request += 1;
        }
        true
    });
    assert!(said_of_streams(&other).contains("has sent other messages"));
    let mut uncounted = whole();
    uncounted.processes[0].rows.retain(|row| !matches!(row, Row::Connection(_)));
    assert!(said_of_streams(&uncounted).contains("None"));
    let unread = changed(|at, message| at != 1 || message.direction == Direction::Sent);
    assert!(said_of_streams(&unread).contains("nobody has received it"));
}

#[test]
fn work_is_no_part_of_a_tree() {
    let mut folder = whole();
    folder.processes[0].rows.push(Row::Work(Work {
        request: 99,
        thread: 1,
        kind: WorkKind::Search,
        from_ns: 1,
        to_ns: 2,
    }));
    assert_eq!(trees(&folder), trees(&whole()));
}
