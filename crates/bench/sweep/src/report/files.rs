//! Files `report.json` and `results.csv`.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use luc_units::OnPath as _;

use super::SweepReport;
use crate::error::SweepError;

impl SweepReport {
    /// Writes `report.json` and `results.csv` to the folder `out`, each whole or not at all.
    pub(crate) fn export(&self, out: &Path) -> Result<(), SweepError> {
        let json = format!("{:#}\n", serde_json::json!(self));
        for (name, text) in [("report.json", json), ("results.csv", self.csv())] {
            let (path, new) = (out.join(name), out.join(format!("{name}.new")));
            fs::write(&new, text).map_err(SweepError::io("write", &new))?;
            fs::rename(&new, &path).map_err(SweepError::io("write", &path))?;
        }
        Ok(())
    }

    /// Writes a line for each repeat; `-` where energy was not measured. No value holds a comma or a quote but the
    /// axes' own, which are columns.
    fn csv(&self) -> String {
        let mut text = format!(
            "{},round,value,unit,stolen_share,io_pressure_us,gross_joules,net_joules,per_gross_joule,per_net_joule\n",
            self.axes.iter().map(|axis| axis.name()).collect::<Vec<_>>().join(",")
        );
        let units: HashMap<&str, &str> =
            self.points.iter().map(|point| (&*point.key, &*point.unit)).collect();
        for record in &self.repeats {
            let about = &record.environment;
            let unit = units.get(&*record.key).copied().unwrap_or_default().replace('"', "\"\"");
            let pressure = about.io_pressure_us.map(|us| us.to_string()).unwrap_or_default();
            let energy = record.energy.as_ref();
            let joules = [
                energy.and_then(|energy| energy.gross_joules),
                energy.and_then(|energy| energy.net_joules),
                record.per_gross_joule,
                record.per_net_joule,
            ]
            .map(|value| value.map_or("-".to_owned(), |value| value.to_string()));
            text += &format!(
                "{},{},{},\"{unit}\",{},{pressure},{}\n",
                record.key,
                record.round,
                record.value,
                about.stolen_share,
                joules.join(",")
            );
        }
        text
    }
}
