//! Owners of work: processes in cgroups, as small numbers.

use luc_events::{Cgroup, Tgid};

use crate::fast_hash::FastMap;

/// A process in a cgroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct OwnerId(u32);

/// All owners of a trace. It grows with the processes that wrote, not with the trace.
#[derive(Debug, Default)]
pub(crate) struct Owners {
    ids: FastMap<(u32, u64), OwnerId>,
    owners: Vec<(Tgid, Cgroup)>,
    /// The last owner that was looked up: often the next one, too.
    last: Option<(Tgid, Cgroup, OwnerId)>,
}

impl Owners {
    pub(crate) fn id(&mut self, process: Tgid, cgroup: Cgroup) -> OwnerId {
        if let Some((last_process, last_cgroup, id)) = self.last
            && (last_process, last_cgroup) == (process, cgroup)
        {
            return id;
        }
        let id = *self.ids.entry((process.0, cgroup.0)).or_insert_with(|| {
            self.owners.push((process, cgroup));
            OwnerId((self.owners.len() - 1) as u32)
        });
        self.last = Some((process, cgroup, id));
        id
    }

    pub(crate) fn get(&self, id: OwnerId) -> (Tgid, Cgroup) {
        self.owners[id.0 as usize]
    }
}
