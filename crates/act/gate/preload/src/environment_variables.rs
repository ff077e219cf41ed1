//! Variables of the environment for the library.

use core::ffi::{CStr, c_char};

use luc_rounds::call_path_syscalls;
use luc_rounds::environment_names::{
    COUNT_ONLY, FIGURES, FILTERS, GUESTS, LONGEST_WAIT_NS, NOTIFIED, POLICY, ROUNDS, STARTED, UNIT,
};

use crate::weak_symbols;

/// Variables of the environment for the library.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EnvironmentVariables {
    pub(crate) rounds: Option<&'static CStr>,
    pub(crate) policy: Option<&'static CStr>,
    pub(crate) figures: Option<&'static CStr>,
    pub(crate) longest_wait_ns: Option<&'static CStr>,
    pub(crate) count_only: Option<&'static CStr>,
    pub(crate) guests: Option<&'static CStr>,
    pub(crate) notified: Option<&'static CStr>,
    pub(crate) filters: Option<&'static CStr>,
    pub(crate) unit: Option<&'static CStr>,
    pub(crate) started: Option<&'static CStr>,
}

impl EnvironmentVariables {
    /// # Safety
    /// `environment` is null or a list of C strings that ends in null, and nobody changes it meanwhile.
    pub(crate) unsafe fn read(environment: *const *const c_char) -> Self {
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
            // SAFETY: a C string. Its first two letters tell most variables apart.
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

/// The effective user that this process was started as.
pub(crate) fn user() -> u32 {
    weak_symbols::user_at_start().unwrap_or_else(call_path_syscalls::user)
}
