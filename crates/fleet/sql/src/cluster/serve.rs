//! A cluster's servers: Ballista's own, with our codecs.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;

use ballista_core::config::TaskSchedulingPolicy;
use ballista_core::error::BallistaError;
use ballista_executor::executor_process::{ExecutorProcessConfig, start_executor_process};
use ballista_scheduler::cluster::BallistaCluster;
use ballista_scheduler::config::SchedulerConfig;
use ballista_scheduler::scheduler_process::{create_scheduler, start_grpc_service};

use super::Address;
use super::codec::{LogicalCodec, PhysicalCodec};
use super::loss::Cancelling;
use crate::directory::Directory;
use crate::error::{SqlError, line};

/// How often an executor says that it lives, seconds.
const HEARTBEAT_SECONDS: u64 = 2;
/// After so long without a word an executor is lost, and others do its work, seconds.
const LOST_SECONDS: u64 = 10;
/// How often that is looked at, seconds.
const LOOK_SECONDS: u64 = 1;
/// Plans carry the clocks of all hosts along.
const MESSAGE_BYTES: u32 = 1 << 26;
/// Rows that executors exchanged are kept so long, for a client that is slow, seconds.
const KEPT_SECONDS: u64 = 3_600;
/// How often what is older is removed, seconds.
const CLEAN_SECONDS: u64 = 600;

/// An address as it stands before a port.
fn before_port(ip: IpAddr) -> String {
    match ip {
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => format!("[{ip}]"),
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scheduler {
    pub bind: SocketAddr,
    /// The name or address by which executors and clients reach it.
    pub external_host: Option<String>,
}

impl Scheduler {
    /// Serves until an error or a signal ends it.
    ///
    /// # Errors
    /// [`SqlError::Server`].
    pub async fn run(self) -> Result<(), SqlError> {
        let failed = |error: String| SqlError::Server {
            server: "scheduler",
            address: self.bind.to_string(),
            reason: line(&error),
        };
        let host = self.external_host.clone();
        let config = SchedulerConfig {
            bind_host: before_port(self.bind.ip()),
            bind_port: self.bind.port(),
            external_host: host.unwrap_or_else(|| before_port(self.bind.ip())),
            executor_timeout_seconds: LOST_SECONDS,
            expire_dead_executor_interval_seconds: LOOK_SECONDS,
            no_executors_grace_period_seconds: LOST_SECONDS,
            grpc_server_max_decoding_message_size: MESSAGE_BYTES,
            grpc_server_max_encoding_message_size: MESSAGE_BYTES,
            grpc_client_max_message_size: MESSAGE_BYTES,
            override_logical_codec: Some(Arc::new(LogicalCodec::default())),
            override_physical_codec: Some(Arc::new(PhysicalCodec::default())),
            // The state that is told of tasks and executors is only told of all where the scheduler sends tasks.
            scheduling_policy: TaskSchedulingPolicy::PushStaged,
            // Rows that cannot be brought end the job, as a lost executor does.
            stage_max_failures: 1,
            ..SchedulerConfig::default()
        };
        let served = async {
            config.validate()?;
            let memory = BallistaCluster::new_from_config(&config).await?;
            let state = Arc::new(Cancelling::new(memory.cluster_state()));
            let cluster = BallistaCluster::new(state.clone(), memory.job_state());
            let server = create_scheduler(cluster, Arc::new(config)).await?;
            state.cancel_at(server.clone());
            start_grpc_service(self.bind, server).await
        };
        served.await.map_err(|error: BallistaError| failed(error.to_string()))
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Executor {
    pub scheduler: Address,
    /// Where it listens: for rows that others ask for.
    pub bind: SocketAddr,
    /// The port on which it gets its tasks.
    pub task_port: u16,
    /// The name or address by which others reach it.
    pub external_host: Option<String>,
    /// How many tasks it does at once; `None`: as many as it has processors.
    pub tasks: Option<usize>,
    /// How much memory its tasks may use, bytes.
    pub memory_bytes: u64,
    /// Where a directory is made for rows that others ask for; `None`: where temporary files are.
    pub directory: Option<PathBuf>,
}

impl Executor {
    /// Serves until an error or a signal ends it, which waits for its tasks.
    ///
    /// # Errors
    /// [`SqlError::Server`], [`SqlError::Directory`].
    pub async fn run(self) -> Result<(), SqlError> {
        let failed = |error: String| SqlError::Server {
            server: "executor",
            address: self.bind.to_string(),
            reason: line(&error),
        };
        // Ballista's executor ends without an error where another program has this address.
        TcpListener::bind(self.bind).map_err(|error| failed(error.to_string()))?;
        let directory = Directory::new(self.directory.as_deref())?;
        // Without one it would take another directory, which stays.
        let Some(work_dir) = directory.path().to_str() else {
            return Err(SqlError::Directory {
                path: directory.path().to_owned(),
                reason: io::Error::other("its path is not UTF-8"),
            });
        };
        let local = |ip: IpAddr| (!ip.is_unspecified()).then(|| before_port(ip));
        let config = ExecutorProcessConfig {
            bind_host: before_port(self.bind.ip()),
            external_host: self.external_host.clone().or_else(|| local(self.bind.ip())),
            port: self.bind.port(),
            grpc_port: self.task_port,
            scheduler_host: self.scheduler.host.clone(),
            scheduler_port: self.scheduler.port,
            scheduler_connect_timeout_seconds: LOST_SECONDS as u16,
            vcores: self.tasks.unwrap_or(0),
            work_dir: Some(work_dir.to_owned()),
            job_data_ttl_seconds: KEPT_SECONDS,
            job_data_clean_up_interval_seconds: CLEAN_SECONDS,
            grpc_max_decoding_message_size: MESSAGE_BYTES,
            grpc_max_encoding_message_size: MESSAGE_BYTES,
            executor_heartbeat_interval_seconds: HEARTBEAT_SECONDS,
            memory_pool_size: Some(self.memory_bytes),
            override_logical_codec: Some(Arc::new(LogicalCodec::default())),
            override_physical_codec: Some(Arc::new(PhysicalCodec::default())),
            ..ExecutorProcessConfig::default()
        };
        start_executor_process(Arc::new(config)).await.map_err(|error| failed(error.to_string()))
    }
}
