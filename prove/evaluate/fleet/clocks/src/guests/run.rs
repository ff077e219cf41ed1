//! A run, and its results.

use serde::Serialize;

use super::judge::{Events, Judged};

#[derive(Debug, Serialize)]
pub(super) struct GuestsRun {
    pub(super) scenario: &'static str,
    pub(super) seed: u64,
    /// Reason why it was not made.
    pub(super) unable: Option<String>,
    pub(super) kernel: String,
    pub(super) seconds: f64,
    /// Number of attempts in vain, in which the counters of two guests did not differ by a constant.
    pub(super) in_vain: u32,
    pub(super) judged: Option<Judged>,
}

impl GuestsRun {
    /// Describes the run in a few words.
    pub(super) fn brief(&self) -> String {
        let Some(judged) = &self.judged else {
            return format!("not made: {}", self.unable.as_deref().unwrap_or("no reason"));
        };
        let sum = |of: fn(&Events) -> usize| -> usize {
            judged.ways.iter().map(|way| of(&way.events)).sum()
        };
        let maps = judged.ways.iter().map(|way| way.map);
        let (off, worst) = maps.fold((0, 0.0), |(off, worst), map| {
            (off + map.of - map.within, f64::max(worst, map.worst_ns))
        });
        format!(
            "{} of {} events within, {} in doubt, {} wrong; maps off {off} times, by {worst:.0} ns at most",
            sum(|events| events.right),
            sum(|events| events.all),
            sum(|events| events.in_doubt),
            sum(|events| events.wrong)
        )
    }
}
