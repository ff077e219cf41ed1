//! The part of a process in a systemd unit that `luc enable` has enabled: no `luc run` is above it, so its files are
//! found by the unit's name.

use luc_rounds::environment::FILTERS;
use luc_rounds::path::{Path, decimal};
use luc_rounds::rounds::join::LONGEST_WAIT_NS;
use luc_rounds::{Policy, Settings, memory, seccomp, sys};

use crate::process::{CountOnly, Mapped, Memory, Prepared};
use crate::variables::{Variables, number, user};
use crate::weak;

/// The state of a process of a unit, by its environment; `None` outside of a unit, or if this process takes no part.
pub(crate) fn prepare(variables: &Variables) -> Option<Prepared> {
    let unit = variables.unit?;
    let known_filters = known_filters(variables)?;
    let owner = user();
    let rounds = memory::rounds_of_unit(owner)?;
    let figures = memory::figures_of_unit(owner, unit)?;
    Some(Prepared {
        settings: Settings { policy: Policy::Auto, longest_wait_ns: LONGEST_WAIT_NS },
        memory: Memory::Mapped(Mapped {
            rounds: memory::map(rounds.as_c_str()?, owner).ok()?,
            figures: memory::map(figures.as_c_str()?, owner).ok(),
        }),
        count_only: CountOnly::default(),
        known_filters,
    })
}

/// Number of the unit's own filters of system calls. They let the gate's calls pass: `luc enable` has checked. Only systemd's
/// own child can count them, and tells its descendants; others take part if they are under none. `None` if the number cannot
/// be read.
fn known_filters(variables: &Variables) -> Option<u32> {
    if let Some(of_unit) = variables.filters {
        return number(of_unit);
    }
    let is_first = variables.started.and_then(number::<u32>) == Some(sys::process_id());
    if !is_first {
        return Some(0);
    }
    let filters = seccomp::filters()?;
    let text = Path::<16>::new(&[decimal(filters, &mut [0; 10])])?;
    let name = Path::<32>::new(&[FILTERS.as_bytes()])?;
    weak::set_variable(name.as_c_str()?, text.as_c_str()?);
    Some(filters)
}
