//! Sequence numbers that an end has seen of one direction, and whether two ends can have seen the same.

use std::collections::HashMap;

use crate::host_rows::{ByteDirection, ConnectionEnd, EndId, MessageRow, PacketRow};

/// Number of bytes after which sequence numbers come round.
pub(super) const SEQUENCE_PERIOD: u64 = 1 << 32;

/// The offset after the last byte that an end sent and received while it was traced.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct TracedExtent {
    sent: u64,
    received: u64,
}

/// Returns how far each end got.
pub(super) fn reaches(
    messages: &[MessageRow],
    packets: &[PacketRow],
) -> HashMap<EndId, TracedExtent> {
    let mut reaches: HashMap<EndId, TracedExtent> = HashMap::new();
    let of_messages = messages.iter().map(|row| (row.end(), row.way, row.first_byte, row.bytes));
    let of_packets = packets.iter().map(|row| (row.end(), row.way, row.first_byte, row.bytes));
    for (end, way, first_byte, bytes) in of_messages.chain(of_packets) {
        let reach = reaches.entry(end).or_default();
        let reach = match way {
            ByteDirection::Sent => &mut reach.sent,
            ByteDirection::Received => &mut reach.received,
        };
        *reach = (*reach).max(first_byte.saturating_add(bytes));
    }
    reaches
}

/// Sequence numbers that an end has seen of one direction: `length` bytes from `origin`.
#[derive(Debug, Clone, Copy)]
pub(super) struct SequenceWindow {
    pub(super) origin: u32,
    pub(super) length: u64,
    /// Whether the origin is the initial sequence number: nothing is before it.
    is_initial: bool,
}

impl SequenceWindow {
    /// Returns the window of the bytes that an end sent; `None` if no number is known.
    pub(super) fn sent(end: &ConnectionEnd, reach: TracedExtent) -> Option<Self> {
        let origin = end.own_isn.or(end.at_start.map(|start| start.snd_nxt))?;
        Some(Self { origin, length: reach.sent, is_initial: end.own_isn.is_some() })
    }

    /// Returns the window of the bytes that an end received; `None` if no number is known.
    pub(super) fn received(end: &ConnectionEnd, reach: TracedExtent) -> Option<Self> {
        if let Some(origin) = end.peer_isn {
            return Some(Self { origin, length: reach.received, is_initial: true });
        }
        let start = end.at_start?;
        let unread = u64::from(start.rcv_nxt.wrapping_sub(start.copied_seq));
        Some(Self {
            origin: start.copied_seq,
            length: reach.received.max(unread),
            is_initial: false,
        })
    }
}

/// Relation of the sender's and the receiver's windows of one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WindowFit {
    /// They overlap or touch: an offset of the receiver, plus this, is the sender's.
    Shift(i64),
    /// They cannot be of one connection.
    Apart,
    /// As many bytes have passed as there are sequence numbers. They may be of one connection, but the shift is not
    /// known.
    TooWide,
}

/// Compares the windows of a direction.
pub(super) fn compare(sender: SequenceWindow, receiver: SequenceWindow) -> WindowFit {
    if sender.is_initial && receiver.is_initial {
        return if sender.origin == receiver.origin {
            WindowFit::Shift(0)
        } else {
            WindowFit::Apart
        };
    }
    if sender.length.saturating_add(receiver.length) >= SEQUENCE_PERIOD {
        return WindowFit::TooWide;
    }
    let after = u64::from(receiver.origin.wrapping_sub(sender.origin));
    let before = SEQUENCE_PERIOD - after;
    if after == 0 {
        WindowFit::Shift(0)
    } else if after <= sender.length && !receiver.is_initial {
        WindowFit::Shift(after as i64)
    } else if before <= receiver.length && !sender.is_initial {
        WindowFit::Shift(-(before as i64))
    } else {
        WindowFit::Apart
    }
}

/// Returns the probability that windows of unrelated connections overlap or touch: the numbers are random.
pub(super) fn chance(sender: SequenceWindow, receiver: SequenceWindow) -> f64 {
    let width = sender.length as f64 + receiver.length as f64 + 1.0;
    (width / SEQUENCE_PERIOD as f64).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(origin: u32, length: u64) -> SequenceWindow {
        SequenceWindow { origin, length, is_initial: false }
    }

    #[test]
    fn windows_overlap_across_the_wrap() {
        let shift = |a, b| compare(a, b);
        assert_eq!(shift(window(100, 0), window(100, 0)), WindowFit::Shift(0));
        assert_eq!(shift(window(100, 50), window(150, 9)), WindowFit::Shift(50));
        assert_eq!(shift(window(100, 49), window(150, 9)), WindowFit::Apart);
        assert_eq!(shift(window(100, 0), window(60, 40)), WindowFit::Shift(-40));
        let near_the_end = u32::MAX - 9;
        assert_eq!(shift(window(near_the_end, 30), window(20, 5)), WindowFit::Shift(30));
        assert_eq!(shift(window(20, 5), window(near_the_end, 30)), WindowFit::Shift(-30));
        assert_eq!(shift(window(0, SEQUENCE_PERIOD - 1), window(0, 1)), WindowFit::TooWide);
        assert_eq!(shift(window(0, u64::MAX), window(0, u64::MAX)), WindowFit::TooWide);
    }

    #[test]
    fn nothing_is_before_an_initial_number() {
        let initial =
            |origin, length| SequenceWindow { is_initial: true, ..window(origin, length) };
        assert_eq!(compare(initial(100, 90), window(150, 0)), WindowFit::Shift(50));
        assert_eq!(compare(initial(100, 90), window(50, 80)), WindowFit::Apart);
        assert_eq!(compare(window(150, 10), initial(100, 60)), WindowFit::Shift(-50));
        assert_eq!(compare(window(50, 80), initial(100, 60)), WindowFit::Apart);
        assert_eq!(compare(initial(7, u64::MAX), initial(7, 3)), WindowFit::Shift(0));
        assert_eq!(compare(initial(7, 9), initial(8, 9)), WindowFit::Apart);
    }
}
