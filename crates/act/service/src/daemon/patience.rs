//! How often users are listened to who connect and are not served: the socket is open to all, since services run as all
//! kinds of users.

use std::time::{Duration, Instant};

use super::say::say;

/// Refusals of one user in a window, at most. Who connects after them is let go unheard until the window has ended.
const MOST_REFUSALS: u32 = 16;

/// Users that are remembered in a window, at most. Further ones share one count.
const MOST_USERS: usize = 64;

/// How long a window lasts, in which a reason is told once.
const WINDOW: Duration = Duration::from_secs(1);

/// What has happened in this window.
#[derive(Debug, Default)]
pub(super) struct Patience {
    began: Option<Instant>,
    /// Refusals by user; `None` is all whose user is not known, and those beyond the most.
    refusals: Vec<(Option<u32>, u32)>,
    /// Reasons that were told, and how often each was not.
    told: Vec<(String, u32)>,
    /// Connections of users who were not listened to, in any window.
    ignored: u32,
}

impl Patience {
    /// Whether a user is listened to. Root always is.
    pub(super) fn listens(&mut self, user: Option<u32>) -> bool {
        self.turn(Instant::now());
        user == Some(0) || *self.count(user) < MOST_REFUSALS
    }

    /// Counts a connection of a user who is not listened to; whether it is the last one of so `many`.
    pub(super) fn has_ignored(&mut self, many: u32) -> bool {
        self.ignored = self.ignored.wrapping_add(1);
        self.ignored.is_multiple_of(many)
    }

    /// Notes that a user's process is not served, and says why.
    pub(super) fn refused(&mut self, user: Option<u32>, reason: &str) {
        *self.count(user) += 1;
        let reason = kind_of(reason);
        if let Some((_, more)) = self.told.iter_mut().find(|(told, _)| *told == reason) {
            *more += 1;
        } else if self.told.len() < MOST_USERS {
            say(format_args!("not served: {reason}"));
            self.told.push((reason, 0));
        }
    }

    /// Begins a new window if the last one is over.
    fn turn(&mut self, now: Instant) {
        let is_over = |began: Instant| now.duration_since(began) >= WINDOW;
        if self.began.is_none_or(is_over) {
            self.began = Some(now);
            self.refusals.clear();
            for (reason, more) in self.told.drain(..).filter(|(_, more)| *more > 0) {
                say(format_args!("not served, {more} times more: {reason}"));
            }
        }
    }

    fn count(&mut self, user: Option<u32>) -> &mut u32 {
        let is_full = self.refusals.len() >= MOST_USERS;
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

/// A reason without the numbers of processes, which are all different.
fn kind_of(reason: &str) -> String {
    let words = reason.split(' ').filter(|word| word.parse::<u32>().is_err());
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_who_is_refused_again_and_again_is_not_listened_to() {
        let mut patience = Patience::default();
        let mut listened = 0;
        let mut turns = 0;
        for connection in 0..1000 {
            turns += u32::from(patience.began.is_some_and(|began| began.elapsed() >= WINDOW));
            if patience.listens(Some(5)) {
                listened += 1;
                patience.refused(Some(5), &format!("process {connection} belongs to no service"));
            }
        }
        assert!(listened <= MOST_REFUSALS * (turns + 1));
        assert!(patience.told.len() <= 1);
        // Others are, and root.
        assert!(patience.listens(Some(6)) && patience.listens(Some(0)));
        let later = Instant::now() + WINDOW;
        patience.turn(later);
        assert!(patience.told.is_empty() && *patience.count(Some(5)) == 0);
    }

    #[test]
    fn users_without_end_are_not_remembered() {
        let mut patience = Patience::default();
        for user in 0..10_000 {
            patience.refused(Some(user), &format!("reason {user}x"));
        }
        assert!(patience.refusals.len() <= MOST_USERS && patience.told.len() <= MOST_USERS);
    }
}
