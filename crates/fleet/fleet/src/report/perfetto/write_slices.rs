//! Writes the slices and instants of one track. Slices nest or follow each other, but never overlap.

use std::io::Write;

use luc_report::perfetto::packets::{PacketWriter, SliceBegin};

#[derive(Debug, Clone, Default)]
pub(super) struct TrackItem {
    pub(super) begin_ns: u64,
    pub(super) end_ns: Option<u64>,
    pub(super) name: String,
    pub(super) category: &'static str,
    pub(super) flows: Vec<u64>,
    pub(super) numbers: Vec<(&'static str, u64)>,
    pub(super) words: Vec<(&'static str, String)>,
}

/// Writes items in order of time. A slice that would end after the one around it is cut.
pub(super) fn write_slices<W: Write>(
    packets: &mut PacketWriter<W>,
    track: u64,
    mut items: Vec<TrackItem>,
) {
    // Longer slices come before the shorter ones within them, and instants come last.
    items.sort_by_key(|item| {
        let length_ns = item.end_ns.map(|end_ns| end_ns.saturating_sub(item.begin_ns));
        (item.begin_ns, std::cmp::Reverse(length_ns))
    });
    let mut open: Vec<u64> = Vec::new();
    for item in &items {
        let is_over = |end_ns: &u64| match item.end_ns {
            Some(_) => *end_ns <= item.begin_ns,
            // A message at a slice's end belongs to it.
            None => *end_ns < item.begin_ns,
        };
        while let Some(end_ns) = open.pop_if(|end_ns| is_over(end_ns)) {
            packets.end(track, end_ns);
        }
        let words: Vec<(&str, &str)> =
            item.words.iter().map(|(name, word)| (*name, word.as_str())).collect();
        let begin = SliceBegin {
            name: &item.name,
            category: item.category,
            flows: &item.flows,
            numbers: &item.numbers,
            words: &words,
        };
        match item.end_ns {
            Some(end_ns) => {
                packets.begin(track, item.begin_ns, &begin);
                let end_ns = end_ns.max(item.begin_ns);
                open.push(open.last().map_or(end_ns, |around_ns| end_ns.min(*around_ns)));
            }
            None => packets.instant(track, item.begin_ns, &begin),
        }
    }
    for end_ns in open.into_iter().rev() {
        packets.end(track, end_ns);
    }
}
