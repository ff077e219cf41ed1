//! Part `services-kernel`: the services in a guest, with `luc.ko` and without.
//!
//! Time in it is virtual, so that a run made again on the same system is the same to the byte, however busy this machine
//! is. Repeats differ in when the run begins, and in the numbers of the file system that has the programs.

mod system;

use std::path::Path;
use std::time::Duration;

use luc_claims::report::{Page, Table, Target, number, ratio};
use luc_stats::{Interval, median, ratio_interval};
use luc_vm::Mode;
use serde_json::{Value, json};
use system::System;

use super::catalogue::{CLIENTS, SERVICES, Service};
use crate::error::EvaluateError;
use crate::guests::succeed;
use crate::harness::{Harness, missing};
use crate::progress::Progress;
use crate::runs::Runs;
use crate::safety::guest::Guests;

/// The guests' kernel.
const VERSION: &str = "6.1";
/// The system is in memory twice for a moment, and so is the disk.
const MEMORY_MIB: u32 = 6144;
/// What a boot and a run may take.
const LIMIT: Duration = Duration::from_secs(1200);
/// One run begins so much later than that of the seed before, µs: no multiple of a tick.
const SHIFT_US: usize = 1300;
/// A service is slower if the interval of its gain ends below this.
const LEAST_HIGH: f64 = 0.98;

/// A service in a guest.
struct Inside {
    name: &'static str,
    /// Packages that it needs beside its own.
    more: &'static [&'static str],
    /// Requests of each client, where they are not those on this machine.
    work: Option<f64>,
    /// How many times the work is done: a service that goes on, of which what luc.ko learns is a smaller part.
    times: u32,
}

impl Inside {
    const fn new(name: &'static str) -> Self {
        Self {
            name,
            more: &[],
            work: None,
            times: 1,
        }
    }

    /// As the page names it.
    fn title(&self) -> String {
        if self.times == 1 {
            self.name.to_owned()
        } else {
            format!("{}, {} times the work", self.name, self.times)
        }
    }

    /// The service on this machine that has the same name.
    fn service(&self) -> Result<&'static Service, EvaluateError> {
        let found = SERVICES.iter().find(|service| service.name == self.name);
        found.ok_or_else(|| missing(self.name))
    }

    /// Requests of each client.
    fn work(&self) -> Result<f64, EvaluateError> {
        Ok(self.work.unwrap_or(self.service()?.work) * f64::from(self.times))
    }

    /// Its packages.
    fn packages(&self) -> Result<Vec<&'static str>, EvaluateError> {
        let own = self.service()?.package;
        Ok(std::iter::once(own)
            .chain(self.more.iter().copied())
            .collect())
    }
}

/// How many times the work of a service is done that goes on.
const GOES_ON: u32 = 5;

const INSIDE: [Inside; 14] = [
    Inside::new("etcd, 8 servers"),
    Inside::new("etcd, 8 servers, thinking"),
    Inside::new("Redis, 8 servers"),
    Inside::new("Redis, 8 servers, thinking"),
    Inside {
        more: &["dovecot-lmtpd", "tzdata"],
        ..Inside::new("Postfix and Dovecot, 8 clients")
    },
    Inside::new("Container registry, 8 clients"),
    Inside::new("git daemon, 8 clients"),
    // Its clients are shell scripts, which take long on an emulated processor.
    Inside {
        work: Some(600.0),
        ..Inside::new("NATS JetStream, 8 publishers")
    },
    Inside::new("MariaDB, 8 clients"),
    Inside::new("MariaDB, 8 servers"),
    Inside::new("PostgreSQL, 8 servers"),
    Inside::new("SQLite, 8 writers"),
    Inside {
        times: GOES_ON,
        ..Inside::new("Redis, 8 servers, thinking")
    },
    Inside {
        times: GOES_ON,
        ..Inside::new("Container registry, 8 clients")
    },
];

/// Stock, and with the module.
const SETTINGS: [(&str, &str); 2] = [("stock", ""), ("luc.ko", "policy=auto copy_out=auto")];

pub(crate) fn run(harness: &Harness) -> Result<Page, EvaluateError> {
    let repeats = harness.options.repeats.unwrap_or(5);
    let guests = Guests::prepare(harness, VERSION)?;
    let kept = Runs::open(harness);
    let wanted: Vec<&Inside> = INSIDE
        .iter()
        .filter(|inside| harness.options.wants(&inside.title()))
        .collect();
    let mut progress = Progress::new(harness.part, wanted.len() * repeats * SETTINGS.len());
    let mut table = Table::new(&[
        "service",
        "stock, s",
        "with `luc.ko`, s",
        "gain",
        "flushes per request, stock",
        "with `luc.ko`",
    ]);
    let mut targets = Vec::new();
    for inside in wanted {
        let [stock, module] = compare(harness, &guests, &kept, inside, repeats, &mut progress)?;
        let gain = gain(&stock, &module, harness.options.seed);
        let requests = inside.work()? * CLIENTS;
        let middle = |runs: &[Value], key: &str| median(&figures(runs, key));
        let shown = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), number);
        let per_request = |runs: &[Value]| shown(middle(runs, "flushes").map(|all| all / requests));
        table.row(vec![
            inside.title(),
            shown(middle(&stock, "seconds")),
            shown(middle(&module, "seconds")),
            ratio(gain.as_ref()),
            per_request(&stock),
            per_request(&module),
        ]);
        targets.push(Target::at_least(
            format!(
                "{}: not slower: upper end of the gain's interval",
                inside.title()
            ),
            gain.map(|gain| gain.high),
            LEAST_HIGH,
        ));
    }
    Ok(Page {
        title: "Services with luc.ko, in a guest".to_owned(),
        about: format!(
            "Debian's packages, unchanged, in a virtual machine with Linux {release} and one processor of 1,000 MIPS, in \
             virtual time, on ext4 on a lagdisk that takes 20 µs for a request and 6 ms for a flush: without the module, \
             and with `policy=auto copy_out=auto`. The programs, their clients, their work and what is checked are those \
             of [services](services.md), but that NATS gets 600 messages from each client, and that two services are there \
             once more with five times the work, as ones that go on. The system in the guest is made \
             of the packages of this machine that the service needs. Dovecot's LMTP alone and RabbitMQ are not here. A \
             time is the clients'; it is not to be compared with that page's, whose processors are real ones. {repeats} \
             runs of each, which begin at different moments, each with an image of the system made anew whose numbers \
             (UUID and seed of its hashes) are other ones; the gain is the ratio of the medians, with the 95 % \
             bootstrap interval.",
            release = guests.release()
        ),
        tables: vec![("Times and gains:".to_owned(), table)],
        targets,
    })
}

