//! Brings services that systemd starts into the gate, unchanged: `luc enable`, `disable` and `unit_status`.
//!
//! A service is enabled by one drop-in beside its unit, which systemd reads. There are two ways. The dynamic loader
//! puts the gate's library into the service's programs. Or `luc-exec` puts them under a filter of system calls, and
//! `lucd` serves its listener.
//!
//! Pure, so that all of it can be tested without systemd:
//!
//! - [`unit_settings`]: a unit by `systemctl show`; [`unit_file`]: a unit by its files.
//! - [`command_line_words`]: divides a command line as systemd does, and changes no word.
//! - [`enable_plan`]: makes the drop-in from these, or says why there is none.
//!
//! With the system:
//!
//! - [`systemctl`]: asks systemd; [`unit_facts`]: collects the facts that a plan is made from.
//! - [`drop_in`]: the file, written and removed as a whole.
//! - [`enable_units`]: plans, files and reloads for several units, all of them or none.
//! - [`daemon`]: serves the notified ones.
//! - [`containers`]: a profile of system calls by which a container's runtime hands its filter to the daemon.
//! - [`attach_process`]: hands a running process over to the daemon.
//! - [`unit_status`]: the reached processes of a unit, and the figures of their calls.
//!
//! # From a unit to a service under the gate
//!
//! 1. [`systemctl`] asks systemd; [`unit_facts`] has all that a plan is made of.
//! 2. [`enable_plan`] is pure: `enable_plan/library_way` and `enable_plan/notifier_way` say what the drop-in contains.
//! 3. [`enable_units`] writes the drop-ins of several units, or none.
//! 4. With the library nobody is above the service. `luc-exec prepare` makes the shared files as the service's user;
//!    the library finds them by the unit's name.
//! 5. With notifications `luc-exec notify` hands its listener to `lucd`; `luc_notify::service_notifier` has both ends.
//!
//! # From a profile to a container that is served
//!
//! In [`containers`], `seccomp_profile` derives a seccomp profile and is pure; `runtime_support` asks what a runtime
//! can; `container_state` reads what a runtime says of a container. In `luc-notify`, `container_runtime` is the keeper
//! that takes a runtime's connection. `container_handover` is the end that `lucd` has, `overlay_devices` the file
//! system below an overlay. `daemon/containers` serves them and `unit_status/containers` finds them. [`attach_process`]
//! hands a running process over in the same way: a stopped thread of it installs the filter.
//!
//! `crates/luc/tests/e2e/enable` boots systemd in namespaces over this system's files. That takes a second, where
//! emulation takes minutes. Its kernel and its journals are those of the host.

#[macro_use]
extern crate luc_units;

pub mod attach_process;
pub mod command_line_words;
pub mod containers;
pub mod daemon;
pub mod drop_in;
pub mod enable_plan;
pub mod enable_units;
mod error;
pub mod systemctl;
pub mod unit_facts;
pub mod unit_file;
pub mod unit_settings;
pub mod unit_status;

pub use enable_plan::SOCKET;
pub use error::ServiceError;
