//! Random variables: their distributions, from their attributes.

use std::collections::HashMap;

use rand_distr::Triangular;

use super::super::ast::{AstAttributes, AstValue};
use super::super::diagnostic::Diagnostic;
use super::super::drawn_numbers::{
    RandomSource, RandomVariable, VariableDistribution, WorkloadNumber,
};
use super::scope::VariableScope;

impl VariableScope {
    pub(super) fn random(
        &mut self,
        attributes: &AstAttributes,
    ) -> Result<WorkloadNumber, Diagnostic> {
        let least = self.integer_or(attributes, "min", 0)? as f64;
        let mean = attributes
            .get("mean")
            .map(|found| self.integer(found.at, &found.value))
            .transpose()?
            .map(|mean| mean as f64);
        let shape = self.integer_or(attributes, "gamma", 1500)?.max(1) as f64 / 1000.0;
        let kind =
            attributes.get("type").map_or(Ok("gamma".to_owned()), |found| self.text(found))?;
        let shape = match kind.as_str() {
            "uniform" => VariableDistribution::Uniform {
                low: least,
                high: (2.0 * mean.unwrap_or(least) - least).max(least),
            },
            "gamma" => VariableDistribution::Gamma {
                least,
                mean: mean.map_or(shape, |mean| (mean - least).max(0.0)),
                shape,
            },
            "tabular" => table(attributes, least, mean)?,
            other => {
                let known = ["uniform", "gamma", "tabular"];
                return Err(Diagnostic::unknown(attributes.at, "type", other, &known));
            }
        };
        self.build_drawn(attributes, shape)
    }

    fn build_drawn(
        &mut self,
        attributes: &AstAttributes,
        shape: VariableDistribution,
    ) -> Result<WorkloadNumber, Diagnostic> {
        let most =
            attributes.get("max").map(|found| self.integer(found.at, &found.value)).transpose()?;
        let source = self.source(attributes)?;
        Ok(WorkloadNumber::Drawn(Box::new(RandomVariable {
            shape,
            source,
            least: self.integer_or(attributes, "min", 0)? as f64,
            most: most.map_or(f64::MAX, |most| most as f64),
            round: self.integer_or(attributes, "round", 0)?,
        })))
    }

    /// Makes a stream of its own, if `seed` or `randsrc` ask for one.
    fn source(&mut self, attributes: &AstAttributes) -> Result<Option<usize>, Diagnostic> {
        let kind = attributes.get("randsrc").map(|found| (found.at, self.text(found)));
        let source = match (kind, self.integer_or(attributes, "seed", 0)?) {
            (Some((at, kind)), seed) => match (kind?.as_str(), seed) {
                ("urandom", _) => RandomSource::System,
                ("rand48", 0) => return Ok(None),
                ("rand48", seed) => RandomSource::Seeded(seed),
                (other, _) => {
                    return Err(Diagnostic::unknown(at, "source", other, &["rand48", "urandom"]));
                }
            },
            (None, 0) => return Ok(None),
            (None, seed) => RandomSource::Seeded(seed),
        };
        self.sources.push(source);
        Ok(Some(self.sources.len() - 1))
    }

