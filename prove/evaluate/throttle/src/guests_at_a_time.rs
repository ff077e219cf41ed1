//! Work on many items, some at a time.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use luc_harness::error::EvaluateError;

/// Does `work` for each item, `jobs` at a time, in the items' order. Each result goes to `done`, on this thread.
///
/// # Errors
/// The first error of `work` or `done`. No work begins after it.
pub(crate) fn each<T: Sync, R: Send>(
    jobs: usize,
    items: &[T],
    work: impl Fn(&T) -> Result<R, EvaluateError> + Sync,
    mut done: impl FnMut(&T, R) -> Result<(), EvaluateError>,
) -> Result<(), EvaluateError> {
    let next = AtomicUsize::new(0);
    let (sender, results) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..jobs.clamp(1, items.len().max(1)) {
            let (sender, next, work) = (sender.clone(), &next, &work);
            scope.spawn(move || {
                while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if sender.send((item, work(item))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        for (item, result) in results {
            let ended = result.and_then(|result| done(item, result));
            if ended.is_err() {
                next.store(items.len(), Ordering::Relaxed);
                return ended;
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_items_are_done_and_an_error_ends_it() {
        let items: Vec<u32> = (0..50).collect();
        let mut all = Vec::new();
        let double = |item: &u32| Ok(2 * item);
        let ended = each(3, &items, double, |&item, result| {
            assert_eq!(result, 2 * item);
            all.push(item);
            Ok(())
        });
        all.sort_unstable();
        assert!(ended.is_ok() && all == items);

        let begun = AtomicUsize::new(0);
        let fail = |_: &u32| {
            begun.fetch_add(1, Ordering::Relaxed);
            Err::<(), _>(EvaluateError::Interrupted)
        };
        assert!(each(1, &items[..1], fail, |_, ()| Ok(())).is_err());
        assert_eq!(begun.into_inner(), 1);
        assert!(each(2, &[], double, |_, _| Ok(())).is_ok());
    }
}
