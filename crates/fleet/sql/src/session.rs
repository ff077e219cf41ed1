//! A query over the traces of many hosts: which tables it needs, where they are, and its answer.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion::catalog::MemorySchemaProvider;
use datafusion::common::TableReference;
use datafusion::config::Dialect;
use datafusion::error::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::context::SQLOptions;
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::logical_expr::ScalarUDF;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};
use luc_fleet::{Joined, Opened, Source, Tables, global_times};

use crate::derived::{self, Derived};
use crate::error::{MOST_LEVELS, SqlError, line};
use crate::files::{Files, FilesTable, HostFile};
use crate::functions::{Function, Over};
use crate::global::{self, GlobalNs};
use crate::schema::TraceTable;

/// The schema of the traces' tables, which need not be named.
const OF_TRACES: &str = "public";
const CATALOG: &str = "datafusion";

/// How a query is answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// How much memory sorts, joins and groups may use, bytes; beyond that they use files. On a cluster each executor
    /// has its own.
    pub memory_bytes: u64,
    /// The scheduler of a cluster, like `df://host:50050`; `None`: this process answers.
    pub cluster: Option<String>,
    /// Where files of our own go ([`Directory`](crate::Directory)); all executors must see it under the same path.
    pub directory: PathBuf,
}

/// Traces that can be asked.
pub struct Session {
    context: SessionContext,
    cluster: Option<String>,
    /// For tables that are made of the traces, and for what does not fit into memory.
    directory: PathBuf,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("cluster", &self.cluster)
            .field("directory", &self.directory)
            .finish_non_exhaustive()
    }
}

impl Session {
    /// Opens the traces, checks the files that the query needs, and makes the tables that are in none.
    ///
    /// # Errors
    /// Whatever [`SqlError`] has but of output and servers.
    pub fn open(sources: &[Source], query: &str, options: &Options) -> Result<Self, SqlError> {
        let state = state(options)?;
        let needs = Needs::of(query, &state)?;
        let context = context(state, options)?;
        let session = Self {
            context,
            cluster: options.cluster.clone(),
            directory: options.directory.clone(),
        };
        session.register(sources, &needs)?;
        Ok(session)
    }

    fn register(&self, sources: &[Source], needs: &Needs) -> Result<(), SqlError> {
        let opened = luc_fleet::open(sources)?;
        for table in TraceTable::all() {
            let files = if needs.traces.contains(table.name) {
                files(&table, &opened)?
            } else {
                Vec::new()
            };
            let files = Files { files, has_hosts: true };
            self.add(
                TableReference::partial(OF_TRACES, table.name),
                FilesTable::new(table.file_schema(), files),
            )?;
        }
        drop(opened);
        let joined = match (needs.derived.is_empty(), needs.clocks) {
            (true, false) => None,
            (true, true) => Some(Tables::OfClocks),
            (false, _) => Some(Tables::All),
        };
        let joined = match joined {
            Some(tables) => Some(Joined::read(sources, tables, None)?),
            None => None,
        };
        for table in Derived::ALL {
            self.add(TableReference::partial(derived::SCHEMA, table.name()), table.empty())?;
        }
        for function in Function::ALL {
            self.add_function(function, function.table().empty());
        }
        if let Some(joined) = &joined {
            if !needs.derived.is_empty() {
                let written = derived::write(joined, &needs.derived, &self.directory)?;
                for (table, files) in written {
                    let name = TableReference::partial(derived::SCHEMA, table.name());
                    self.context.deregister_table(name.clone()).map_err(SqlError::of_engine)?;
                    for function in Function::ALL {
                        if function.table() == table {
                            self.add_function(function, files.clone());
                        }
                    }
                    self.add(name, files)?;
                }
            }
            if needs.clocks {
                let function = GlobalNs::new(global_times(joined));
                self.context.register_udf(ScalarUDF::new_from_impl(function));
            }
        }
        Ok(())
    }

    fn add(&self, name: TableReference, table: FilesTable) -> Result<(), SqlError> {
        let added = self.context.register_table(name, Arc::new(table));
        added.map(drop).map_err(SqlError::of_engine)
    }

