//! The search twin: a small scale-out search service, made to be looked at.
//!
//! It has the shape of the paper's service. A front end scatters a query to back ends, each with a partition of the
//! corpus. It gathers and merges their best documents, and asks the owners of the best for snippets. The [`truth`]
//! records what really happened: each message, each piece of work, each planted trouble. It shows how right a tool is
//! that only looks from outside. The twin is no part of the product.
//!
//! [`RunOptions`] runs all of it in network namespaces; [`truth::Folder`] reads what a run left.
//!
//! # Where the parts are
//!
//! - The service: `corpus` draws documents and queries, `engine` is a partition's index, `wire` the messages.
//!   `back_end`, `front_end` and `client` are the roles; `process` is what they have in common. `serve` has the ways
//!   in which threads hand requests over, `call` the ways to ask.
//! - The truth: `link` notes each message with its place in the stream, `log` keeps rows in memory until the end.
//!   Rows and reader are in `luc-twin-truth`, which needs no service.
//! - The troubles: a file each in `plant/`. They begin and end by the number of searches (`progress`) and not by
//!   time. So they meet requests on any machine.
//! - A run: `run` starts the hosts in network namespaces without names, which `luc-network` links. All that a run
//!   makes belongs to its processes, which the kernel kills when the run ends. Only a cgroup has a name; `run/cgroup`
//!   removes it.

mod back_end;
mod call;
mod client;
mod corpus;
mod engine;
mod error;
mod fatal;
mod front_end;
mod hit;
mod link;
mod log;
mod neighbour;
mod network;
mod plant;
mod postings;
mod process;
mod run;
mod serve;
mod socket;
mod spec;
mod sync;
mod wire;

use luc_host::kernel_clocks as clock;

pub use back_end::BackEndOptions;
pub use client::{ClientOptions, Loop};
pub use corpus::Corpus;
pub use engine::Engine;
pub use error::TwinError;
pub use front_end::FrontEndOptions;
pub use hit::Hit;
pub use luc_twin_truth as truth;
pub use neighbour::NeighbourOptions;
pub use process::{DEFAULT_ROWS, ProcessOptions};
pub use run::{RunOptions, remove_cgroup_at_end};
pub use serve::{Answerer, Serve};
pub use spec::Spec;
