//! Bounds for the clocks of two hosts, from their packets.

use std::collections::BTreeMap;

use luc_fleet_clocks::{
    ClockError, HostId, MessageThinner, OffsetPoint, PairDirection, PairPoints,
};

use crate::connections::{ConnectionPair, Connections, StreamIndex};
use crate::host_rows::{ByteDirection, PacketRow};

/// Returns the bounds that packets give for each two hosts with a connection, the lower one as A; thinned
/// ([`MessageThinner`]).
///
/// `raw_ns` maps a host's CLOCK_MONOTONIC to its CLOCK_MONOTONIC_RAW ([`ClockMap`](luc_fleet_clocks::ClockMap)). It
/// also returns the error of that in ns, beyond the error of all times in [`FitOptions`](luc_fleet_clocks::FitOptions).
/// Bounds are looser by this error.
///
/// Of each byte the first transmission and the first reception count. So retransmission, and packets that are cut or
/// put together on the way, only loosen a bound. A packet that begins before bytes that were sent already is a
/// retransmission. Pure acknowledgements count if their number was sent once and received once.
///
/// Messages are not used: a call's time is not that of its packets. Leave out a host's packets while its recorder has
/// lost rows. A lost row of a first transmission may make a wrong bound: if its bytes were the last ones, and were
/// sent again after they arrived.
///
/// # Errors
/// [`ClockError::TimeOutOfRange`].
pub fn clock_points(
    connections: &Connections,
    packets: &[PacketRow],
    raw_ns: impl Fn(HostId, i64) -> (i64, i64),
) -> Result<BTreeMap<(HostId, HostId), PairPoints>, ClockError> {
    let places = connections.places();
    let mut streams: Vec<(StreamIndex, &PacketRow)> = packets
        .iter()
        .filter_map(|row| {
            let place = places.get(&row.end())?;
            let [a, b] = connections.pairs[place.pair].ends;
            (a.host != b.host).then_some((place.stream(row.way), row))
        })
        .collect();
    streams.sort_unstable_by_key(|(stream, row)| (*stream, row.at_ns, row.first_byte, *row));
    let mut all: BTreeMap<(HostId, HostId), PairPoints> = BTreeMap::new();
    for rows in streams.chunk_by(|a, b| a.0 == b.0) {
        let stream = rows[0].0;
        let pair = &connections.pairs[stream.pair()];
        let rows = |way| rows.iter().map(|(_, row)| *row).filter(move |row| row.way == way);
        let sent: Vec<&PacketRow> = rows(ByteDirection::Sent).collect();
        let received: Vec<&PacketRow> = rows(ByteDirection::Received).collect();
        let mut transits = match_data(&sent, &received, pair, stream);
        transits.extend(match_acknowledgements(&sent, &received, pair, stream));
        let [from, to] = [stream.sender(), stream.receiver()].map(|side| pair.ends[side].host);
        // Ends are in order, so the first one's host is A.
        let points = all.entry((pair.ends[0].host, pair.ends[1].host)).or_default();
        for Transit { sent_ns, received_ns } in transits {
            let (sent_ns, error_ns) = raw_ns(from, time(sent_ns)?);
            let sent_ns = sent_ns.saturating_sub(error_ns);
            let (received_ns, error_ns) = raw_ns(to, time(received_ns)?);
            let received_ns = received_ns.saturating_add(error_ns);
            if stream.sender() == 0 {
                points.add_forward(sent_ns, received_ns)?;
            } else {
                points.add_backward(sent_ns, received_ns)?;
            }
        }
    }
    for points in all.values_mut() {
        points.forward = thin(PairDirection::Forward, &mut points.forward);
        points.backward = thin(PairDirection::Backward, &mut points.backward);
    }
    Ok(all)
}

fn time(at_ns: u64) -> Result<i64, ClockError> {
    i64::try_from(at_ns).map_err(|_| ClockError::TimeOutOfRange(i64::MAX))
}

fn thin(direction: PairDirection, points: &mut [OffsetPoint]) -> Vec<OffsetPoint> {
    points.sort_unstable();
    let mut thinner = MessageThinner::new(direction);
    let mut kept: Vec<OffsetPoint> =
        points.iter().filter_map(|&point| thinner.add(point)).collect();
    kept.extend(thinner.finish());
    kept
}

/// Times at which bytes were sent and received.
#[derive(Debug, Clone, Copy)]
struct Transit {
    sent_ns: u64,
    received_ns: u64,
}

/// Bytes that went for the first time.
#[derive(Debug, Clone, Copy)]
struct NewBytes {
    first: i128,
    end: i128,
    at_ns: u64,
}

/// Finds bytes that went for the first time, ascending. `shift` is added to offsets.
fn find_new_bytes(rows: &[&PacketRow], shift: i128) -> Vec<NewBytes> {
    let mut highest = i128::MIN;
    let mut found = Vec::with_capacity(rows.len());
    for row in rows.iter().filter(|row| row.bytes > 0) {
        let first = i128::from(row.first_byte) + shift;
        let end = first + i128::from(row.bytes);
        if first >= highest {
            found.push(NewBytes { first, end, at_ns: row.at_ns });
        }
        highest = highest.max(end);
    }
    found
}

/// Returns the times of each two packets that have bytes in common, both for the first time.
fn match_data(
    sent: &[&PacketRow],
    received: &[&PacketRow],
    pair: &ConnectionPair,
    stream: StreamIndex,
) -> Vec<Transit> {
    let sent = find_new_bytes(sent, 0);
    let received = find_new_bytes(received, i128::from(pair.shifts[stream.sender()]));
    let (mut sends, mut receptions) = (sent.iter().peekable(), received.iter().peekable());
    let mut transits = Vec::new();
    while let (Some(send), Some(reception)) = (sends.peek(), receptions.peek()) {
        if send.first.max(reception.first) < send.end.min(reception.end) {
            transits.push(Transit { sent_ns: send.at_ns, received_ns: reception.at_ns });
        }
        if send.end <= reception.end {
            sends.next();
        } else {
            receptions.next();
        }
    }
    transits
}

/// Returns the times of pure acknowledgements. The bytes that they acknowledge went the other way.
fn match_acknowledgements(
    sent: &[&PacketRow],
    received: &[&PacketRow],
    pair: &ConnectionPair,
    stream: StreamIndex,
) -> Vec<Transit> {
    let sent = find_unique_acks(sent, i128::from(pair.shifts[stream.receiver()]));
    let received = find_unique_acks(received, 0);
    let transit = |(ack, sent_ns)| {
        let received_ns = *received.get(&ack)?;
        Some(Transit { sent_ns, received_ns })
    };
    sent.into_iter().filter_map(transit).collect()
}

/// Finds the acknowledgements that occur once, and their times. `shift` is added to their numbers.
fn find_unique_acks(rows: &[&PacketRow], shift: i128) -> BTreeMap<i128, u64> {
    let mut times: BTreeMap<i128, Option<u64>> = BTreeMap::new();
    // A packet with data that acknowledges the same is no other reception of this one, but may be taken for it.
    for row in rows {
        let time = (row.bytes == 0).then_some(row.at_ns);
        let of_ack = times.entry(i128::from(row.ack) + shift);
        of_ack.and_modify(|time| *time = None).or_insert(time);
    }
    times.into_iter().filter_map(|(ack, time)| Some((ack, time?))).collect()
}
