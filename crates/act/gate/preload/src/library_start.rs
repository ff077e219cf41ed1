//! The library's start: run by the dynamic loader before `main`, single-threaded.
//!
//! Most programs never synchronize, so only the environment is copied here, which a program may overwrite. All else waits
//! until the first synchronization.

use core::ffi::{CStr, c_char, c_int};

use luc_rounds::environment::devices_from_text;
use luc_rounds::memory::SharedPath;
use luc_rounds::{Policy, Settings};

use crate::process::{self, CountOnly, Memory, Prepared};
use crate::variables::{Variables, number, user};
use crate::{real, unit, weak};

#[used]
// SAFETY: the loader calls each entry of this section once. Some pass a C program's three arguments, others
// nothing; both are C functions' calls.
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn(c_int, *const *const c_char, *const *const c_char) = start;

extern "C" fn start(_: c_int, _: *const *const c_char, given: *const *const c_char) {
    real::resolve();
    // Before glibc's own start its variable is null, and the third argument is what it will be.
    let environment = weak::environment();
    let environment = if environment.is_null() { given } else { environment };
    // SAFETY: the process' environment.
    let variables = unsafe { Variables::read(environment) };
    if variables.notified.is_some() {
        process::be_notified();
    } else if let Some(prepared) = of_run(&variables).or_else(|| unit::prepare(&variables)) {
        process::prepare(prepared);
    }
}

/// The state of a process below `luc run`.
fn of_run(variables: &Variables) -> Option<Prepared> {
    let path = |text: &CStr| SharedPath::new(&[text.to_bytes()]);
    let settings = Settings {
        policy: Policy::from_environment(variables.policy?.to_str().ok()?)?,
        longest_wait_ns: number(variables.longest_wait_ns?)?,
    };
    let mut count_only = CountOnly::default();
    if let Some(text) = variables.count_only.and_then(|text| text.to_str().ok()) {
        devices_from_text(text).for_each(|device| count_only.add(device));
    }
    Some(Prepared {
        settings,
        memory: Memory::Named {
            rounds: path(variables.rounds?)?,
            figures: variables.figures.and_then(path),
            guests: variables.guests.and_then(number),
            owner: user(),
        },
        count_only,
        known_filters: number(variables.filters?)?,
    })
}