    fn add_function(&self, function: Function, table: FilesTable) {
        let table = Arc::new(table);
        let over = Over { function, table };
        self.context.register_udtf(function.name(), Arc::new(over));
    }

    /// The query's answer, as it comes. The query may only ask.
    ///
    /// # Errors
    /// [`SqlError::Query`], [`SqlError::NotAQuestion`], [`SqlError::Engine`], [`SqlError::Cluster`], [`SqlError::Lost`].
    pub async fn ask(&self, query: &str) -> Result<SendableRecordBatchStream, SqlError> {
        let only_questions = SQLOptions::new()
            .with_allow_ddl(false)
            .with_allow_dml(false)
            .with_allow_statements(false);
        let state = self.context.state();
        let plan = state.create_logical_plan(query).await;
        let plan = plan.map_err(SqlError::of_engine)?;
        only_questions
            .verify_plan(&plan)
            .map_err(|error| SqlError::NotAQuestion(line(&error.strip_backtrace())))?;
        let frame = self.context.execute_logical_plan(plan).await;
        let frame = frame.map_err(|error| self.failed(error))?;
        let stream = frame.execute_stream().await;
        stream.map_err(|error| self.failed(error))
    }

    /// What an error of the engine means here.
    #[must_use]
    pub fn failed(&self, error: DataFusionError) -> SqlError {
        let is_lost = is_lost(&error);
        match (SqlError::of_engine(error), self.cluster.clone()) {
            (SqlError::Engine(reason), Some(url)) if is_lost => SqlError::Lost { url, reason },
            (SqlError::Engine(reason), Some(url)) => SqlError::Cluster { url, reason },
            (error, _) => error,
        }
    }

    /// Where an answer is kept until it is whole: on a cluster, whose executors can be lost while rows are brought.
    #[must_use]
    pub fn keeps_in(&self) -> Option<&Path> {
        self.cluster.as_ref().map(|_| self.directory.as_path())
    }
}

fn state(options: &Options) -> Result<SessionState, SqlError> {
    let bytes = usize::try_from(options.memory_bytes).unwrap_or(usize::MAX);
    let runtime = RuntimeEnvBuilder::new()
        .with_memory_pool(Arc::new(FairSpillPool::new(bytes)))
        .with_temp_file_path(&options.directory)
        .build_arc()
        .map_err(SqlError::of_engine)?;
    let config = SessionConfig::new()
        .with_default_catalog_and_schema(CATALOG, OF_TRACES)
        .with_information_schema(true)
        // Text has the same type in the files, in one process and on a cluster.
        .set_bool("datafusion.sql_parser.map_string_types_to_utf8view", false)
        .set_bool("datafusion.execution.parquet.schema_force_view_types", false);
    Ok(SessionStateBuilder::new()
        .with_config(config)
        .with_runtime_env(runtime)
        .with_default_features()
        .build())
}

fn context(state: SessionState, options: &Options) -> Result<SessionContext, SqlError> {
    let context = match &options.cluster {
        None => SessionContext::new_with_state(state),
        Some(url) => cluster(url, state)?,
    };
    let catalog = context.catalog(CATALOG);
    let schema = Arc::new(MemorySchemaProvider::new());
    if let Some(catalog) = catalog {
        catalog.register_schema(derived::SCHEMA, schema).map_err(SqlError::of_engine)?;
    }
    Ok(context)
}

#[cfg(feature = "cluster")]
fn cluster(url: &str, state: SessionState) -> Result<SessionContext, SqlError> {
    crate::cluster::client(url, state)
}

#[cfg(not(feature = "cluster"))]
fn cluster(url: &str, _: SessionState) -> Result<SessionContext, SqlError> {
    Err(SqlError::Cluster {
        url: url.to_owned(),
        reason: "this luc-fleet-sql was built without the cargo feature cluster".to_owned(),
    })
}

#[cfg(feature = "cluster")]
use crate::cluster::is_lost;

/// Without clusters there is no session that could lose an executor.
#[cfg(not(feature = "cluster"))]
fn is_lost(_: &DataFusionError) -> bool {
    false
}

