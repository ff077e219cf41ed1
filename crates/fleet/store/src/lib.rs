//! Puts segments of rings into object stores, and collects windows of them.
//!
//! A segment is one object: a tar file of its tables, below a folder with the name of its host. An object appears whole
//! or not at all. Its name has its time, so that a window is found by listing names. The store's own rules say how long
//! objects stay.
//!
//! - [`Store`]: a folder of a store, by its URL.
//! - [`ObjectName`]: name of an object, with its segment and time.
//! - [`push()`]: puts segments of a ring that are missing into a store.
//! - [`window()`]: streams one host's segments of a window, as `luc-fleet window` does.
//! - [`stored()`]: lists the hosts in a store, with their times.

mod error;
mod name;
mod push;
mod store;
mod stored;
mod window;

pub use error::StoredError;
pub use name::ObjectName;
pub use push::{Pushed, push};
pub use store::Store;
pub use stored::{StoredHost, stored};
pub use window::window;
