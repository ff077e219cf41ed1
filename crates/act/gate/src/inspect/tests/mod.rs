//! Inspection of programs made for the purpose and of real mounts.

mod mounted;
mod programs;
