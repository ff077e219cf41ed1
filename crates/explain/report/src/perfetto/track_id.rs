/// Track ids: what it is in the lowest bits, whose it is above, so that most take few bytes.
#[derive(Clone, Copy, Debug)]
pub(super) enum TrackId {
    Process = 1,
    Thread = 2,
    OffProcessor = 3,
    Journal = 4,
    FastCommits = 5,
    Served = 6,
    Data = 7,
    Work = 8,
}

impl TrackId {
    pub(super) fn uuid(self, whose: u32) -> u64 {
        u64::from(whose) << 4 | self as u64
    }
}
