//! Clients as threads of this process.

use std::thread;

use super::run_control::{RunControl, dismiss};
use super::{RunProgress, RunSchedule, coordinate};
use crate::error::BenchError;

pub(super) fn run<F>(
    schedule: &RunSchedule,
    control: &RunControl,
    client_main: F,
    tick: &mut dyn FnMut(RunProgress),
) -> Result<(), BenchError>
where
    F: Fn(usize) + Sync,
{
    thread::scope(|scope| {
        let mut handles = Vec::with_capacity(schedule.clients);
        for index in 0..schedule.clients {
            let client_main = &client_main;
            let builder = thread::Builder::new().stack_size(256 * 1024);
            match builder.spawn_scoped(scope, move || client_main(index)) {
                Ok(handle) => handles.push(handle),
                Err(reason) => {
                    dismiss(control);
                    let clients = schedule.clients;
                    return Err(BenchError::Start { client: index + 1, clients, reason });
                }
            }
        }
        let outcome = coordinate(schedule, control, || None, tick);
        for (index, handle) in handles.into_iter().enumerate() {
            if handle.join().is_err() {
                return Err(BenchError::Died { client: index + 1, how: "panic".to_owned() });
            }
        }
        outcome
    })
}
