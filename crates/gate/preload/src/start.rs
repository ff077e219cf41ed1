//! The library's start: run by the dynamic loader before `main`, single-threaded.
//!
//! Most programs never synchronize, so nothing is done here that can wait until they do: only the environment is
//! copied, which a program may write over.

use core::ffi::{CStr, c_char, c_int};

use luc_rounds::environment::{
    COUNT_ONLY, FIGURES, FILTERS, GUESTS, LONGEST_WAIT_NS, NOTIFIED, POLICY, ROUNDS, STARTED, UNIT,
    devices_from_text,
};
use luc_rounds::memory::SharedPath;
use luc_rounds::{Policy, Settings, sys};

use crate::process::{self, CountOnly, Memory, Prepared};
use crate::{unit, weak};

#[used]
// SAFETY: the loader calls each entry of this section once. Some pass a C program's three arguments, others
// nothing; both are C functions' calls.
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn(c_int, *const *const c_char, *const *const c_char) = start;

extern "C" fn start(_: c_int, _: *const *const c_char, given: *const *const c_char) {
    // Before glibc's own start its variable is null, and the third argument is what it will be.
    let environment = weak::environment();
    let environment = if environment.is_null() {
        given
    } else {
        environment
    };
    // SAFETY: the process' environment.
    let variables = unsafe { Variables::read(environment) };
    if variables.notified.is_some() {
        process::be_notified();
    } else if let Some(prepared) = of_run(&variables).or_else(|| unit::prepare(&variables)) {
        process::prepare(prepared);
    }
}

/// What the environment has for the library.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Variables {
    rounds: Option<&'static CStr>,
    policy: Option<&'static CStr>,
    figures: Option<&'static CStr>,
    longest_wait_ns: Option<&'static CStr>,
    count_only: Option<&'static CStr>,
    guests: Option<&'static CStr>,
    notified: Option<&'static CStr>,
    pub(crate) filters: Option<&'static CStr>,
    pub(crate) unit: Option<&'static CStr>,
    pub(crate) started: Option<&'static CStr>,
}

impl Variables {
    /// # Safety
    ///
    /// `environment` is null or a list of C strings that ends in null, and stays until the end of [`start`].
    unsafe fn read(environment: *const *const c_char) -> Self {
        let mut variables = Self::default();
        if environment.is_null() {
            return variables;
        }
        let mut at = environment;
        loop {
            // SAFETY: not beyond the list's null.
            let text = unsafe { *at };
            if text.is_null() {
                return variables;
            }
            // SAFETY: a C string, of which the first two letters tell most variables apart.
            let head = unsafe { [*text as u8, if *text == 0 { 0 } else { *text.add(1) as u8 }] };
            if matches!(&head, b"LU" | b"SY") {
                // SAFETY: as above.
                variables.take(unsafe { CStr::from_ptr(text) });
            }
            // SAFETY: not beyond the list's null.
            at = unsafe { at.add(1) };
        }
    }

    fn take(&mut self, text: &'static CStr) {
        let places = [
            (ROUNDS, &mut self.rounds),
            (POLICY, &mut self.policy),
            (FIGURES, &mut self.figures),
            (LONGEST_WAIT_NS, &mut self.longest_wait_ns),
            (COUNT_ONLY, &mut self.count_only),
            (GUESTS, &mut self.guests),
            (NOTIFIED, &mut self.notified),
            (FILTERS, &mut self.filters),
            (UNIT, &mut self.unit),
            (STARTED, &mut self.started),
        ];
        let bytes = text.to_bytes_with_nul();
        for (name, place) in places {
            let value = bytes
                .strip_prefix(name.as_bytes())
                .and_then(|rest| rest.strip_prefix(b"="))
                .and_then(|value| CStr::from_bytes_with_nul(value).ok());
            if place.is_none() && value.is_some() {
                *place = value;
            }
        }
    }
}

/// The number in a variable's text; `None` if it is none.
pub(crate) fn number<N: core::str::FromStr>(text: &CStr) -> Option<N> {
    text.to_str().ok()?.parse().ok()
}

/// What a process below `luc run` has of it.
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

/// The effective user that this process was started as.
pub(crate) fn user() -> u32 {
    weak::user_at_start().unwrap_or_else(sys::user)
}
