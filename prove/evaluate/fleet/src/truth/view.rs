//! Two views of a trace: as one host, and as several.

use super::{Judged, TwinRun};

/// Selects a run's judgement under one view.
pub(super) type View = fn(&TwinRun) -> &Judged;

pub(super) const VIEWS: [(&str, View); 2] =
    [("as one host", |run| &run.one_host), ("as four hosts", |run| &run.hosts)];
