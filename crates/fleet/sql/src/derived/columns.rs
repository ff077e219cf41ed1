//! What a column of these tables is, and its values.

use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, BooleanArray, Int64Array, StringArray, UInt32Array, UInt64Array,
};
use datafusion::arrow::datatypes::DataType;
use luc_fleet::Relations;

use crate::schema::{TableColumn, name_of};

/// A column of a table.
pub(super) struct Column {
    name: &'static str,
    meaning: &'static str,
    data_type: DataType,
    may_be_missing: bool,
    values: Box<dyn Fn(&Relations) -> ArrayRef>,
}

impl Column {
    pub(super) fn about(&self) -> TableColumn {
        TableColumn {
            name: self.name.to_owned(),
            kind: name_of(&self.data_type).to_owned(),
            meaning: self.meaning.to_owned(),
            data_type: self.data_type.clone(),
            may_be_missing: self.may_be_missing,
        }
    }

    pub(super) fn values(&self, found: &Relations) -> ArrayRef {
        (self.values)(found)
    }
}

/// The columns of a table with a row of each `R`, one after the other.
pub(super) struct Columns<R: 'static> {
    rows: fn(&Relations) -> &[R],
    columns: Vec<Column>,
}

impl<R> Columns<R> {
    pub(super) fn of(rows: fn(&Relations) -> &[R]) -> Self {
        Self { rows, columns: Vec::new() }
    }

    pub(super) fn finish(self) -> Vec<Column> {
        self.columns
    }

    /// Adds a column whose values are this array.
    fn with(
        mut self,
        (name, meaning): (&'static str, &'static str),
        data_type: DataType,
        may_be_missing: bool,
        array: impl Fn(&Relations, &[R]) -> ArrayRef + 'static,
    ) -> Self {
        let rows = self.rows;
        self.columns.push(Column {
            name,
            meaning,
            data_type,
            may_be_missing,
            values: Box::new(move |found| array(found, rows(found))),
        });
        self
    }

    pub(super) fn text(
        self,
        name: &'static str,
        meaning: &'static str,
        value: for<'a> fn(&'a R) -> &'a str,
    ) -> Self {
        let array = move |_: &Relations, rows: &[R]| -> ArrayRef {
            Arc::new(StringArray::from_iter_values(rows.iter().map(value)))
        };
        self.with((name, meaning), DataType::Utf8, false, array)
    }

    /// Text where there is any.
    pub(super) fn text_or_none(
        self,
        name: &'static str,
        meaning: &'static str,
        value: for<'a> fn(&'a R) -> Option<&'a str>,
    ) -> Self {
        let array = move |_: &Relations, rows: &[R]| -> ArrayRef {
            Arc::new(StringArray::from_iter(rows.iter().map(value)))
        };
        self.with((name, meaning), DataType::Utf8, true, array)
    }

    /// The name of the host of this number.
    pub(super) fn host(
        self,
        name: &'static str,
        meaning: &'static str,
        value: fn(&R) -> u32,
    ) -> Self {
        let array = move |found: &Relations, rows: &[R]| -> ArrayRef {
            let hosts = rows.iter().map(value).map(|host| named(found, host));
            Arc::new(StringArray::from_iter_values(hosts))
        };
        self.with((name, meaning), DataType::Utf8, false, array)
    }

    /// The same where there is a host.
    pub(super) fn host_or_none(
        self,
        name: &'static str,
        meaning: &'static str,
        value: fn(&R) -> Option<u32>,
    ) -> Self {
        let array = move |found: &Relations, rows: &[R]| -> ArrayRef {
            let hosts = rows.iter().map(value);
            let hosts = hosts.map(|host| host.map(|host| named(found, host)));
            Arc::new(StringArray::from_iter(hosts))
        };
        self.with((name, meaning), DataType::Utf8, true, array)
    }

    /// A number of 32 bits.
    pub(super) fn number(
        self,
        name: &'static str,
        meaning: &'static str,
        value: fn(&R) -> u32,
    ) -> Self {
        let array = move |_: &Relations, rows: &[R]| -> ArrayRef {
            Arc::new(UInt32Array::from_iter_values(rows.iter().map(value)))
        };
        self.with((name, meaning), DataType::UInt32, false, array)
    }

    /// The same where there is one.
    pub(super) fn number_or_none(
        self,
        name: &'static str,
        meaning: &'static str,
        value: fn(&R) -> Option<u32>,
    ) -> Self {
        let array = move |_: &Relations, rows: &[R]| -> ArrayRef {
            Arc::new(UInt32Array::from_iter(rows.iter().map(value)))
        };
        self.with((name, meaning), DataType::UInt32, true, array)
    }

    /// A number of 64 bits.
    pub(super) fn count(
        self,
        name: &'static str,
        meaning: &'static str,
        value: fn(&R) -> u64,
    ) -> Self {
        let array = move |_: &Relations, rows: &[R]| -> ArrayRef {
            Arc::new(UInt64Array::from_iter_values(rows.iter().map(value)))
        };
        self.with((name, meaning), DataType::UInt64, false, array)
    }

    /// A time or a duration, ns.
    pub(super) fn time(
        self,
        name: &'static str,
        meaning: &'static str,
        value: fn(&R) -> u64,
    ) -> Self {
        let array = move |_: &Relations, rows: &[R]| -> ArrayRef {
            let times = rows.iter().map(value).map(signed);
            Arc::new(Int64Array::from_iter_values(times))
        };
        self.with((name, meaning), DataType::Int64, false, array)
    }

    /// The same where it is known.
    pub(super) fn time_or_none(
        self,
        name: &'static str,
        meaning: &'static str,
        value: fn(&R) -> Option<i64>,
    ) -> Self {
        let array = move |_: &Relations, rows: &[R]| -> ArrayRef {
            Arc::new(Int64Array::from_iter(rows.iter().map(value)))
        };
        self.with((name, meaning), DataType::Int64, true, array)
    }

    /// Whether something is so.
    pub(super) fn flag(
        self,
        name: &'static str,
        meaning: &'static str,
        value: fn(&R) -> bool,
    ) -> Self {
        let array = move |_: &Relations, rows: &[R]| -> ArrayRef {
            let flags = rows.iter().map(value).map(Some);
            Arc::new(flags.collect::<BooleanArray>())
        };
        self.with((name, meaning), DataType::Boolean, false, array)
    }
}

fn named(found: &Relations, host: u32) -> &str {
    &found.hosts[host as usize]
}

/// Times beyond 292 years after the boot are in no trace: rows with them were left out.
pub(super) fn signed(at_ns: u64) -> i64 {
    i64::try_from(at_ns).unwrap_or(i64::MAX)
}
