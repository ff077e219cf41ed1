//! Which tables and columns there are.

use serde::Serialize;

use crate::derived::{self, Derived};
use crate::functions::Function;
use crate::schema::{HOST, TableColumn, TraceTable};

/// A table that queries can name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Listed {
    /// Its name; of a table function, how it is called.
    pub table: String,
    /// What a row is.
    pub meaning: String,
    pub columns: Vec<TableColumn>,
}

/// All tables, and the functions whose answer is one.
#[must_use]
pub fn tables() -> Vec<Listed> {
    let host = || TableColumn {
        name: HOST.to_owned(),
        kind: crate::schema::name_of(&datafusion::arrow::datatypes::DataType::Utf8).to_owned(),
        meaning: "The host whose trace the row is in.".to_owned(),
        data_type: datafusion::arrow::datatypes::DataType::Utf8,
        may_be_missing: false,
    };
    let of_traces = TraceTable::all().into_iter().map(|table| Listed {
        table: table.name.to_owned(),
        meaning: table.description,
        columns: table.columns.into_iter().chain([host()]).collect(),
    });
    let of_all = Derived::ALL.into_iter().map(|table| Listed {
        table: format!("{}.{}", derived::SCHEMA, table.name()),
        meaning: table.description().to_owned(),
        columns: table.columns(),
    });
    let of_functions = Function::ALL.into_iter().map(|function| Listed {
        table: function.call(),
        meaning: function.description().to_owned(),
        columns: function.columns(),
    });
    of_traces.chain(of_all).chain(of_functions).collect()
}
