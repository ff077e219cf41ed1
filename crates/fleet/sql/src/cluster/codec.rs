//! What a plan has that is ours, as bytes: a table of files of many hosts, and the function `global_ns` with the clocks.

use std::sync::Arc;

use ballista_core::serde::{BallistaLogicalExtensionCodec, BallistaPhysicalExtensionCodec};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::TableProvider;
use datafusion::common::{DataFusionError, Result, TableReference};
use datafusion::datasource::file_format::FileFormatFactory;
use datafusion::execution::TaskContext;
use datafusion::logical_expr::{AggregateUDF, Extension, LogicalPlan, ScalarUDF, WindowUDF};
use datafusion::physical_plan::ExecutionPlan;
use datafusion_proto::logical_plan::LogicalExtensionCodec;
use datafusion_proto::physical_plan::{PhysicalExtensionCodec, PhysicalProtoConverterExtension};

use crate::files::{Files, FilesTable};
use crate::global::{self, GlobalNs};

/// Between client and scheduler. What is not ours is Ballista's.
#[derive(Debug, Default)]
pub(super) struct LogicalCodec {
    inner: BallistaLogicalExtensionCodec,
}

/// Between scheduler and executors.
#[derive(Debug, Default)]
pub(super) struct PhysicalCodec {
    inner: BallistaPhysicalExtensionCodec,
}

fn encoded(function: &ScalarUDF, buffer: &mut Vec<u8>) {
    let inner = function.inner().as_ref();
    let inner: &dyn std::any::Any = inner;
    if let Some(global) = inner.downcast_ref::<GlobalNs>() {
        global.encode(buffer);
    }
}

fn decoded(name: &str, buffer: &[u8]) -> Result<Arc<ScalarUDF>> {
    let found = (name == global::NAME).then(|| GlobalNs::decode(buffer));
    let Some(Some(function)) = found else {
        let reason = format!("the function {name} is not known here, or of another version");
        return Err(DataFusionError::Plan(reason));
    };
    Ok(Arc::new(ScalarUDF::new_from_impl(function)))
}

impl LogicalExtensionCodec for LogicalCodec {
    fn try_decode(
        &self,
        buf: &[u8],
        inputs: &[LogicalPlan],
        ctx: &TaskContext,
    ) -> Result<Extension> {
        self.inner.try_decode(buf, inputs, ctx)
    }

    fn try_encode(&self, node: &Extension, buf: &mut Vec<u8>) -> Result<()> {
        self.inner.try_encode(node, buf)
    }

    fn try_decode_table_provider(
        &self,
        buf: &[u8],
        table_ref: &TableReference,
        schema: SchemaRef,
        ctx: &TaskContext,
    ) -> Result<Arc<dyn TableProvider>> {
        match serde_json::from_slice::<Files>(buf) {
            Ok(files) if schema.fields().len() >= usize::from(files.has_hosts) => {
                Ok(Arc::new(FilesTable::of_table(&schema, files)))
            }
            _ => self.inner.try_decode_table_provider(buf, table_ref, schema, ctx),
        }
    }

    fn try_encode_table_provider(
        &self,
        table_ref: &TableReference,
        node: Arc<dyn TableProvider>,
        buf: &mut Vec<u8>,
    ) -> Result<()> {
        let table: &dyn std::any::Any = node.as_ref();
        let Some(table) = table.downcast_ref::<FilesTable>() else {
            return self.inner.try_encode_table_provider(table_ref, node, buf);
        };
        serde_json::to_writer(buf, &table.files)
            .map_err(|error| DataFusionError::External(Box::new(error)))
    }

    fn try_decode_file_format(
        &self,
        buf: &[u8],
        ctx: &TaskContext,
    ) -> Result<Arc<dyn FileFormatFactory>> {
        self.inner.try_decode_file_format(buf, ctx)
    }

    fn try_encode_file_format(
        &self,
        buf: &mut Vec<u8>,
        node: Arc<dyn FileFormatFactory>,
    ) -> Result<()> {
        self.inner.try_encode_file_format(buf, node)
    }

    fn try_decode_udf(&self, name: &str, buf: &[u8]) -> Result<Arc<ScalarUDF>> {
        decoded(name, buf)
    }

    fn try_encode_udf(&self, node: &ScalarUDF, buf: &mut Vec<u8>) -> Result<()> {
        encoded(node, buf);
        Ok(())
    }
}

impl PhysicalExtensionCodec for PhysicalCodec {
    fn try_decode(
        &self,
        buf: &[u8],
        inputs: &[Arc<dyn ExecutionPlan>],
        ctx: &TaskContext,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.inner.try_decode(buf, inputs, ctx, converter)
    }

    fn try_encode(
        &self,
        node: Arc<dyn ExecutionPlan>,
        buf: &mut Vec<u8>,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<()> {
        self.inner.try_encode(node, buf, converter)
    }

    fn try_decode_udf(&self, name: &str, buf: &[u8]) -> Result<Arc<ScalarUDF>> {
        decoded(name, buf).or_else(|_| self.inner.try_decode_udf(name, buf))
    }

    fn try_encode_udf(&self, node: &ScalarUDF, buf: &mut Vec<u8>) -> Result<()> {
        let before = buf.len();
        encoded(node, buf);
        if buf.len() == before {
            return self.inner.try_encode_udf(node, buf);
        }
        Ok(())
    }

    fn try_decode_udaf(&self, name: &str, buf: &[u8]) -> Result<Arc<AggregateUDF>> {
        self.inner.try_decode_udaf(name, buf)
    }

    fn try_encode_udaf(&self, node: &AggregateUDF, buf: &mut Vec<u8>) -> Result<()> {
        self.inner.try_encode_udaf(node, buf)
    }

    fn try_decode_udwf(&self, name: &str, buf: &[u8]) -> Result<Arc<WindowUDF>> {
        self.inner.try_decode_udwf(name, buf)
    }

    fn try_encode_udwf(&self, node: &WindowUDF, buf: &mut Vec<u8>) -> Result<()> {
        self.inner.try_encode_udwf(node, buf)
    }
}
