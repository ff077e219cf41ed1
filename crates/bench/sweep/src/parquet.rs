//! The repeats as Parquet: `results.parquet` has a row for each, `counters.parquet` a row for each of its counters.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

use luc_units::OnPath as _;
use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::Result;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;

use super::error::SweepError;
use super::report::{PointReport, SweepReport};
use super::results_journal::RepeatRecord;

/// The version of both tables' columns.
const SCHEMA_VERSION: &str = "1";

enum Values {
    Text(Vec<Option<String>>),
    Whole(Vec<Option<i64>>),
    Real(Vec<Option<f64>>),
    Flag(Vec<Option<bool>>),
}

struct Column {
    name: String,
    values: Values,
}

impl Column {
    fn new(name: &str, values: Values) -> Self {
        Self { name: name.to_owned(), values }
    }

    /// Numbers where all are whole numbers, as of threads; else text.
    fn of_axis(name: &str, values: &[&str]) -> Self {
        let numbers: Option<Vec<Option<i64>>> =
            values.iter().map(|value| value.parse().ok().map(Some)).collect();
        let text = || values.iter().map(|value| Some((*value).to_owned()));
        let values = numbers.map_or_else(|| Values::Text(text().collect()), Values::Whole);
        Self::new(name, values)
    }
}

/// Writes both files to the folder `out`, each whole or not at all.
pub(super) fn export(report: &SweepReport, out: &Path) -> Result<(), SweepError> {
    let plan = serde_json::json!(report.plan).to_string();
    for (name, columns) in [("results", results(report)), ("counters", counters(report))] {
        let path = out.join(format!("{name}.parquet"));
        let new = out.join(format!("{name}.parquet.new"));
        let file = File::create(&new).map_err(SweepError::io("write", &new))?;
        write(file, name, &columns, &plan)
            .map_err(io::Error::other)
            .map_err(SweepError::io("write", &new))?;
        std::fs::rename(&new, &path).map_err(SweepError::io("write", &path))?;
    }
    Ok(())
}

fn results(report: &SweepReport) -> Vec<Column> {
    let points: HashMap<&str, &PointReport> =
        report.points.iter().map(|point| (&*point.key, point)).collect();
    // Repeats of points that the plan does not have are left out.
    let rows: Vec<(&RepeatRecord, &PointReport)> = report
        .repeats
        .iter()
        .filter_map(|record| Some((record, *points.get(&*record.key)?)))
        .collect();
    let text = |name: &str, of: fn(&RepeatRecord) -> Option<&str>| {
        let values = rows.iter().map(|(row, _)| of(row).map(str::to_owned));
        Column::new(name, Values::Text(values.collect()))
    };
    let whole = |name: &str, of: fn(&RepeatRecord) -> Option<u64>| {
        let values = rows.iter().map(|(row, _)| of(row).and_then(|value| value.try_into().ok()));
        Column::new(name, Values::Whole(values.collect()))
    };
    let real = |name: &str, of: fn(&RepeatRecord) -> Option<f64>| {
        let values = rows.iter().map(|(row, _)| of(row));
        Column::new(name, Values::Real(values.collect()))
    };
    let mut columns = vec![text("key", |row| Some(&row.key))];
    let axes = report.points.first().map(|point| point.axes.as_slice());
    for (at, (axis, _)) in axes.unwrap_or_default().iter().enumerate() {
        let value = |point: &'_ PointReport| point.axes.get(at).map(|(_, value)| value.clone());
        let values: Vec<String> =
            rows.iter().map(|(_, point)| value(point).unwrap_or_default()).collect();
        let values: Vec<&str> = values.iter().map(String::as_str).collect();
        columns.push(Column::of_axis(axis.name(), &values));
    }
    let units = rows.iter().map(|(_, point)| Some(point.unit.clone()));
    let dropped = rows.iter().map(|(row, _)| Some(row.environment.caches_dropped));
    columns.extend([
        whole("round", |row| Some(row.round as u64)),
        real("value", |row| Some(row.value)),
        Column::new("unit", Values::Text(units.collect())),
        whole("warm_up", |row| Some(row.warm_up? as u64)),
        whole("started_unix_s", |row| Some(row.environment.started_unix_s)),
        text("kernel", |row| Some(&row.environment.kernel)),
        text("mkfs", |row| row.environment.mkfs.as_deref()),
        text("mount", |row| row.environment.mount.as_deref()),
        Column::new("caches_dropped", Values::Flag(dropped.collect())),
        whole("io_pressure_us", |row| row.environment.io_pressure_us),
        whole("cpu_pressure_us", |row| row.environment.cpu_pressure_us),
        real("stolen_share", |row| Some(row.environment.stolen_share)),
        real("load", |row| Some(row.environment.load)),
        text("governor", |row| row.environment.governor.as_deref()),
        whole("lowest_frequency_khz", |row| Some(row.environment.frequency_khz?[0])),
        whole("highest_frequency_khz", |row| Some(row.environment.frequency_khz?[1])),
        real("gross_joules", |row| row.energy.as_ref()?.gross_joules),
        real("net_joules", |row| row.energy.as_ref()?.net_joules),
        real("per_gross_joule", |row| row.per_gross_joule),
        real("per_net_joule", |row| row.per_net_joule),
    ]);
    columns
}

fn counters(report: &SweepReport) -> Vec<Column> {
    let rows = || {
        report.repeats.iter().flat_map(|record| {
            let counters = record.counters.iter();
            counters.map(move |(name, value)| (record, name, *value))
        })
    };
    vec![
        Column::new("key", Values::Text(rows().map(|(row, ..)| Some(row.key.clone())).collect())),
        Column::new(
            "round",
            Values::Whole(rows().map(|(row, ..)| row.round.try_into().ok()).collect()),
        ),
        Column::new(
            "counter",
            Values::Text(rows().map(|(_, name, _)| Some(name.clone())).collect()),
        ),
        Column::new("value", Values::Real(rows().map(|(.., value)| Some(value)).collect())),
    ]
}

