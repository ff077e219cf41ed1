//! What packets say of the clocks of two hosts.

use std::collections::BTreeMap;

use luc_fleet_clocks::{ClockError, Direction, HostId, PairPoints, Point, Thinner};

use crate::connections::{ConnectionPair, Connections};
use crate::rows::{Packet, Way};

/// The bounds that packets give, for each two hosts with a connection, the lower one as A; thinned ([`Thinner`]).
/// `raw_ns` maps a host's CLOCK_MONOTONIC to its CLOCK_MONOTONIC_RAW ([`ClockMap`](luc_fleet_clocks::ClockMap)), and says by
/// how many ns that may be off, beyond what [`FitOptions`](luc_fleet_clocks::FitOptions) says of all times. The bounds
/// are looser by that much.
///
/// Of each byte the first transmission and the first reception count, so that retransmission, and packets that are cut
/// or put together on the way, only loosen a bound. A packet that begins before bytes that were sent already is a
/// retransmission. Pure acknowledgements count if their number was sent once and received once.
///
/// Messages are not used: a call's time is not that of its packets. If the row of a first transmission is lost, and the
/// bytes were the last ones and were sent again although they had arrived, the second transmission is taken for the
/// first, and its bound is wrong: leave out a host's packets while its recorder has lost rows.
///
/// # Errors
/// [`ClockError::TimeOutOfRange`].
pub fn clock_points(
    connections: &Connections,
    packets: &[Packet],
    raw_ns: impl Fn(HostId, i64) -> (i64, i64),
) -> Result<BTreeMap<(HostId, HostId), PairPoints>, ClockError> {
    let places = connections.places();
    let mut streams: Vec<(usize, &Packet)> = packets
        .iter()
        .filter_map(|row| {
            let &(pair, side) = places.get(&row.end())?;
            let [a, b] = connections.pairs[pair].ends;
            let direction = side ^ usize::from(row.way == Way::Received);
            (a.host != b.host).then_some((2 * pair + direction, row))
        })
        .collect();
    streams.sort_unstable_by_key(|(stream, row)| (*stream, row.at_ns, row.first_byte, *row));
    let mut all: BTreeMap<(HostId, HostId), PairPoints> = BTreeMap::new();
    for stream in streams.chunk_by(|a, b| a.0 == b.0) {
        let (pair, direction) = (&connections.pairs[stream[0].0 / 2], stream[0].0 % 2);
        let rows = |way| stream.iter().map(|(_, row)| *row).filter(move |row| row.way == way);
        let (sent, received): (Vec<_>, Vec<_>) =
            (rows(Way::Sent).collect(), rows(Way::Received).collect());
        let mut times = data(&sent, &received, pair, direction);
        times.extend(acknowledgements(&sent, &received, pair, direction));
        // Ends are in order, so the first one's host is A.
        let [a, b] = pair.ends.map(|end| end.host);
        let (from, to) = if direction == 0 { (a, b) } else { (b, a) };
        let points = all.entry((a, b)).or_default();
        for (sent_ns, received_ns) in times {
            let (sent_ns, error_ns) = raw_ns(from, time(sent_ns)?);
            let sent_ns = sent_ns.saturating_sub(error_ns);
            let (received_ns, error_ns) = raw_ns(to, time(received_ns)?);
            let received_ns = received_ns.saturating_add(error_ns);
            if direction == 0 {
                points.add_forward(sent_ns, received_ns)?;
            } else {
                points.add_backward(sent_ns, received_ns)?;
            }
        }
    }
    for points in all.values_mut() {
        points.forward = thinned(Direction::Forward, &mut points.forward);
        points.backward = thinned(Direction::Backward, &mut points.backward);
    }
    Ok(all)
}

fn time(at_ns: u64) -> Result<i64, ClockError> {
    i64::try_from(at_ns).map_err(|_| ClockError::TimeOutOfRange(i64::MAX))
}

fn thinned(direction: Direction, points: &mut [Point]) -> Vec<Point> {
    points.sort_unstable();
    let mut thinner = Thinner::new(direction);
    let mut kept: Vec<Point> = points.iter().filter_map(|&point| thinner.add(point)).collect();
    kept.extend(thinner.finish());
    kept
}

/// Bytes that went for the first time, and when: `(first, end, at_ns)`, ascending. `moved` is added to offsets.
fn firsts(rows: &[&Packet], moved: i128) -> Vec<(i128, i128, u64)> {
    let mut highest = i128::MIN;
    let mut firsts = Vec::with_capacity(rows.len());
    for row in rows.iter().filter(|row| row.bytes > 0) {
        let first = i128::from(row.first_byte) + moved;
        let end = first + i128::from(row.bytes);
        if first >= highest {
            firsts.push((first, end, row.at_ns));
        }
        highest = highest.max(end);
    }
    firsts
}

/// When bytes were first sent and first received, for each two packets that have some in common.
fn data(
    sent: &[&Packet],
    received: &[&Packet],
    pair: &ConnectionPair,
    direction: usize,
) -> Vec<(u64, u64)> {
    let sent = firsts(sent, 0);
    let received = firsts(received, i128::from(pair.shifts[direction]));
    let (mut sends, mut receptions) = (sent.iter().peekable(), received.iter().peekable());
    let mut times = Vec::new();
    while let (Some(send), Some(reception)) = (sends.peek(), receptions.peek()) {
        if send.0.max(reception.0) < send.1.min(reception.1) {
            times.push((send.2, reception.2));
        }
        if send.1 <= reception.1 {
            sends.next();
        } else {
            receptions.next();
        }
    }
    times
}

/// When pure acknowledgements were sent and received. What they acknowledge went the other way.
fn acknowledgements(
    sent: &[&Packet],
    received: &[&Packet],
    pair: &ConnectionPair,
    direction: usize,
) -> Vec<(u64, u64)> {
    let sent = once(sent, i128::from(pair.shifts[1 - direction]));
    let received = once(received, 0);
    let both = sent.into_iter().filter_map(|(ack, sent_ns)| Some((sent_ns, *received.get(&ack)?)));
    both.collect()
}

/// The acknowledgements that are there once, and when.
fn once(rows: &[&Packet], moved: i128) -> BTreeMap<i128, u64> {
    let mut times: BTreeMap<i128, Option<u64>> = BTreeMap::new();
    // A packet with data that acknowledges the same is no other reception of this one, but may be taken for it.
    for row in rows {
        let time = (row.bytes == 0).then_some(row.at_ns);
        let of_ack = times.entry(i128::from(row.ack) + moved);
        of_ack.and_modify(|time| *time = None).or_insert(time);
    }
    let known = times.into_iter().filter_map(|(ack, time)| Some((ack, time?)));
    known.collect()
}