    pub(super) fn custom(
        &mut self,
        attributes: &AstAttributes,
    ) -> Result<WorkloadNumber, Diagnostic> {
        // 1. The parameters, as `name:number;...`.
        let kind = self.required(attributes, "type")?;
        let at = attributes.get("parameters").map_or(attributes.at, |found| found.at);
        let text =
            attributes.get("parameters").map_or(Ok(String::new()), |found| self.text(found))?;
        let mut parameters = HashMap::new();
        for part in text.split(';').filter(|part| !part.is_empty()) {
            let pair = part.split_once(':');
            let pair = pair.and_then(|(name, value)| Some((name, value.parse::<f64>().ok()?)));
            let Some((name, value)) = pair.filter(|(_, value)| value.is_finite()) else {
                return Err(Diagnostic::new(
                    at,
                    format!("'{part}' is no parameter"),
                    "write name:number",
                ));
            };
            parameters.insert(name, value);
        }
        // 2. The distribution, and the names of the parameters that it has.
        let get = |name: &str, default: f64| parameters.get(name).copied().unwrap_or(default);
        let (shape, known): (_, &[&str]) = match kind.as_str() {
            "cvar-gamma" => {
                let (mean, shape) = (get("mean", 4096.0), get("gamma", 1.5).max(1e-3));
                (VariableDistribution::Gamma { least: 0.0, mean, shape }, &["mean", "gamma"])
            }
            "cvar-uniform" => {
                let (low, high) = (get("lower", 0.0), get("upper", 1.0));
                (VariableDistribution::Uniform { low, high }, &["lower", "upper"])
            }
            "cvar-normal" => {
                let (mean, sigma) = (get("mean", 0.0), get("sigma", 1.0));
                (VariableDistribution::Normal { mean, sigma }, &["mean", "sigma"])
            }
            "cvar-exponential" => {
                (VariableDistribution::Exponential { mean: get("mean", 1.0) }, &["mean"])
            }
            "cvar-erlang" => {
                let (shape, rate) = (get("shape", 1.0).max(1.0), get("rate", 1.0));
                let mean = shape / rate;
                (VariableDistribution::Gamma { least: 0.0, mean, shape }, &["shape", "rate"])
            }
            "cvar-lognormal" => {
                let (shape, scale) = (get("shape", 1.0), get("scale", 1.0));
                (VariableDistribution::LogNormal { shape, scale }, &["shape", "scale"])
            }
            "cvar-weibull" => {
                let (shape, scale) = (get("shape", 1.0), get("scale", 1.0));
                (VariableDistribution::Weibull { shape, scale }, &["shape", "scale"])
            }
            "cvar-triangular" => {
                let (low, high, mode) = (get("lower", 0.0), get("upper", 1.0), get("mode", 0.5));
                let found = Triangular::new(low, high, mode).map_err(|_| {
                    let what = format!("no triangle has lower:{low};upper:{high};mode:{mode}");
                    Diagnostic::new(at, what, "write lower <= mode <= upper")
                })?;
                (VariableDistribution::Triangular(found), &["lower", "upper", "mode"])
            }
            other => {
                let known = [
                    "cvar-gamma",
                    "cvar-uniform",
                    "cvar-normal",
                    "cvar-exponential",
                    "cvar-erlang",
                    "cvar-lognormal",
                    "cvar-weibull",
                    "cvar-triangular",
                ];
                return Err(Diagnostic::unknown(attributes.at, "type", other, &known));
            }
        };
        if let Some(name) = parameters.keys().find(|name| !known.contains(name)) {
            return Err(Diagnostic::unknown(at, "parameter", name, known));
        }
        self.build_drawn(attributes, shape)
    }
}

/// Builds a table, scaled so that its lowest value becomes `least` and its mean `mean`.
fn table(
    attributes: &AstAttributes,
    least: f64,
    mean: Option<f64>,
) -> Result<VariableDistribution, Diagnostic> {
    let bad = |what: &str| {
        Diagnostic::new(attributes.at, what, "write randtable={{percent,low,high},...}")
    };
    let Some(AstValue::Table(rows)) = attributes.get("randtable").map(|found| &found.value) else {
        return Err(bad("a tabular variable without its table"));
    };
    let percent: u64 = rows.iter().fold(0, |sum: u64, row| sum.saturating_add(row[0]));
    if percent != 100 || rows.iter().any(|row| row[1] > row[2]) {
        return Err(bad(
            "this table's percents are not 100 together, or a row's low is above its high",
        ));
    }
    let part = |row: &[u64; 3]| row[0] as f64 / 100.0 * (row[1] as f64 + row[2] as f64) / 2.0;
    let own: f64 = rows.iter().map(part).sum();
    let shift = rows.iter().map(|row| row[1]).min().unwrap_or(0) as f64;
    let scale = match mean {
        Some(mean) if own > shift => (mean - least).max(0.0) / (own - shift),
        _ => 1.0,
    };
    Ok(VariableDistribution::Table { rows: rows.clone(), shift, scale, least, own })
}
