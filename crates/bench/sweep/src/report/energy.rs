//! Energy of the repeats, in figures and words.

use std::fmt;

use luc_power::energy::EnergyProvenance;
use luc_stats::{MedianInterval, StoppingRule};
use serde::Serialize;

use super::super::results_journal::RepeatRecord;
use super::super::sweep_points::SweepPoint;
use luc_units::number_formats::FourDigits;

/// Energy of a point's repeats, with 95 % intervals; `None` of fewer than 6.
#[derive(Debug, Serialize)]
pub struct PointEnergy {
    pub count: usize,
    /// Joules of a repeat.
    pub gross_joules: Option<MedianInterval>,
    /// Joules above the energy of the idle machine.
    pub net_joules: Option<MedianInterval>,
    /// Unit of the figures per joule, as `files/J`; `None` if the figure is no rate.
    pub unit_per_joule: Option<String>,
    /// Operations per joule, with the energy of the idle machine.
    pub per_gross_joule: Option<MedianInterval>,
    /// The same of joules above idle.
    pub per_net_joule: Option<MedianInterval>,
}

pub(super) fn of_point(
    point: &SweepPoint,
    records: &[RepeatRecord],
    key: &str,
    goal: &StoppingRule,
) -> Option<PointEnergy> {
    let values = |of: fn(&RepeatRecord) -> Option<f64>| -> Vec<f64> {
        let repeats = records.iter().filter(|record| record.key == key);
        repeats.filter_map(of).collect()
    };
    let interval = |of| goal.interval(&values(of));
    let gross = |record: &RepeatRecord| record.energy.as_ref()?.gross_joules;
    let count = values(gross).len();
    (count > 0).then(|| PointEnergy {
        count,
        gross_joules: interval(gross),
        net_joules: interval(|record| record.energy.as_ref()?.net_joules),
        unit_per_joule: point.unit_per_joule(),
        per_gross_joule: interval(|record| record.per_gross_joule),
        per_net_joule: interval(|record| record.per_net_joule),
    })
}

/// Writes the source and scope of the energy, or why there is none.
pub(super) fn write_about(
    f: &mut fmt::Formatter<'_>,
    about: &EnergyProvenance,
    repeats: &[RepeatRecord],
) -> fmt::Result {
    let EnergyProvenance { source, scope, idle_watts, unavailable } = about;
    if let (Some(source), Some(scope)) = (source, scope) {
        let idle = match (idle_watts, unavailable) {
            (Some(watts), _) => {
                format!("net of {} W, measured idle before the sweep", FourDigits(*watts))
            }
            (None, Some(reason)) => format!("no net: {reason}"),
            (None, None) => "no net: idle power was not measured".to_owned(),
        };
        writeln!(f, "energy by {source}: {scope}; {idle}")?;
        let mut missing =
            repeats.iter().filter_map(|record| record.energy.as_ref()?.missing.as_deref());
        let (count, last) = (missing.clone().count(), missing.next_back());
        if let Some(reason) = last {
            writeln!(f, "{count} repeats have no energy: {reason}")?;
        }
    } else if let Some(reason) = unavailable {
        writeln!(f, "energy unavailable: {reason}")?;
    }
    Ok(())
}

/// Energy of a point, in words.
pub(super) struct EnergyLine<'a>(pub(super) Option<&'a PointEnergy>);

impl fmt::Display for EnergyLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(energy) = self.0 else {
            return f.write_str("-");
        };
        let show = |interval: &Option<MedianInterval>, unit: &str| match interval {
            Some(MedianInterval { median, low, high }) => format!(
                "{} {unit} ({} to {})",
                FourDigits(*median),
                FourDigits(*low),
                FourDigits(*high)
            ),
            None => "-".to_owned(),
        };
        let [gross, net] =
            [&energy.gross_joules, &energy.net_joules].map(|interval| show(interval, "J"));
        write!(f, "gross {gross}, net {net}")?;
        if let Some(unit) = &energy.unit_per_joule {
            let [gross, net] = [&energy.per_gross_joule, &energy.per_net_joule]
                .map(|interval| show(interval, unit));
            write!(f, "; per joule: gross {gross}, net {net}")?;
        }
        write!(f, "; {} repeats", energy.count)
    }
}
