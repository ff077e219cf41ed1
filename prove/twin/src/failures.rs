//! What went wrong in threads that nobody joins.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::TwinError;

/// Whether a thread of this process has failed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Failures(Arc<AtomicBool>);

impl Failures {
    /// Prints an error and remembers that there was one.
    pub(crate) fn note(&self, result: Result<(), TwinError>) {
        if let Err(error) = result {
            eprintln!("luc-twin: {error}");
            self.0.store(true, Ordering::Relaxed);
        }
    }

    /// An error if there was one.
    pub(crate) fn check(&self, host: &str) -> Result<(), TwinError> {
        if self.0.load(Ordering::Relaxed) {
            return Err(TwinError::Thread(host.to_owned()));
        }
        Ok(())
    }
}
