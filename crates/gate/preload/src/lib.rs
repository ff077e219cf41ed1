//! Interposes fsync, fdatasync and msync.
