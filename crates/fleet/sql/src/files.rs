//! One table whose rows are in Parquet files of many hosts.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::stats::Precision;
use datafusion::common::{DataFusionError, Result, ScalarValue, Statistics};
use datafusion::datasource::TableType;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfigBuilder, ParquetSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::logical_expr::Expr;
use datafusion::object_store::path::Path as Location;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;
use serde::{Deserialize, Serialize};

use crate::schema::HOST;

/// A file of one host, or of all hosts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HostFile {
    /// Whose rows it has; `None`: the file has a column with the host, or needs none.
    pub(crate) host: Option<String>,
    /// Where it is, absolute: executors look there as well.
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
    pub(crate) rows: u64,
}

/// What the table is, as it goes to a scheduler.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Files {
    pub(crate) files: Vec<HostFile>,
    /// Whether the table has a column with the host that its files do not have.
    pub(crate) has_hosts: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct FilesTable {
    pub(crate) files: Files,
    file_schema: SchemaRef,
    schema: SchemaRef,
}

fn host_field() -> Arc<Field> {
    Arc::new(Field::new(HOST, DataType::Utf8, false))
}

impl FilesTable {
    /// Of files that have these columns.
    pub(crate) fn new(file_schema: SchemaRef, files: Files) -> Self {
        let mut fields: Vec<Arc<Field>> = file_schema.fields().iter().cloned().collect();
        if files.has_hosts {
            fields.push(host_field());
        }
        Self { files, file_schema, schema: Arc::new(Schema::new(fields)) }
    }

    /// The same by all columns of the table, where the host's is the last.
    #[cfg(feature = "cluster")]
    pub(crate) fn of_table(schema: &SchemaRef, files: Files) -> Self {
        let columns = schema.fields().len() - usize::from(files.has_hosts);
        let fields: Vec<Arc<Field>> = schema.fields().iter().take(columns).cloned().collect();
        Self::new(Arc::new(Schema::new(fields)), files)
    }

    fn partitioned(&self, file: &HostFile) -> Result<PartitionedFile> {
        let values = file.host.clone().map(|host| ScalarValue::Utf8(Some(host)));
        let mut found = PartitionedFile::new("", file.bytes);
        // A path that is given to `new` would be escaped, and is then that of another file.
        found.object_meta.location = location(&file.path)?;
        Ok(found.with_partition_values(values.into_iter().collect()))
    }
}

/// A path as the engine takes it.
fn location(path: &Path) -> Result<Location> {
    let found = path.to_str().and_then(|text| Location::parse(text).ok());
    found.ok_or_else(|| {
        let reason = "the path is not UTF-8 or has control characters; rename it";
        DataFusionError::Plan(format!("{}: {reason}", path.display()))
    })
}

#[async_trait]
impl TableProvider for FilesTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let files = self.files.files.iter().filter(|file| file.rows > 0);
        let files: Vec<PartitionedFile> =
            files.map(|file| self.partitioned(file)).collect::<Result<_>>()?;
        if files.is_empty() {
            let schema = match projection {
                Some(columns) => Arc::new(self.schema.project(columns)?),
                None => self.schema(),
            };
            return Ok(Arc::new(EmptyExec::new(schema)));
        }
        let mut statistics = Statistics::new_unknown(&self.schema);
        let rows: u64 = self.files.files.iter().map(|file| file.rows).sum();
        statistics.num_rows = Precision::Exact(usize::try_from(rows).unwrap_or(usize::MAX));
        let hosts = if self.files.has_hosts { vec![host_field()] } else { Vec::new() };
        let table = TableSchema::builder(Arc::clone(&self.file_schema))
            .with_table_partition_cols(hosts)
            .build();
        let options = state.default_table_options().parquet;
        let source = ParquetSource::new(table).with_table_parquet_options(options);
        let groups = FileGroup::new(files).split_files(state.config().target_partitions());
        let scan = FileScanConfigBuilder::new(ObjectStoreUrl::local_filesystem(), Arc::new(source))
            .with_file_groups(groups)
            .with_statistics(statistics)
            .with_projection_indices(projection.cloned())?
            .with_limit(limit)
            .build();
        Ok(DataSourceExec::from_data_source(scan))
    }
}
