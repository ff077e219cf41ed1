//! Events that programs did not see.
//!
//! A program that is active on a processor is skipped there: where an interrupt, or from Linux 7.0 on another thread,
//! comes in between. The kernel counts that.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, AsRawFd as _};
use std::ptr;

use super::RecorderPrograms;
use crate::ProbeError;
use crate::tracepoints::table_of;

impl RecorderPrograms {
    /// Returns the number of events that programs have missed since they were loaded, by the incomplete table.
    pub(crate) fn missed(&self) -> Result<BTreeMap<&'static str, u64>, ProbeError> {
        let mut missed = BTreeMap::new();
        for program in self.object.progs_mut() {
            if let Some(hook) = self.hook_of(program.name()) {
                *missed.entry(table_of(hook)).or_default() += misses_of(&program)?;
            }
        }
        Ok(missed)
    }
}

/// Returns the number of times that the kernel skipped a program because it was already active.
pub(crate) fn misses_of(program: &impl AsFd) -> Result<u64, ProbeError> {
    let mut info = libbpf_sys::bpf_prog_info::default();
    let mut bytes = size_of_val(&info) as u32;
    // SAFETY: the descriptor is open, and the kernel writes at most `bytes` to `info`, which is plain numbers.
    let status = unsafe {
        libbpf_sys::bpf_prog_get_info_by_fd(
            program.as_fd().as_raw_fd(),
            ptr::from_mut(&mut info),
            ptr::from_mut(&mut bytes),
        )
    };
    if status != 0 {
        return Err(ProbeError::Refused {
            what: "reading what programs have missed".to_owned(),
            reason: std::io::Error::from_raw_os_error(-status).to_string(),
        });
    }
    Ok(info.recursion_misses)
}
