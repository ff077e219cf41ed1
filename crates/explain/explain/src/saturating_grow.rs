/// Saturating addition in place.
pub(crate) trait Grow {
    fn grow(&mut self, more: u64);
}

impl Grow for u64 {
    fn grow(&mut self, more: u64) {
        *self = self.saturating_add(more);
    }
}
