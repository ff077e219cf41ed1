//! Lists the hosts in a store, with their times.

use std::collections::BTreeMap;

use luc_fleet_rings::LogTime;
use serde::Serialize;

use crate::error::StoredError;
use crate::object_name::NS_PER_MS;
use crate::store::ObjectStoreFolder;

/// Segments of a host in a store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StoredHost {
    pub host: String,
    pub segments: u64,
    pub bytes: u64,
    /// Begin of the oldest segment.
    pub from: LogTime,
    /// End of the newest segment.
    pub to: LogTime,
}

/// Lists the hosts in a store by name.
///
/// # Errors
/// [`StoredError::Refused`].
pub async fn stored(store: &ObjectStoreFolder) -> Result<Vec<StoredHost>, StoredError> {
    let mut hosts: BTreeMap<String, StoredHost> = BTreeMap::new();
    for (host, name, bytes) in store.segments_of_hosts().await? {
        let [from, to] =
            [name.begin_ms, name.end_ms].map(|at_ms| LogTime(at_ms.saturating_mul(NS_PER_MS)));
        let known = hosts.entry(host.clone()).or_insert(StoredHost {
            host,
            segments: 0,
            bytes: 0,
            from,
            to,
        });
        known.segments += 1;
        known.bytes = known.bytes.saturating_add(bytes);
        known.from = known.from.min(from);
        known.to = known.to.max(to);
    }
    Ok(hosts.into_values().collect())
}
