//! What the parts on `luc.ko`'s safety share: guests with the module in them, and runs that go on where
//! an interrupted evaluation ended. Parts `kernel-powercut`, `kernel-cycles` and `kernel-stress`.

pub(super) mod cycles;
pub(super) mod guest;
pub(super) mod powercut;
pub(super) mod stress;
