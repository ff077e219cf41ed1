//! Reads a Perfetto trace, and checks what Perfetto's trace processor relies on.

use std::collections::{BTreeMap, HashMap, HashSet};

#[derive(Debug)]
enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl<'a> Value<'a> {
    fn number(&self) -> u64 {
        match self {
            Self::Number(number) => *number,
            Self::Bytes(_) => panic!("a number was expected: {self:?}"),
        }
    }

    fn fields(&self) -> Vec<(u64, Value<'a>)> {
        match self {
            Self::Bytes(bytes) => fields(bytes),
            Self::Number(_) => panic!("a message was expected: {self:?}"),
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Bytes(bytes) => String::from_utf8(bytes.to_vec()).expect("UTF-8"),
            Self::Number(_) => panic!("text was expected: {self:?}"),
        }
    }
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..70).step_by(7) {
        let (&byte, rest) = bytes.split_first().expect("a varint ends");
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return value;
        }
    }
    panic!("a varint has ten bytes at most");
}

fn fields(mut bytes: &[u8]) -> Vec<(u64, Value<'_>)> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let value = match key & 7 {
            0 => Value::Number(varint(&mut bytes)),
            1 => {
                let (fixed, rest) = bytes.split_at(8);
                bytes = rest;
                Value::Number(u64::from_le_bytes(fixed.try_into().expect("8 bytes")))
            }
            2 => {
                let length = varint(&mut bytes) as usize;
                let (inner, rest) = bytes.split_at(length);
                bytes = rest;
                Value::Bytes(inner)
            }
            wire => panic!("wire type {wire}"),
        };
        fields.push((key >> 3, value));
    }
    fields
}

fn get<'a, 'b>(fields: &'b [(u64, Value<'a>)], number: u64) -> Option<&'b Value<'a>> {
    fields.iter().find(|field| field.0 == number).map(|field| &field.1)
}

/// Contents of a trace.
#[derive(Debug, Default)]
pub struct Checked {
    /// Slices: their tracks, names, depths, begins and ends.
    pub slices: Vec<(u64, String, usize, u64, u64)>,
    pub instants: Vec<Instant>,
    /// Tracks of each flow, in the order of the file.
    pub flows: HashMap<u64, Vec<u64>>,
    pub counters: Vec<(u64, u64)>,
    pub tracks: HashMap<u64, String>,
    pub machine_of: HashMap<u64, u64>,
    pub parents: HashMap<u64, u64>,
    pub machines: BTreeMap<u64, String>,
}

#[derive(Debug, Default)]
pub struct Instant {
    pub track: u64,
    pub name: String,
    pub at_ns: u64,
    /// Flows that the moment is part of.
    pub flows: Vec<u64>,
    pub numbers: HashMap<String, u64>,
}

/// # Panics
/// If the trace breaks a rule of the trace processor.
pub fn check(bytes: &[u8]) -> Checked {
    let mut checked = Checked::default();
    let mut last: HashMap<u64, u64> = HashMap::new();
    let mut open: HashMap<u64, Vec<(String, u64)>> = HashMap::new();
    let mut begun: HashSet<u64> = HashSet::new();
    for (index, (field, packet)) in fields(bytes).iter().enumerate() {
        assert_eq!(*field, 1);
        let packet = packet.fields();
        let machine = get(&packet, 98).map_or(0, Value::number);
        let sequence = get(&packet, 10).expect("a sequence").number();
        assert_eq!(sequence, machine + 1, "each machine has its own");
        if begun.insert(machine) {
            assert_eq!(get(&packet, 13).expect("flags").number(), 1);
        }
        if index == 0 {
            assert_eq!(machine, 0, "the first machine has the clocks");
            let clocks = get(&packet, 6).expect("clocks").fields();
            assert_eq!(clocks.len(), 3);
            continue;
        }
        if let Some(system) = get(&packet, 45) {
            let name = get(&system.fields(), 17).expect("a name").text();
            assert!(checked.machines.insert(machine, name).is_none());
            continue;
        }
        if let Some(track) = get(&packet, 60) {
            checked.describe(machine, &track.fields());
            continue;
        }
        let at_ns = get(&packet, 8).expect("a time").number();
        let event = get(&packet, 11).expect("an event").fields();
        let track = get(&event, 11).expect("a track").number();
        assert!(checked.tracks.contains_key(&track), "described before: {track:x}");
        assert_eq!(checked.machine_of[&track], machine, "{track:x}");
        let last_ns = last.entry(track).or_default();
        assert!(*last_ns <= at_ns, "time goes back on {track:x}");
        *last_ns = at_ns;
        let flows: Vec<u64> =
            event.iter().filter(|field| field.0 == 47).map(|(_, flow)| flow.number()).collect();
        let name = || get(&event, 23).expect("a name").text();
        let open = open.entry(track).or_default();
        match get(&event, 9).expect("a type").number() {
            1 => open.push((name(), at_ns)),
            2 => {
                let (name, begin_ns) = open.pop().expect("an end has a beginning");
                let slice = (track, name, open.len(), begin_ns, at_ns);
                checked.slices.push(slice);
            }
            3 => checked.instants.push(Instant {
                track,
                name: name(),
                at_ns,
                flows: flows.clone(),
                numbers: numbers(&event),
            }),
            4 => checked.counters.push((track, get(&event, 30).expect("a number").number())),
            kind => panic!("type {kind}"),
        }
        for flow in flows {
            checked.flows.entry(flow).or_default().push(track);
        }
    }
    assert!(open.values().all(Vec::is_empty), "a slice never ends");
    checked.check_links();
    checked
}

fn numbers(event: &[(u64, Value<'_>)]) -> HashMap<String, u64> {
    let annotations = event.iter().filter(|field| field.0 == 4);
    let number = |(_, annotation): &(u64, Value<'_>)| {
        let annotation = annotation.fields();
        let name = get(&annotation, 10).expect("a name").text();
        Some((name, get(&annotation, 3)?.number()))
    };
    annotations.filter_map(number).collect()
}

impl Checked {
    fn describe(&mut self, machine: u64, track: &[(u64, Value<'_>)]) {
        let uuid = get(track, 1).expect("an id").number();
        let name = match (get(track, 2), get(track, 3), get(track, 4)) {
            (Some(name), _, _) => name.text(),
            (_, Some(process), _) => get(&process.fields(), 6).expect("a name").text(),
            (_, _, Some(thread)) => get(&thread.fields(), 5).expect("a name").text(),
            _ => panic!("a track without a name: {track:?}"),
        };
        if let Some(parent) = get(track, 5) {
            self.parents.insert(uuid, parent.number());
        }
        self.machine_of.insert(uuid, machine);
        self.tracks.insert(uuid, name);
    }

    fn check_links(&self) {
        for (flow, tracks) in &self.flows {
            assert_eq!(tracks.len(), 2, "flow {flow} has two ends");
            let machine = |track: &u64| self.machine_of[track];
            assert_eq!(
                machine(&tracks[0]),
                machine(&tracks[1]),
                "flow {flow}: no flow is between machines"
            );
        }
        for parent in self.parents.values() {
            assert!(self.tracks.contains_key(parent), "{parent:x}");
        }
    }

    /// Returns the name of a track, with its parents' names before it.
    #[must_use]
    pub fn path(&self, track: u64) -> String {
        let name = &self.tracks[&track];
        match self.parents.get(&track) {
            Some(&parent) => format!("{}/{name}", self.path(parent)),
            None => name.clone(),
        }
    }
}
