//! Puts segments of rings into object stores, and collects windows of them.
//!
//! A segment is one object: a tar file of its tables, below a folder with the name of its host. An object appears whole
//! or not at all. Its name has its time, so that a window is found by listing names. The store's own rules say how long
//! objects stay.
//!
//! - [`ObjectStoreFolder`]: a folder of a store, by its URL.
//! - [`ObjectName`]: name of an object, with its segment and time.
//! - [`push()`]: puts segments of a ring that are missing into a store.
//! - [`window()`]: streams one host's segments of a window, as `luc-fleet window` does.
//! - [`stored()`]: lists the hosts in a store, with their times.

mod error;
mod object_name;
mod push_segments;
mod store;
mod stored_hosts;
mod stream_window;

pub use error::StoredError;
pub use object_name::ObjectName;
pub use push_segments::{PushProgress, push};
pub use store::ObjectStoreFolder;
pub use stored_hosts::{StoredHost, stored};
pub use stream_window::window;
