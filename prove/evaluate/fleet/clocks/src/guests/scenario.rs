//! Scenarios of the guests.

#[derive(Debug, Clone, Copy)]
pub(super) struct Scenario {
    pub(super) name: &'static str,
    pub(super) hosts: usize,
    /// Messages in a second, each way and pair.
    pub(super) per_s: f64,
    /// Range of the duration of a drawn rate, s, for each host; `None`: nobody changes its rate.
    pub(super) rates_last_s: [Option<(f64, f64)>; 3],
    /// Whether rates have nothing to do with each other. Otherwise they are bent and stepped as by temperature and
    /// load.
    pub(super) are_wild: bool,
    /// Whether the second host follows the first by NTP.
    pub(super) has_ntp: bool,
    /// Whether CLOCK_REALTIME is set to another time, twice.
    pub(super) has_steps: bool,
    /// Whether the second host is stopped for a while.
    pub(super) has_pause: bool,
}

const RATE_DURATION_S: Option<(f64, f64)> = Some((0.5, 2.0));

const PLAIN: Scenario = Scenario {
    name: "drawn rates",
    hosts: 2,
    per_s: 300.0,
    rates_last_s: [RATE_DURATION_S; 3],
    are_wild: false,
    has_ntp: false,
    has_steps: false,
    has_pause: false,
};

pub(super) const SCENARIOS: [Scenario; 6] = [
    PLAIN,
    Scenario {
        name: "rates that change 20 times a second",
        rates_last_s: [Some((0.02, 0.08)); 3],
        are_wild: true,
        ..PLAIN
    },
    Scenario {
        name: "NTP follows a drawn clock",
        rates_last_s: [RATE_DURATION_S, None, None],
        has_ntp: true,
        has_steps: true,
        ..PLAIN
    },
    Scenario { name: "time is set", has_steps: true, per_s: 100.0, ..PLAIN },
    Scenario { name: "a guest is stopped", has_pause: true, ..PLAIN },
    Scenario { name: "three hosts", hosts: 3, per_s: 100.0, ..PLAIN },
];
