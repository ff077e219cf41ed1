//! Parts `services-kernel` and `services-guest`: the services of part `services` in guests.

mod catalogue;
pub(super) mod guest;
