//! Inspection of programs made for the purpose and of real mounts.

mod mounted_journals;
mod programs;
