//! A priority above the machine's other work.

use rustix::process::{getpriority_process, setpriority_process};

/// Highest priority of an ordinary process.
const HIGHEST_PRIORITY: i32 = -20;

/// Gives this process and its children the highest priority while this value lives. Without the right to it, the
/// priority stays unchanged.
#[derive(Debug)]
pub(super) struct First {
    before: Option<i32>,
}

impl First {
    pub(super) fn raise() -> Self {
        let before = getpriority_process(None).ok();
        let raised = before.filter(|_| setpriority_process(None, HIGHEST_PRIORITY).is_ok());
        Self { before: raised }
    }
}

impl Drop for First {
    fn drop(&mut self) {
        if let Some(before) = self.before
            && let Err(error) = setpriority_process(None, before)
        {
            eprintln!("luc-evaluate: the priority stays at {HIGHEST_PRIORITY}: {error}");
        }
    }
}
