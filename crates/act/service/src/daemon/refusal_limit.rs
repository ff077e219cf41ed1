//! Limits the attempts of users who connect and are not served: the socket is open to all, because services run as all
//! kinds of users.

use std::time::{Duration, Instant};

use super::daemon_log::say;

/// Maximum number of refusals of a user in a window. After it, the user's connections are ignored until the window
/// ends.
const MAX_REFUSALS: u32 = 16;

/// Maximum number of users that are remembered in a window. Further ones share one count.
const MAX_USERS: usize = 64;

/// Length of a window, in which a reason is logged once.
const WINDOW_LENGTH: Duration = Duration::from_secs(1);

/// Refusals and reasons of the current window.
#[derive(Debug, Default)]
pub(super) struct RefusalLimit {
    began: Option<Instant>,
    /// Number of refusals by user. `None` stands for unknown users, the first entry for those beyond the maximum.
    refusals: Vec<(Option<u32>, u32)>,
    /// Reasons that were logged, each with its further occurrences.
    told: Vec<(String, u32)>,
    /// Number of ignored connections, in all windows.
    ignored: u32,
}

impl RefusalLimit {
    /// Whether a user is listened to. Root always is.
    pub(super) fn listens(&mut self, user: Option<u32>) -> bool {
        self.turn(Instant::now());
        user == Some(0) || *self.count(user) < MAX_REFUSALS
    }

    /// Counts an ignored connection. Returns whether `many` of them are complete.
    pub(super) fn has_ignored(&mut self, many: u32) -> bool {
        self.ignored = self.ignored.wrapping_add(1);
        self.ignored.is_multiple_of(many)
    }

    /// Counts a refusal, and logs its reason.
    pub(super) fn refuse(&mut self, user: Option<u32>, reason: &str) {
        *self.count(user) += 1;
        let reason = kind_of(reason);
        if let Some((_, more)) = self.told.iter_mut().find(|(told, _)| *told == reason) {
            *more += 1;
        } else if self.told.len() < MAX_USERS {
            say(format_args!("not served: {reason}"));
            self.told.push((reason, 0));
        }
    }

    /// Begins a new window if the last one is over.
    fn turn(&mut self, now: Instant) {
        let is_over = |began: Instant| now.duration_since(began) >= WINDOW_LENGTH;
        if self.began.is_none_or(is_over) {
            self.began = Some(now);
            self.refusals.clear();
            for (reason, more) in self.told.drain(..).filter(|(_, more)| *more > 0) {
                say(format_args!("not served, {more} times more: {reason}"));
            }
        }
    }

    fn count(&mut self, user: Option<u32>) -> &mut u32 {
        let is_full = self.refusals.len() >= MAX_USERS;
        let known = self.refusals.iter().position(|(known, _)| *known == user);
        let index = known.unwrap_or_else(|| {
            if is_full {
                return 0;
            }
            self.refusals.push((user, 0));
            self.refusals.len() - 1
        });
        &mut self.refusals[index].1
    }
}

/// The reason without the numbers of processes, which are all different.
fn kind_of(reason: &str) -> String {
    let words = reason.split(' ').filter(|word| word.parse::<u32>().is_err());
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_who_is_refused_again_and_again_is_not_listened_to() {
        let mut patience = RefusalLimit::default();
        let mut listened = 0;
        let mut turns = 0;
        for connection in 0..1000 {
            turns +=
                u32::from(patience.began.is_some_and(|began| began.elapsed() >= WINDOW_LENGTH));
            if patience.listens(Some(5)) {
                listened += 1;
                patience.refuse(Some(5), &format!("process {connection} belongs to no service"));
            }
        }
        assert!(listened <= MAX_REFUSALS * (turns + 1));
        assert!(patience.told.len() <= 1);
        // Others are, and root.
        assert!(patience.listens(Some(6)) && patience.listens(Some(0)));
        let later = Instant::now() + WINDOW_LENGTH;
        patience.turn(later);
        assert!(patience.told.is_empty() && *patience.count(Some(5)) == 0);
    }

    #[test]
    fn users_without_end_are_not_remembered() {
        let mut patience = RefusalLimit::default();
        for user in 0..10_000 {
            patience.refuse(Some(user), &format!("reason {user}x"));
        }
        assert!(patience.refusals.len() <= MAX_USERS && patience.told.len() <= MAX_USERS);
    }
}
