//! Computes ids of traces and spans: the same ones each time that a request is written.

use twox_hash::{XxHash3_64, XxHash3_128};

use crate::explain::RankedRequest;

/// RequestIds of one request.
#[derive(Debug, Clone)]
pub(super) struct RequestIds {
    seed: u128,
    trace: String,
}

impl RequestIds {
    /// Hashes a request that began at `began_ns`, ns since 1970. No more is needed to tell it from others, as a thread
    /// makes one request at a time.
    pub(super) fn of(request: &RankedRequest, began_ns: u64) -> Self {
        let names = [&request.host, &request.process, &request.address];
        let mut bytes = Vec::new();
        for name in names {
            bytes.extend_from_slice(name.as_bytes());
            bytes.push(0);
        }
        bytes.extend_from_slice(&request.thread.to_le_bytes());
        bytes.extend_from_slice(&request.connection.to_le_bytes());
        bytes.extend_from_slice(&began_ns.to_le_bytes());
        // An id is not 0.
        let seed = XxHash3_128::oneshot(&bytes).max(1);
        let known = request.span.as_ref().map(|span| span.trace_id.clone());
        Self { seed, trace: known.unwrap_or_else(|| format!("{seed:032x}")) }
    }

    /// Id of the trace: that of the program's own trace, if a span of it is known.
    pub(super) fn trace(&self) -> String {
        self.trace.clone()
    }

    /// Id of a span, by its kind and its number within that kind.
    pub(super) fn span(&self, what: &str, number: usize) -> String {
        let mut bytes = self.seed.to_le_bytes().to_vec();
        bytes.extend_from_slice(what.as_bytes());
        bytes.extend_from_slice(&(number as u64).to_le_bytes());
        format!("{:016x}", XxHash3_64::oneshot(&bytes).max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_the_same_each_time_and_differ() {
        let request = RankedRequest {
            number: 1,
            host: "web".to_owned(),
            process: "nginx".to_owned(),
            address: "10.0.0.2:80".to_owned(),
            thread: 7,
            connection: 3,
            began_ns: 5,
            time_ns: 9,
            span: None,
        };
        let ids = RequestIds::of(&request, 1_000);
        let again = RequestIds::of(&RankedRequest { number: 2, ..request.clone() }, 1_000);
        assert_eq!(ids.trace(), again.trace());
        assert_eq!(ids.span("client", 1), again.span("client", 1));
        assert_eq!((ids.trace().len(), ids.span("client", 1).len()), (32, 16));
        let others = [
            RequestIds::of(&request, 1_001),
            RequestIds::of(&RankedRequest { thread: 8, ..request.clone() }, 1_000),
            RequestIds::of(&RankedRequest { connection: 4, ..request }, 1_000),
        ];
        for other in others {
            assert_ne!(ids.trace(), other.trace());
        }
        assert_ne!(ids.span("client", 1), ids.span("server", 1));
        assert_ne!(ids.span("client", 1), ids.span("client", 2));
    }
}
