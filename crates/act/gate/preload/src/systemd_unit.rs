//! The part of a process in a systemd unit that `luc enable` has enabled: no `luc run` is above it, so its files are
//! found by the unit's name.

use luc_rounds::environment_names::FILTERS;
use luc_rounds::fixed_path::{FixedPath, decimal};
use luc_rounds::rounds::join::LONGEST_WAIT_NS;
use luc_rounds::{CallSettings, GatePolicy, call_path_syscalls, seccomp_filter, shared_file};

use crate::environment_variables::{EnvironmentVariables, number, user};
use crate::process_state::{CountOnlyDevices, GateMemory, MappedGate, PreparedProcess};
use crate::weak_symbols;

/// The state of a process of a unit, by its environment; `None` outside of a unit, or if this process takes no part.
pub(crate) fn prepare(variables: &EnvironmentVariables) -> Option<PreparedProcess> {
    let unit = variables.unit?;
    let known_filters = known_filters(variables)?;
    let owner = user();
    let rounds = shared_file::rounds_of_unit(owner)?;
    let figures = shared_file::figures_of_unit(owner, unit)?;
    Some(PreparedProcess {
        settings: CallSettings { policy: GatePolicy::Auto, longest_wait_ns: LONGEST_WAIT_NS },
        memory: GateMemory::Mapped(MappedGate {
            rounds: shared_file::map(rounds.as_c_str()?, owner).ok()?,
            figures: shared_file::map(figures.as_c_str()?, owner).ok(),
        }),
        count_only: CountOnlyDevices::default(),
        known_filters,
    })
}

/// Number of the unit's own filters of system calls. They let the gate's calls pass: `luc enable` has checked. Only
/// systemd's own child can count them, and tells its descendants; others take part if they are under none. `None` if
/// the number cannot be read.
fn known_filters(variables: &EnvironmentVariables) -> Option<u32> {
    if let Some(of_unit) = variables.filters {
        return number(of_unit);
    }
    let is_first =
        variables.started.and_then(number::<u32>) == Some(call_path_syscalls::process_id());
    if !is_first {
        return Some(0);
    }
    let filters = seccomp_filter::filters()?;
    let text = FixedPath::<16>::new(&[decimal(filters, &mut [0; 10])])?;
    let name = FixedPath::<32>::new(&[FILTERS.as_bytes()])?;
    weak_symbols::set_variable(name.as_c_str()?, text.as_c_str()?);
    Some(filters)
}
