//! The library's start: run by the dynamic loader before `main`, single-threaded.
//!
//! Most programs never synchronize, so only the environment is copied here, which a program may overwrite. All else
//! waits until the first synchronization.

use core::ffi::{CStr, c_char, c_int};

use luc_rounds::environment_names::devices_from_text;
use luc_rounds::shared_file::SharedPath;
use luc_rounds::{CallSettings, GatePolicy};

use crate::environment_variables::{EnvironmentVariables, number, user};
use crate::process_state::{self, CountOnlyDevices, GateMemory, PreparedProcess};
use crate::{real_functions, systemd_unit, weak_symbols};

#[used]
// SAFETY: the loader calls each entry of this section once. Some pass a C program's three arguments, others
// nothing; both are C functions' calls.
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn(c_int, *const *const c_char, *const *const c_char) = start;

extern "C" fn start(_: c_int, _: *const *const c_char, given: *const *const c_char) {
    real_functions::resolve();
    // Before glibc's own start its variable is null, and the third argument is what it will be.
    let environment = weak_symbols::environment();
    let environment = if environment.is_null() { given } else { environment };
    // SAFETY: the process' environment.
    let variables = unsafe { EnvironmentVariables::read(environment) };
    if variables.notified.is_some() {
        process_state::be_notified();
    } else if let Some(prepared) = of_run(&variables).or_else(|| systemd_unit::prepare(&variables))
    {
        process_state::prepare(prepared);
    }
}

/// The state of a process below `luc run`.
fn of_run(variables: &EnvironmentVariables) -> Option<PreparedProcess> {
    let path = |text: &CStr| SharedPath::new(&[text.to_bytes()]);
    let settings = CallSettings {
        policy: GatePolicy::from_environment(variables.policy?.to_str().ok()?)?,
        longest_wait_ns: number(variables.longest_wait_ns?)?,
    };
    let mut count_only = CountOnlyDevices::default();
    if let Some(text) = variables.count_only.and_then(|text| text.to_str().ok()) {
        devices_from_text(text).for_each(|device| count_only.add(device));
    }
    Some(PreparedProcess {
        settings,
        memory: GateMemory::Named {
            rounds: path(variables.rounds?)?,
            figures: variables.figures.and_then(path),
            guests: variables.guests.and_then(number),
            owner: user(),
        },
        count_only,
        known_filters: number(variables.filters?)?,
    })
}