/// The files of a table, of all hosts; their checksums are right.
fn files(table: &TraceTable, opened: &[Opened]) -> Result<Vec<HostFile>, SqlError> {
    let mut all = Vec::new();
    for host in opened {
        let found = (table.files)(&host.reader).map_err(luc_fleet::FleetError::from)?;
        for file in found {
            let path = file.path.canonicalize();
            all.push(HostFile {
                host: Some(luc_units::plain(&host.name)),
                path: path
                    .map_err(|reason| SqlError::Directory { path: file.path.clone(), reason })?,
                bytes: file.bytes,
                rows: file.rows,
            });
        }
    }
    Ok(all)
}

/// Whether a token can be a level of recursion. Those of a list of values are none.
fn is_level(token: &Token) -> bool {
    !matches!(
        token,
        Token::Whitespace(_)
            | Token::Comma
            | Token::Period
            | Token::Number(..)
            | Token::SingleQuotedString(_)
    )
}

/// The table functions that are called.
fn called(tokens: &[Token]) -> Vec<Function> {
    let seen: Vec<&Token> =
        tokens.iter().filter(|token| !matches!(token, Token::Whitespace(_))).collect();
    let is_called = |function: &Function| {
        seen.windows(2).any(|pair| match pair {
            [Token::Word(word), Token::LParen] => word.value.eq_ignore_ascii_case(function.name()),
            _ => false,
        })
    };
    Function::ALL.into_iter().filter(is_called).collect()
}

/// What a query needs.
#[derive(Debug, Default, PartialEq, Eq)]
struct Needs {
    traces: BTreeSet<String>,
    /// Tables that are made of all traces.
    derived: Vec<Derived>,
    /// Whether it asks for times on the first host's clock.
    clocks: bool,
}

impl Needs {
    fn of(query: &str, state: &SessionState) -> Result<Self, SqlError> {
        let tokens = Tokenizer::new(&GenericDialect {}, query).tokenize();
        // The parser says what is wrong with a query that has none.
        let tokens = tokens.unwrap_or_default();
        let levels = tokens.iter().filter(|token| is_level(token)).count();
        if levels > MOST_LEVELS {
            return Err(SqlError::TooLong(levels));
        }
        let statement =
            state.sql_to_statement(query, &Dialect::Generic).map_err(SqlError::of_engine)?;
        let tables = state.resolve_table_references(&statement).map_err(SqlError::of_engine)?;
        let mut needs = Self::default();
        for table in tables {
            match table.schema() {
                Some(derived::SCHEMA) => {
                    let found =
                        Derived::ALL.into_iter().find(|known| known.name() == table.table());
                    needs.derived.extend(found);
                }
                _ => {
                    needs.traces.insert(table.table().to_owned());
                }
            }
        }
        needs.derived.extend(called(&tokens).into_iter().map(Function::table));
        needs.derived.sort_by_key(|table| table.name());
        needs.derived.dedup();
        // A column of this name would only cost time.
        needs.clocks = tokens.iter().any(|token| match token {
            Token::Word(word) => word.value.eq_ignore_ascii_case(global::NAME),
            _ => false,
        });
        Ok(needs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needs(query: &str) -> Needs {
        Needs::of(query, &SessionContext::new().state()).expect("SQL")
    }

    #[test]
    fn only_what_is_asked_for_is_read() {
        let found = needs("select count(*) from wait w join FLEET.Request r on w.host = r.host");
        assert_eq!(found.traces, BTreeSet::from(["wait".to_owned()]));
        assert_eq!(found.derived, [Derived::Request]);
        assert!(!found.clocks);
        let found = needs("select Global_NS(host, at_ns), 'fleet.edge' from message");
        assert!(found.clocks && found.derived.is_empty());
        assert!(!needs("select 'global_ns' from message").clocks);
        let found = needs("select blame from Subtree (7) join blame() on true");
        assert_eq!(found.derived, [Derived::Path, Derived::Request]);
        assert!(needs("select blame from wait").derived.is_empty());
    }
}
