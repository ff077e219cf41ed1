//! The trace store: rows are read back as written, also after the recorder was killed or a file was damaged.

#![allow(clippy::unwrap_used)]

mod columns;
mod damage;
mod directory;
mod schema;
mod segments;
mod store_fixtures;
