//! Executors whose process has ended: their system closes their connections, long before anybody misses a heartbeat.

use std::time::Duration;

use ballista_core::serde::protobuf::ExecutorStoppedParams;
use ballista_core::serde::protobuf::scheduler_grpc_server::SchedulerGrpc as _;
use ballista_core::serde::scheduler::ExecutorMetadata;
use ballista_scheduler::scheduler_server::SchedulerServer;
use datafusion_proto::protobuf::{LogicalPlanNode, PhysicalPlanNode};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tokio::time::sleep;
use tonic::Request;

pub(super) type Server = SchedulerServer<LogicalPlanNode, PhysicalPlanNode>;

/// Before another attempt to connect.
const PAUSE: Duration = Duration::from_millis(100);
/// An executor listens after so many attempts, or heartbeats alone tell of its end.
const ATTEMPTS: usize = 100;

/// Tells the server once an executor's process has ended. A host that is off, or cut off, closes nothing: of those the
/// heartbeats tell.
pub(super) async fn watch(executor: ExecutorMetadata, server: Server) {
    // It registers before it listens.
    let Some(connection) = connected(&executor.host, executor.grpc_port).await else {
        return;
    };
    ended(connection, &executor.host, executor.grpc_port).await;
    let stopped = ExecutorStoppedParams {
        executor_id: executor.id,
        reason: "its process has ended".to_owned(),
    };
    // An error says that the scheduler ends itself.
    let _ = server.executor_stopped(Request::new(stopped)).await;
}

async fn connected(host: &str, port: u16) -> Option<TcpStream> {
    for _ in 0..ATTEMPTS {
        if let Ok(connection) = TcpStream::connect((host, port)).await {
            return Some(connection);
        }
        sleep(PAUSE).await;
    }
    None
}

/// Waits until nobody listens there any more.
async fn ended(mut connection: TcpStream, host: &str, port: u16) {
    loop {
        // It has no reason to send anything; what matters is when the connection ends.
        while matches!(connection.read(&mut [0; 64]).await, Ok(bytes) if bytes > 0) {}
        match TcpStream::connect((host, port)).await {
            // Only this connection was closed.
            Ok(again) => connection = again,
            Err(_) => return,
        }
        sleep(PAUSE).await;
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;
    use tokio::select;

    use super::*;

    #[tokio::test]
    async fn a_process_has_ended_when_nobody_listens() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let connection = connected("127.0.0.1", port).await.expect("a connection");
        let mut end = std::pin::pin!(ended(connection, "127.0.0.1", port));
        // A connection that is closed is only made anew.
        for _ in 0..2 {
            select! {
                () = &mut end => panic!("somebody listens"),
                accepted = listener.accept() => drop(accepted.expect("a connection")),
            }
        }
        drop(listener);
        end.await;
    }
}
