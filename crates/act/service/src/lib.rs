//! Services that systemd starts get the gate without a change of theirs: `luc enable`, `disable` and `status`.
//!
//! A service is enabled by one drop-in beside its unit, which systemd reads. The drop-in either has the dynamic loader
//! put the gate's library into the service's programs, or has `luc-exec` put them under a filter of system calls, whose
//! listener `lucd` serves.
//!
//! Pure, so that all of it can be tested without systemd:
//!
//! - [`settings`]: what `systemctl show` says of a unit; [`unit_file`]: what its files say.
//! - [`words`]: how systemd divides a command line, with every word as it is written.
//! - [`plan`]: from these, what the drop-in contains, or why there is none.
//!
//! With the system:
//!
//! - [`systemctl`]: asks systemd; [`facts`]: all that a plan is made of.
//! - [`drop_in`]: the file, written and removed as a whole.
//! - [`enable`]: plans, files and reloads for several units, all of them or none.
//! - [`daemon`]: serves those whose calls are notified.
//! - [`containers`]: a profile of system calls, by which a container's runtime hands its filter to the daemon.
//! - [`mod@attach`]: hands a process that runs over to the daemon.
//! - [`status`]: which of a unit's processes are reached indeed, and what became of their calls.

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
