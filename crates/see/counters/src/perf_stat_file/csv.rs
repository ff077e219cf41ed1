//! A line of `perf stat -x,`: `[TIME,][KEY,[COUNT,]]VALUE,UNIT,EVENT,[CGROUP,|VARIANCE,]RUNNING_NS,PERCENT,...`
//! (`man perf-stat`, CSV FORMAT).

use super::perf_row::{PerfRow, RowCount, nanoseconds, reading};

/// Maximum number of fields before the value: the time, the key of an aggregate, and its size.
const MAX_FIELDS_BEFORE: usize = 3;
/// Maximum number of fields between the event and its time: a cgroup or a variance.
const MAX_FIELDS_BETWEEN: usize = 2;

/// Returns the separator that was given to `-x`, by the first line.
pub(super) fn separator(line: &str) -> char {
    let count = |wanted: char| line.chars().filter(|&c| c == wanted).count();
    let all = [',', ';', '|', '\t', '/'];
    all.into_iter().max_by_key(|&c| (count(c), c == ',')).unwrap_or(',')
}

/// Error for a file whose fields cannot be told apart.
pub(super) const DECIMAL_COMMAS: &str = "its numbers have decimal commas, and commas are between its fields as well: write it anew by `LC_ALL=C perf stat`";

/// Parses a line; `None` for lines of metrics and sums.
pub(super) fn row(line: &str, separator: char) -> Result<Option<PerfRow>, String> {
    let mut fields = fields(line, separator);
    if separator != ',' {
        fields.iter_mut().for_each(with_a_point);
    }
    if fields[0] == "summary" {
        return Ok(None);
    }
    let is_value = |field: &str| field.starts_with('<') || field.parse::<f64>().is_ok();
    let is_word = |field: &str| !is_value(field);
    let value_at = (0..=MAX_FIELDS_BEFORE.min(fields.len())).find(|&at| {
        let [Some(value), Some(unit), Some(event)] = [at, at + 1, at + 2].map(|at| fields.get(at))
        else {
            return false;
        };
        is_value(value) && is_word(unit) && is_word(event) && !event.is_empty()
    });
    let Some(value_at) = value_at else {
        // A line that has only a metric.
        return if is_metric(&fields) {
            Ok(None)
        } else {
            Err("it has no value, unit and event".to_owned())
        };
    };
    let end_ns = match fields[0].parse() {
        Ok(seconds) if value_at > 0 => {
            let time = nanoseconds(seconds);
            Some(time.ok_or_else(|| format!("'{}' is no time", fields[0]))?)
        }
        _ => None,
    };
    Ok(Some(PerfRow {
        end_ns,
        event: fields[value_at + 2].clone(),
        unit: fields[value_at + 1].clone(),
        counted: counted(&fields[value_at], &fields[value_at + 3..])?,
    }))
}

/// Returns whether a line ends with a metric, the words after its value, and has no event before it.
fn is_metric(fields: &[String]) -> bool {
    let [before @ .., value, name] = fields else {
        return false;
    };
    let is_number = |field: &&String| field.is_empty() || field.parse::<f64>().is_ok();
    // The key of an aggregate.
    let words = before.iter().filter(|field| !is_number(field)).count();
    before.len() > 3 && words <= 1 && is_number(&value) && !is_number(&name)
}

/// Replaces a number's decimal comma by the C locale's point.
fn with_a_point(field: &mut String) {
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if let Some((whole, part)) = field.trim_end_matches('%').split_once(',')
        && is_digits(whole.trim_start_matches('-'))
        && is_digits(part)
    {
        *field = field.replace(',', ".");
    }
}

fn counted(value: &str, rest: &[String]) -> Result<RowCount, String> {
    if value == "<not supported>" {
        return Ok(RowCount::NotSupported);
    }
    let times = (0..=MAX_FIELDS_BETWEEN).find_map(|at| {
        let running_ns: u64 = rest.get(at)?.parse().ok()?;
        let text = rest.get(at + 1)?;
        let percent: f64 = text.parse().ok()?;
        let is_share = (0.0..=100.5).contains(&percent);
        is_share.then_some((running_ns, percent, text.contains('.')))
    });
    let Some((running_ns, percent, has_point)) = times else {
        return Err("it does not say for how long the event had a counter".to_owned());
    };
    // perf prints two decimals.
    if !has_point {
        return Err(DECIMAL_COMMAS.to_owned());
    }
    if value == "<not counted>" {
        return Ok(reading(0.0, 0, percent));
    }
    let number = value
        .parse()
        .ok()
        .filter(|number: &f64| number.is_finite() && *number >= 0.0)
        .ok_or_else(|| format!("'{value}' is no count"))?;
    Ok(reading(number, running_ns, percent))
}

