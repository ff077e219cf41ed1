//! Spans of OpenTelemetry made of any bytes.

use luc_events::ConnectionId;
use luc_events::event_kinds::{MessageDirection, SocketRole};
use luc_events::tables::{SocketConnection, ConnectionMessage, TraceDescription};
use luc_fleet::{JoinedTraces, RecordedHost, ExplanationOptions, explain, parse_spans};

/// Reads any text in place of spans. It is refused in one line, or the spans' names steer no terminal. Each span is
/// counted once when spans are matched with the requests of a server.
pub fn spans(data: &[u8]) {
    let spans = match parse_spans(data) {
        Ok(found) => {
            let said = found.left_out.unwrap_or_default();
            assert!(!said.contains(char::is_control), "{said}");
            found.spans
        }
        Err(error) => return assert!(!error.to_string().contains('\n'), "{error}"),
    };
    for span in &spans {
        assert!(!span.name.contains(char::is_control), "{span:?}");
    }
    let given = spans.len() as u64;
    let joined = JoinedTraces::new(vec![server()]).expect("joined").with_spans(spans);
    let found = explain(&joined, ExplanationOptions::default()).expect("explained");
    let counts = found.requests.spans;
    let counts = counts.into_iter().flat_map(|all| [all.servers, all.clients]);
    let mut counted = 0;
    for one in counts {
        assert_eq!(one.spans, one.matched + one.several + one.none, "{one:?}");
        counted += one.spans;
    }
    assert_eq!(counted, given);
}

/// A host that answers two requests at once.
fn server() -> RecordedHost {
    let connection = |number| SocketConnection {
        connection: ConnectionId(number),
        local_address: "10.0.0.2".to_owned(),
        local_port: 80,
        remote_address: "10.0.0.1".to_owned(),
        remote_port: 5_000 + number,
        side: SocketRole::Server,
        ..SocketConnection::default()
    };
    let message = |number, at_ns, direction| ConnectionMessage {
        connection: ConnectionId(number),
        at_ns,
        direction,
        bytes: 9,
        ..ConnectionMessage::default()
    };
    RecordedHost {
        name: "web".to_owned(),
        trace: TraceDescription { host: "web".to_owned(), ..TraceDescription::default() },
        connections: vec![connection(1), connection(2)],
        messages: vec![
            message(1, 10, MessageDirection::Received),
            message(2, 20, MessageDirection::Received),
            message(2, 30, MessageDirection::Sent),
            message(1, 40, MessageDirection::Sent),
        ],
        ..RecordedHost::default()
    }
}