/// Makes the runs of a service, of each setting.
fn compare(
    harness: &Harness,
    guests: &Guests,
    kept: &Runs<'_>,
    inside: &Inside,
    repeats: usize,
    progress: &mut Progress,
) -> Result<[Vec<Value>; SETTINGS.len()], EvaluateError> {
    let mut of_settings = SETTINGS.map(|_| Vec::new());
    // They are made when the first run needs them.
    let mut system: Option<System<'_>> = None;
    for repeat in 0..repeats {
        let mut image = None;
        for ((setting, module), made) in SETTINGS.iter().zip(&mut of_settings) {
            let key = json!({ "service": inside.title(), "setting": setting, "repeat": repeat, "work": inside.work()? });
            let result = kept.get(&key, || {
                let system = match &mut system {
                    Some(system) => system,
                    None => system.insert(System::of(harness, &inside.packages()?)?),
                };
                let image = match &mut image {
                    Some(image) => image,
                    None => image.insert(system.image(repeat)?),
                };
                boot(harness, guests, image, inside, module, repeat)
            })?;
            progress.step(&format!(
                "{}, {setting}: {} s",
                inside.title(),
                result["seconds"]
            ));
            made.push(result);
        }
    }
    Ok(of_settings)
}

/// Boots a guest with this system and runs the service once.
fn boot(
    harness: &Harness,
    guests: &Guests,
    system: &Path,
    inside: &Inside,
    module: &str,
    repeat: usize,
) -> Result<Value, EvaluateError> {
    let service = inside.service()?;
    let (script, text) = service.script;
    let vm = guests
        .machine(LIMIT)
        .mode(Mode::VirtualTime {
            shift: 0,
            processors: 1,
        })
        .memory_mib(MEMORY_MIB)
        .file("/root/system.img", system);
    let vm = service
        .shared
        .iter()
        .fold(vm, |vm, (name, text)| {
            vm.content(format!("/root/{name}"), *text)
        })
        .content(format!("/root/{script}"), text)
        .variable("SCRIPT", script)
        .variable("MODULE", module)
        .variable("NAP_US", &(1 + repeat * SHIFT_US).to_string())
        .variable("SERVICE_WORK", &inside.work()?.to_string())
        .variable("SERVICE_INSTANCES", &service.instances.to_string())
        .variable("SERVICE_SEED", &harness.options.seed.to_string());
    let vm = if service.think_ms > 0 {
        vm.variable("SERVICE_THINK_MS", &service.think_ms.to_string())
    } else {
        vm
    };
    let vm = vm.script(include_str!("guest.sh"));
    let outcome = succeed(&vm, &inside.title())?;
    let read = |name: &str| outcome.file(name).ok_or_else(|| missing(name));
    let figure = |name: &str| -> Result<f64, EvaluateError> {
        read(name)?.trim().parse().map_err(|_| missing(name))
    };
    Ok(json!({
        "seconds": figure("phase")? / 1e6,
        "flushes": figure("flushes")?,
        "journal": read("journal")?.lines().next(),
        "holds": if module.is_empty() { None } else { Some(figure("holds")?) },
        "state": outcome.file("state").map(|state| state.trim().to_owned()),
        "release": guests.release(),
        "wall_s": outcome.wall.as_secs(),
    }))
}

fn figures(runs: &[Value], key: &str) -> Vec<f64> {
    runs.iter().filter_map(|run| run[key].as_f64()).collect()
}

fn gain(stock: &[Value], module: &[Value], seed: u64) -> Option<Interval> {
    ratio_interval(
        &figures(stock, "seconds"),
        &figures(module, "seconds"),
        seed,
    )
    .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_service_in_a_guest_is_one_of_those_on_this_machine() {
        for inside in INSIDE {
            assert!(inside.service().is_ok(), "{}", inside.name);
        }
    }

    #[test]
    fn a_gain_is_the_stock_time_over_the_other() {
        let runs = |seconds: f64| vec![json!({ "seconds": seconds }); 3];
        assert_eq!(
            gain(&runs(3.0), &runs(2.0), 1).map(|gain| gain.ratio),
            Some(1.5)
        );
        assert!(gain(&[], &runs(2.0), 1).is_none());
    }
}
