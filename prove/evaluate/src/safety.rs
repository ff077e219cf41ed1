//! Shared code of the parts on `luc.ko`'s safety, `kernel-powercut`, `kernel-cycles` and `kernel-stress`: guests with
//! the module, and runs that continue an interrupted evaluation.

pub(super) mod cycles;
pub(super) mod guest;
pub(super) mod powercut;
pub(super) mod stress;