/// Writes one row group, since a sweep has thousands of rows and not millions.
fn write(file: File, table: &str, columns: &[Column], plan: &str) -> Result<()> {
    let fields = columns.iter().map(field).collect::<Result<_>>()?;
    let schema = Type::group_type_builder(table).with_fields(fields).build()?;
    let about = [("luc.schema", SCHEMA_VERSION), ("luc.table", table), ("luc.plan", plan)];
    let about = about.map(|(key, value)| KeyValue::new(key.to_owned(), value.to_owned()));
    let properties = WriterProperties::builder()
        .set_created_by(concat!("luc ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_key_value_metadata(Some(about.to_vec()))
        .build();
    let mut writer = SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties))?;
    let mut group = writer.next_row_group()?;
    for column in columns {
        let Some(mut place) = group.next_column()? else {
            break;
        };
        match &column.values {
            Values::Text(values) => {
                put::<ByteArrayType, _>(&mut place, values, |text| text.as_str().into())
            }
            Values::Whole(values) => put::<Int64Type, _>(&mut place, values, |value| *value),
            Values::Real(values) => put::<DoubleType, _>(&mut place, values, |value| *value),
            Values::Flag(values) => put::<BoolType, _>(&mut place, values, |value| *value),
        }?;
        place.close()?;
    }
    group.close()?;
    writer.close()?;
    Ok(())
}

/// Every column may have holes, so that a column is the same in every sweep.
fn field(column: &Column) -> Result<Arc<Type>> {
    let (physical, logical) = match column.values {
        Values::Text(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        Values::Whole(_) => (Physical::INT64, None),
        Values::Real(_) => (Physical::DOUBLE, None),
        Values::Flag(_) => (Physical::BOOLEAN, None),
    };
    let field = Type::primitive_type_builder(&column.name, physical)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(logical)
        .build()?;
    Ok(Arc::new(field))
}

fn put<T: DataType, V>(
    place: &mut SerializedColumnWriter<'_>,
    values: &[Option<V>],
    store: impl Fn(&V) -> T::T,
) -> Result<()> {
    let there: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
    let values: Vec<T::T> = values.iter().flatten().map(store).collect();
    place.typed::<T>().write_batch(&values, Some(&there), None)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results_journal::RecordedResults;
    use crate::test_plan;
    use luc_power::energy::{EnergyProvenance, RunEnergy};
    use parquet::file::reader::{FileReader as _, SerializedFileReader};
    use parquet::record::Field;
    use serde_json::Value;

    fn rows(path: &Path) -> Vec<Value> {
        let file = File::open(path).expect("there");
        let reader = SerializedFileReader::new(file).expect("Parquet");
        let about = reader.metadata().file_metadata().key_value_metadata();
        let keys: Vec<&str> = about.expect("metadata").iter().map(|at| &*at.key).collect();
        assert!(keys.starts_with(&["luc.schema", "luc.table", "luc.plan"]));
        let rows = reader.get_row_iter(None).expect("rows");
        let value = |field: &Field| match field {
            Field::Str(text) => Value::from(text.as_str()),
            Field::Long(number) => Value::from(*number),
            Field::Double(number) => Value::from(*number),
            Field::Bool(flag) => Value::from(*flag),
            _ => Value::Null,
        };
        rows.map(|row| {
            let row = row.expect("a row");
            let columns = row.get_column_iter();
            columns.map(|(name, field)| (name.clone(), value(field))).collect()
        })
        .collect()
    }

    #[test]
    fn what_is_written_is_read_back() {
        let plan = test_plan::plan();
        let points = crate::sweep_points::points(&plan);
        let mut records: Vec<RepeatRecord> = (0..6)
            .flat_map(|round| points.iter().map(move |point| (round, point)))
            .map(|(round, point)| test_plan::record(&point.key(), round, 2.5 + round as f64))
            .collect();
        records[1].counters.insert("disk.flushes".to_owned(), 7.0);
        records[1].energy = Some(RunEnergy {
            seconds: 1.0,
            gross_joules: Some(12.5),
            net_joules: None,
            missing: None,
        });
        records.push(test_plan::record("no,such,point,off", 0, 1.0));
        let report = crate::report::report(
            &plan,
            &points,
            RecordedResults { records, failures: Vec::new() },
            EnergyProvenance::default(),
            false,
        );
        let out = tempfile::tempdir().expect("a folder");
        export(&report, out.path()).expect("written");
        let results = rows(&out.path().join("results.parquet"));
        assert_eq!(results.len(), 24);
        let second = &results[1];
        assert_eq!(second["workload"], "w");
        assert_eq!(second["threads"], 1);
        assert_eq!(second["target"], "b");
        assert_eq!(second["value"], 2.5);
        assert_eq!(second["gross_joules"], 12.5);
        assert_eq!(second["net_joules"], Value::Null);
        assert_eq!(second["caches_dropped"], true);
        assert_eq!(results[23]["round"], 5);
        let counters = rows(&out.path().join("counters.parquet"));
        assert_eq!(counters.len(), 1);
        assert_eq!(counters[0]["key"], "w,1,b,off");
        assert_eq!(counters[0]["counter"], "disk.flushes");
        assert_eq!(counters[0]["value"], 7.0);
        let left: Vec<_> = std::fs::read_dir(out.path()).expect("listed").collect();
        assert_eq!(left.len(), 2);
    }
}
