//! Jobs whose executor is lost end, so that their clients ask anew.
//!
//! Ballista 55 repeats what a lost executor had done. With its adaptive planner it cannot repeat a part that had ended: the
//! job stays running for ever. With its static planner it counts rows twice that other executors still have. So a job is
//! cancelled before the scheduler repeats anything of it.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use ballista_core::JobId;
use ballista_core::error::Result;
use ballista_core::serde::protobuf::ExecutorHeartbeat;
use ballista_core::serde::scheduler::{ExecutorData, ExecutorMetadata};
use ballista_scheduler::cluster::{BoundTask, ClusterState, ClusterStateEventStream, ExecutorSlot};
use ballista_scheduler::config::TaskDistributionPolicy;
use ballista_scheduler::state::task_manager::JobInfoCache;
use tokio::sync::Mutex;

use super::watch::{Server, watch};

/// The state of a cluster, which cancels the jobs of an executor that is removed.
pub(super) struct Cancelling {
    inner: Arc<dyn ClusterState>,
    /// The running jobs that each executor has had a task of.
    jobs: Mutex<HashMap<String, HashSet<JobId>>>,
    server: OnceLock<Server>,
}

impl Cancelling {
    pub(super) fn new(inner: Arc<dyn ClusterState>) -> Self {
        Self { inner, jobs: Mutex::default(), server: OnceLock::new() }
    }

    /// Names the server that jobs are cancelled at. It is made of this state.
    pub(super) fn cancel_at(&self, server: Server) {
        // There is one server of a state.
        let _ = self.server.set(server);
    }
}

#[async_trait]
impl ClusterState for Cancelling {
    async fn init(&self) -> Result<()> {
        self.inner.init().await
    }

    async fn bind_schedulable_tasks(
        &self,
        distribution: TaskDistributionPolicy,
        active_jobs: Arc<HashMap<JobId, JobInfoCache>>,
        executors: Option<HashSet<String>>,
    ) -> Result<Vec<BoundTask>> {
        // No executor is removed between the inner call and the note of it.
        let mut jobs = self.jobs.lock().await;
        let active = active_jobs.clone();
        let bound = self.inner.bind_schedulable_tasks(distribution, active_jobs, executors).await?;
        for of_executor in jobs.values_mut() {
            of_executor.retain(|job| active.contains_key(job));
        }
        for (executor, task) in &bound {
            let of_executor = jobs.entry(executor.clone()).or_default();
            of_executor.insert(task.key.job_id.clone());
        }
        Ok(bound)
    }

    async fn unbind_tasks(&self, executor_slots: Vec<ExecutorSlot>) -> Result<()> {
        self.inner.unbind_tasks(executor_slots).await
    }

    async fn register_executor(
        &self,
        metadata: ExecutorMetadata,
        spec: ExecutorData,
    ) -> Result<()> {
        let executor = metadata.clone();
        self.inner.register_executor(metadata, spec).await?;
        if let Some(server) = self.server.get() {
            tokio::spawn(watch(executor, server.clone()));
        }
        Ok(())
    }

    async fn save_executor_metadata(&self, metadata: ExecutorMetadata) -> Result<()> {
        self.inner.save_executor_metadata(metadata).await
    }

    async fn get_executor_metadata(&self, executor_id: &str) -> Result<ExecutorMetadata> {
        self.inner.get_executor_metadata(executor_id).await
    }

    async fn registered_executor_metadata(&self) -> Vec<ExecutorMetadata> {
        self.inner.registered_executor_metadata().await
    }

    async fn save_executor_heartbeat(&self, heartbeat: ExecutorHeartbeat) -> Result<()> {
        self.inner.save_executor_heartbeat(heartbeat).await
    }

    /// The scheduler says that an executor is lost after this (`SchedulerState::remove_executor`), by the queue that
    /// carries the cancellations, too: they come first.
    async fn remove_executor(&self, executor_id: &str) -> Result<()> {
        let mut jobs = self.jobs.lock().await;
        let lost = jobs.remove(executor_id);
        let removed = self.inner.remove_executor(executor_id).await;
        // What reads the queue may wait for this lock.
        drop(jobs);
        if let Some(server) = self.server.get() {
            for job in lost.into_iter().flatten() {
                server.cancel_job(job).await?;
            }
        }
        removed
    }

    fn executor_heartbeats(&self) -> HashMap<String, ExecutorHeartbeat> {
        self.inner.executor_heartbeats()
    }

    fn get_executor_heartbeat(&self, executor_id: &str) -> Option<ExecutorHeartbeat> {
        self.inner.get_executor_heartbeat(executor_id)
    }

    async fn cluster_state_events(&self) -> Result<ClusterStateEventStream> {
        self.inner.cluster_state_events().await
    }
}