/// Splits a line into fields. The terms of a PMU's event also have commas, but between slashes.
fn fields(line: &str, separator: char) -> Vec<String> {
    let mut fields: Vec<String> = Vec::new();
    let mut is_open = false;
    let mut rest = line.split(separator).peekable();
    while let Some(field) = rest.next() {
        match fields.last_mut() {
            Some(last) if is_open => {
                last.push(separator);
                last.push_str(field);
            }
            _ => fields.push(field.trim().to_owned()),
        }
        let slashes = field.matches('/').count();
        // A unit such as `K/sec` has a slash and no terms, a cgroup begins with one.
        let mut terms = std::iter::once(field).chain(rest.peek().copied());
        let opens = slashes == 1 && !field.starts_with('/') && terms.any(|term| term.contains('='));
        is_open = if is_open { slashes % 2 == 0 } else { opens };
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counter_recording::CounterReading;

    fn read(line: &str) -> (Option<u64>, String, RowCount) {
        let row = row(line, separator(line)).expect(line).expect(line);
        (row.end_ns, row.event, row.counted)
    }

    fn counted_as(value: f64, enabled_ns: u64, running_ns: u64) -> RowCount {
        RowCount::Reading(CounterReading { value, enabled_ns, running_ns })
    }

    #[test]
    fn the_layouts_that_perf_has() {
        let full = counted_as(12.0, 1000, 1000);
        for (line, end_ns, event, counted) in [
            ("12,,cycles,1000,100.00,,", None, "cycles", full),
            ("1.5,12,,cycles,1000,100.00,0.5,GHz", Some(1_500_000_000), "cycles", full),
            ("1.5,CPU0,12,,cycles:u,1000,100.00,,", Some(1_500_000_000), "cycles:u", full),
            ("1.5,S0-D0-C1,2,12,,cs,1000,100.00,1.0,K/sec", Some(1_500_000_000), "cs", full),
            (
                "1.5,comm-12,12,msec,task-clock,1000,100.00,,",
                Some(1_500_000_000),
                "task-clock",
                full,
            ),
            ("1.5;12;msec;task-clock;/a=b;1000;100.00;;", Some(1_500_000_000), "task-clock", full),
            ("12,msec,task-clock,5.95%,1000,100.00,0.007,CPUs utilized", None, "task-clock", full),
            (
                "1.5,12,,cpu/event=0x3c,umask=0x0,cmask=0x1/u,1000,100.00,,",
                Some(1_500_000_000),
                "cpu/event=0x3c,umask=0x0,cmask=0x1/u",
                full,
            ),
            (
                "1,500;12,000;msec;task-clock;1000;100,00;0,007;CPUs utilized",
                Some(1_500_000_000),
                "task-clock",
                full,
            ),
            ("12/msec/task-clock/1000/100,00/0/CPUs utilized", None, "task-clock", full),
            (
                "1.5,70,,cycles,58000,0.00,,",
                Some(1_500_000_000),
                "cycles",
                RowCount::Scarcely { value: 70.0, running_ns: 58_000 },
            ),
            (
                "1.5,70,,cycles,1000,14.29,,",
                Some(1_500_000_000),
                "cycles",
                counted_as(10.003, 6998, 1000),
            ),
            (
                "1.5,<not counted>,,cycles,0,100.00,,",
                Some(1_500_000_000),
                "cycles",
                counted_as(0.0, 0, 0),
            ),
            ("1.5,<not counted>,,cycles,0,0.00,,", Some(1_500_000_000), "cycles", RowCount::Never),
            (
                "1.5,<not supported>,,cycles,0,100.00,,",
                Some(1_500_000_000),
                "cycles",
                RowCount::NotSupported,
            ),
        ] {
            assert_eq!(read(line), (end_ns, event.to_owned(), counted), "{line}");
        }
    }

    #[test]
    fn metrics_and_sums_are_passed_over() {
        for line in [
            ",10188319019,63.00,,,41.3,%  tma_frontend_bound",
            "1.0,CPU0,,,,,,51.0,%  tma_frontend_bound",
            "summary,S0-D0-C0,1,5569,,cs,152097730,100.00,36.635,K/sec",
        ] {
            assert_eq!(row(line, ','), Ok(None), "{line}");
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (line, what) in [
            ("nonsense", "it has no value, unit and event"),
            ("1.5,12,,cycles", "it does not say for how long"),
            ("1.5,nan,,cycles,1000,100.00,,", "'nan' is no count"),
            ("-1.5,12,,cycles,1000,100.00,,", "'-1.5' is no time"),
            ("1,209,74,msec,task-clock,209741759,100,00,2,CPUs utilized", "LC_ALL=C"),
            ("6376827291,,cycles,mesos_test,2011741096,100,00,3,GHz", "LC_ALL=C"),
            ("0,100,<not counted>,,cycles,0,0,00,,", "LC_ALL=C"),
            ("1.5,12,,cycles,1000,900.00,,", "it does not say for how long"),
        ] {
            let error = row(line, ',').expect_err(line);
            assert!(error.contains(what), "{line}: {error}");
        }
    }
}
