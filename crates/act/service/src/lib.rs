//! Brings services that systemd starts into the gate, unchanged: `luc enable`, `disable` and `status`.
//!
//! A service is enabled by one drop-in beside its unit, which systemd reads. There are two ways. The dynamic loader puts the
//! gate's library into the service's programs. Or `luc-exec` puts them under a filter of system calls, and `lucd` serves its
//! listener.
//!
//! Pure, so that all of it can be tested without systemd:
//!
//! - [`settings`]: a unit by `systemctl show`; [`unit_file`]: a unit by its files.
//! - [`words`]: divides a command line as systemd does, with every word as it is written.
//! - [`plan`]: makes the drop-in from these, or says why there is none.
//!
//! With the system:
//!
//! - [`systemctl`]: asks systemd; [`facts`]: collects the facts that a plan is made from.
//! - [`drop_in`]: the file, written and removed as a whole.
//! - [`enable`]: plans, files and reloads for several units, all of them or none.
//! - [`daemon`]: serves the notified ones.
//! - [`containers`]: a profile of system calls by which a container's runtime hands its filter to the daemon.
//! - [`mod@attach`]: hands a running process over to the daemon.
//! - [`status`]: the reached processes of a unit, and the figures of their calls.

#[macro_use]
extern crate luc_units;

pub mod attach;
pub mod containers;
pub mod daemon;
pub mod drop_in;
pub mod enable;
mod error;
pub mod facts;
pub mod plan;
pub mod settings;
pub mod status;
pub mod systemctl;
pub mod unit_file;
pub mod words;

pub use error::ServiceError;
pub use plan::SOCKET;
