/// Saturating addition in place.
pub(crate) trait SaturatingGrow {
    fn grow(&mut self, more: u64);
}

impl SaturatingGrow for u64 {
    fn grow(&mut self, more: u64) {
        *self = self.saturating_add(more);
    }
}
