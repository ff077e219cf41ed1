//! Parts `services-kernel` and `services-guest`: the services in a guest, with `luc.ko` or under `luc run`, and
//! without.
//!
//! Time in the guest is virtual. So a repeated run on the same system is the same to the byte, however busy the
//! machine is. Repeats differ in when the run begins, and in the numbers of the programs' file system.

mod inside;
mod measure;
mod system;

use inside::{Comparison, GuestSetting, Inside};
use luc_harness::report::Page;
use measure::measure;

use crate::error::EvaluateError;
use crate::harness::Harness;
use crate::safety::guest::Guests;

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

/// Description of the guests for the pages.
const GUEST: &str =
    "in virtual time, on ext4 on a lagdisk that takes 20 µs for a request and 6 ms for a flush";

/// Returns the description of the runs for the pages.
fn about_runs(repeats: usize) -> String {
    format!(
        "{repeats} runs of each, which begin at different moments, each with an image of the system made anew whose numbers \
         (UUID and seed of its hashes) are other ones; the gain is the ratio of the medians, with the 95 % bootstrap \
         interval."
    )
}

pub(crate) fn with_module(harness: &Harness) -> Result<Page, EvaluateError> {
    let guests = Guests::prepare(harness, VERSION)?;
    let measured = measure(harness, &guests, &WITH_MODULE)?;
    Ok(Page {
        title: "Services with luc.ko, in a guest".to_owned(),
        about: format!(
            "Debian's packages, unchanged, in a virtual machine with Linux {release} and one processor of 1,000 MIPS, \
             {GUEST}: without the module, \
             and with `policy=auto copy_out=auto`. The programs, their clients, their work and what is checked are those \
             of [services](services.md), but that NATS gets 600 messages from each client, and that two services are there \
             once more with five times the work, as ones that go on. The system in the guest is made \
             of the packages of this machine that the service needs. Dovecot's LMTP alone and RabbitMQ are not here. A \
             time is the clients'; it is not to be compared with that page's, whose processors are real ones. {runs}",
            release = guests.release(),
            runs = about_runs(measured.repeats)
        ),
        tables: vec![("Times and gains:".to_owned(), measured.table)],
        targets: measured.targets,
    })
}

pub(crate) fn under_luc(harness: &Harness) -> Result<Page, EvaluateError> {
    let guests = Guests::prepare(harness, VERSION)?;
    let measured = measure(harness, &guests, &UNDER_LUC)?;
    Ok(Page {
        title: "Services under luc run, in a guest".to_owned(),
        about: format!(
            "Some services of [services](services.md), with no noise of a shared machine: Debian's packages, unchanged, in \
             a virtual machine with Linux {release} and one processor of 1,000 MIPS, {GUEST}. They run alone, under \
             `luc run`, which reaches etcd by notifications and the others by the library, and under \
             `luc run --reach notify`; each server has a `luc run` of its own. Redis whose clients think is there once \
             more with five times the work, as a service that goes on. The processor is a slow one, so that what luc \
             itself costs weighs more than on that page. {runs}",
            release = guests.release(),
            runs = about_runs(measured.repeats)
        ),
        tables: vec![("Times and gains:".to_owned(), measured.table)],
        targets: measured.targets,
    })
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
