//! Segments of rings in object stores, from where windows of them are collected.
//!
//! A segment is one object, a tar file of its tables, below a folder that is named by its host. An object appears whole or
//! not at all. Its name says of which time it is, so that a window is found by listing names. The store's own rules say
//! how long objects stay.
//!
//! - [`Store`]: where objects go, by a URL.
//! - [`ObjectName`]: what the name of an object says.
//! - [`push()`]: puts segments of a ring into a store that are not there.
//! - [`window()`]: of one host what the store has of a time, as `luc-fleet window` sends it.
//! - [`stored()`]: which hosts a store has, and of which time.

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
