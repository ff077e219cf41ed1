//! The two ways in which a trace is looked at.

use super::{Judged, Run};

/// How a run is judged.
pub(super) type View = fn(&Run) -> &Judged;

pub(super) const VIEWS: [(&str, View); 2] =
    [("as one host", |run| &run.one_host), ("as four hosts", |run| &run.hosts)];
