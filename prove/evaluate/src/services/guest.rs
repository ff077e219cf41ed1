//! Parts `services-kernel` and `services-guest`: the services in a guest, with `luc.ko` or under `luc run`, and
//! without.
//!
//! Time in the guest is virtual. So a repeated run on the same system is the same to the byte, however busy the
//! machine is. Repeats differ in when the run begins, and in the numbers of the programs' file system.

mod inside;
mod measure;
mod system;

use inside::{Comparison, GuestSetting, Inside};
use measure::measure;

use crate::error::EvaluateError;
use crate::guests::Guests;
use crate::harness::Harness;

const VERSION: &str = "6.1";

/// Factor of the work of services that go on.
const GOES_ON: u32 = 5;

const REDIS_GOES_ON: Inside =
    Inside { times: GOES_ON, ..Inside::new("Redis, 8 servers, thinking") };

const INSIDE: [Inside; 14] = [
    Inside::new("etcd, 8 servers"),
    Inside::new("etcd, 8 servers, thinking"),
    Inside::new("Redis, 8 servers"),
    Inside::new("Redis, 8 servers, thinking"),
    Inside { more: &["dovecot-lmtpd", "tzdata"], ..Inside::new("Postfix and Dovecot, 8 clients") },
    Inside::new("Container registry, 8 clients"),
    Inside::new("git daemon, 8 clients"),
    // Its clients are shell scripts, which take long on an emulated processor.
    Inside { work: Some(600.0), ..Inside::new("NATS JetStream, 8 publishers") },
    Inside::new("MariaDB, 8 clients"),
    Inside::new("MariaDB, 8 servers"),
    Inside::new("PostgreSQL, 8 servers"),
    Inside::new("SQLite, 8 writers"),
    REDIS_GOES_ON,
    Inside { times: GOES_ON, ..Inside::new("Container registry, 8 clients") },
];

/// Services whose arrivals decide the result of a trial, and git's daemon, which starts a process for each call.
const UNDER_RUN: [Inside; 6] = [
    Inside::new("etcd, 8 servers"),
    Inside::new("etcd, 8 servers, thinking"),
    Inside::new("Redis, 8 servers"),
    Inside::new("Redis, 8 servers, thinking"),
    Inside::new("git daemon, 8 clients"),
    REDIS_GOES_ON,
];

const WITH_MODULE: Comparison =
    Comparison { services: &INSIDE, others: &[GuestSetting::Kernel], more: &[] };

const UNDER_LUC: Comparison = Comparison {
    services: &UNDER_RUN,
    others: &[GuestSetting::Run, GuestSetting::Notified],
    more: &["libelf1"],
};

pub(crate) fn with_module(harness: &Harness) -> Result<(), EvaluateError> {
    measure(harness, &Guests::prepare(harness, VERSION)?, &WITH_MODULE)
}

pub(crate) fn under_luc(harness: &Harness) -> Result<(), EvaluateError> {
    measure(harness, &Guests::prepare(harness, VERSION)?, &UNDER_LUC)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_service_in_a_guest_is_one_of_those_on_this_machine() {
        for inside in INSIDE.iter().chain(&UNDER_RUN) {
            assert!(inside.service().is_ok(), "{}", inside.name);
        }
    }
}
