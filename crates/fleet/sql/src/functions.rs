//! Table functions over what was found in all traces: `subtree(id)`, `critical_path(id)` and `blame(id)`.
//!
//! Where a query names one, the plan has scans of the tables of [`crate::derived`] in its place, so that executors need
//! not know of them.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::catalog::{TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::datasource::{ViewTable, provider_as_source};
use datafusion::functions_aggregate::expr_fn::{count_distinct, sum};
use datafusion::logical_expr::{Expr, JoinType, LogicalPlan, LogicalPlanBuilder, col, lit};

use crate::derived::Derived;
use crate::schema::TableColumn;

/// What `blame` groups by: columns of `fleet.path`.
const BLAMED: [&str; 6] = ["host", "process", "thread", "name", "part", "cause"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Function {
    Subtree,
    CriticalPath,
    Blame,
}

impl Function {
    pub(crate) const ALL: [Self; 3] = [Self::Subtree, Self::CriticalPath, Self::Blame];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Subtree => "subtree",
            Self::CriticalPath => "critical_path",
            Self::Blame => "blame",
        }
    }

    /// As queries call it.
    pub(crate) fn call(self) -> String {
        match self {
            Self::Subtree | Self::CriticalPath => format!("{}(id)", self.name()),
            Self::Blame => "blame([id])".to_owned(),
        }
    }

    pub(crate) fn description(self) -> &'static str {
        match self {
            Self::Subtree => {
                "A row of fleet.request: the request of this id, or one that was made for it."
            }
            Self::CriticalPath => "A row of fleet.path, of the request of this id.",
            Self::Blame => {
                "How long critical paths were in one thread and of one kind: that of the request of this id, or all."
            }
        }
    }

    /// The table whose rows it has, or adds up.
    pub(crate) fn table(self) -> Derived {
        match self {
            Self::Subtree => Derived::Request,
            Self::CriticalPath | Self::Blame => Derived::Path,
        }
    }

    pub(crate) fn columns(self) -> Vec<TableColumn> {
        let mut columns = self.table().columns();
        if self == Self::Blame {
            let place = |column: &TableColumn| BLAMED.iter().position(|name| column.name == *name);
            columns.retain(|column| place(column).is_some());
            columns.sort_by_key(place);
            let meanings = [
                ("time_ns", "The sum of these parts."),
                ("requests", "Of how many requests they are."),
            ];
            columns.extend(meanings.map(|(name, meaning)| TableColumn {
                name: name.to_owned(),
                kind: crate::schema::name_of(&DataType::Int64).to_owned(),
                meaning: meaning.to_owned(),
                data_type: DataType::Int64,
                may_be_missing: false,
            }));
        }
        columns
    }

    fn plan(self, table: Arc<dyn TableProvider>, id: Option<u64>) -> Result<LogicalPlan> {
        let source = provider_as_source(table);
        let scan = |name: &str| LogicalPlanBuilder::scan(name, Arc::clone(&source), None);
        match (self, id) {
            (Self::Subtree, Some(id)) => {
                let top = scan("top")?.filter(col("top.id").eq(lit(id)))?.build()?;
                let is_below = [
                    col("below.root").eq(col("top.root")),
                    col("below.pre").between(col("top.pre"), col("top.last")),
                ];
                let own = self.columns().into_iter();
                let own = own.map(|column| col(format!("below.{}", column.name)));
                scan("below")?
                    .join_on(top, JoinType::Inner, is_below)?
                    .project(own.collect::<Vec<Expr>>())?
                    .build()
            }
            (Self::CriticalPath, Some(id)) => {
                scan("path")?.filter(col("path.request").eq(lit(id)))?.build()
            }
            (Self::Blame, id) => {
                let mut path = scan("path")?;
                if let Some(id) = id {
                    path = path.filter(col("path.request").eq(lit(id)))?;
                }
                let sums = [
                    sum(col("path.time_ns")).alias("time_ns"),
                    count_distinct(col("path.request")).alias("requests"),
                ];
                let by = BLAMED.map(|column| col(format!("path.{column}")));
                path.aggregate(by, sums)?.build()
            }
            (Self::Subtree | Self::CriticalPath, None) => Err(self.wants_an_id()),
        }
    }

    fn wants_an_id(self) -> DataFusionError {
        DataFusionError::Plan(format!(
            "{} takes the id of a request, a number that the column id of fleet.request has",
            self.call()
        ))
    }
}

/// A table function and the table that it is over.
#[derive(Debug)]
pub(crate) struct Over {
    pub(crate) function: Function,
    pub(crate) table: Arc<dyn TableProvider>,
}

impl TableFunctionImpl for Over {
    fn call_with_args(&self, args: TableFunctionArgs<'_, '_>) -> Result<Arc<dyn TableProvider>> {
        let id = match args.exprs() {
            [] => None,
            [Expr::Literal(ScalarValue::Int64(Some(id)), _)] => u64::try_from(*id).ok(),
            [Expr::Literal(ScalarValue::UInt64(id), _)] => *id,
            _ => None,
        };
        if id.is_none() && !args.exprs().is_empty() {
            return Err(self.function.wants_an_id());
        }
        let plan = self.function.plan(Arc::clone(&self.table), id)?;
        Ok(Arc::new(ViewTable::new(plan, None)))
    }
}
