//! What `luc run` tells the preload library, and other `luc run`s below: names of environment variables. And the
//! library's own name.

/// The preload library's file name.
pub const LIBRARY: &str = "libluc_gate_preload.so";
/// Path of the rounds that runs of this user and policy share.
pub const ROUNDS: &str = "LUC_GATE_ROUNDS";
/// The policy, as text.
pub const POLICY: &str = "LUC_GATE_POLICY";
/// Path of the run's figures.
pub const FIGURES: &str = "LUC_GATE_RUN";
/// The longest that a caller is held, in nanoseconds.
pub const LONGEST_WAIT_NS: &str = "LUC_GATE_LONGEST_WAIT_NS";
/// Filters of system calls (seccomp) that `luc run` itself is under.
pub const FILTERS: &str = "LUC_GATE_FILTERS";
/// Devices on which calls are only counted, as `7:0,8:16`.
pub const COUNT_ONLY: &str = "LUC_GATE_COUNT_ONLY";

/// Descriptor of memory for descendants of other users and roots.
pub const GUESTS: &str = "LUC_GATE_GUESTS";

/// Name of the systemd unit that a program belongs to, where no `luc run` is above it: by it the library finds the
/// shared files of that unit.
pub const UNIT: &str = "LUC_GATE_UNIT";

/// The number of the process that systemd started, as systemd 248 and later tell it.
pub const STARTED: &str = "SYSTEMD_EXEC_PID";

/// Set for programs whose calls a supervisor is notified of.
pub const NOTIFIED: &str = "LUC_GATE_NOTIFIED";

/// All that the library reads. Programs that are notified are given none of it.
pub const OF_LIBRARY: [&str; 8] =
    [ROUNDS, POLICY, FIGURES, LONGEST_WAIT_NS, FILTERS, COUNT_ONLY, GUESTS, UNIT];

/// Devices as text for [`COUNT_ONLY`].
#[cfg(feature = "text")]
pub fn devices_to_text(devices: &[(u32, u32)]) -> String {
    let texts: Vec<_> = devices.iter().map(|(major, minor)| format!("{major}:{minor}")).collect();
    texts.join(",")
}

/// Reads [`COUNT_ONLY`]; what is no device is passed over.
pub fn devices_from_text(text: &str) -> impl Iterator<Item = (u32, u32)> {
    text.split(',').filter_map(|device| {
        let (major, minor) = device.split_once(':')?;
        Some((major.parse().ok()?, minor.parse().ok()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_survive_the_environment() {
        let devices = [(7, 0), (259, 4_294_967_295)];
        let text = devices_to_text(&devices);
        assert!(devices_from_text(&text).eq(devices));
        assert!(devices_from_text("7:0,x,1:,8:16").eq([(7, 0), (8, 16)]));
        assert_eq!(devices_from_text("").count(), 0);
    }
}
