//! Going first on a machine that has other work to do.

use rustix::process::{getpriority_process, setpriority_process};

/// The highest priority of an ordinary process.
const HIGHEST: i32 = -20;

/// The highest priority for this process and those that it starts, until this value goes. Without the right to it, everything
/// stays as it is.
#[derive(Debug)]
pub(super) struct First {
    before: Option<i32>,
}

impl First {
    pub(super) fn raise() -> Self {
        let before = getpriority_process(None).ok();
        let raised = before.filter(|_| setpriority_process(None, HIGHEST).is_ok());
        Self { before: raised }
    }
}

impl Drop for First {
    fn drop(&mut self) {
        if let Some(before) = self.before
            && let Err(error) = setpriority_process(None, before)
        {
            eprintln!("luc-evaluate: the priority stays at {HIGHEST}: {error}");
        }
    }
}
