//! Emulated block devices.
