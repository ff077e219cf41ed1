//! Counts calls that go on and return: in the figures, in the rounds and for their callers.

use std::sync::atomic::Ordering;

use luc_gate::figures::run_figures::RoundTimes;

use super::NotifiedCalls;
use crate::held_calls::{NotifiedCall, ReleasedCall};
use crate::known_callers::AnsweredCall;
use crate::synced_file_systems::FileSystemId;

/// Maximum time between two calls of a caller for which the second one tells when the first one returned.
const MAX_CALL_INTERVAL_NS: u64 = 5_000_000_000;

impl NotifiedCalls {
    /// Counts a call of a place that goes on without a round.
    pub(super) fn count_straight(&mut self, call: &NotifiedCall, place_id: FileSystemId) {
        let needs = self.callers.file(&call.who).map(|file| file.needs);
        let (Some(place), Some(caller), Some(needs)) =
            (self.places.get(place_id), self.callers.get(call.caller), needs)
        else {
            return;
        };
        caller.has_returned();
        if let Some(figures) = place.figures {
            figures.record_unseen(call.kind, None);
        }
        let Some(of_kind) = place.rounds.map(|rounds| rounds.of(needs)) else {
            return;
        };
        of_kind.count_participant(caller.seen.of(needs));
        of_kind.complete();
        caller.has_made(AnsweredCall {
            who: call.who,
            place: place_id,
            needs,
            called_ns: call.called_ns,
            answered_ns: call.called_ns,
            joined: None,
        });
    }

    /// Counts the return of a call, as its caller has come again.
    pub(super) fn count_return(&self, made: &AnsweredCall, now_ns: u64) {
        let Some(place) = self.places.get(made.place) else {
            return;
        };
        let Some(rounds) = place.rounds else {
            return;
        };
        let of_kind = rounds.of(made.needs);
        let policy = &self.settings.policy;
        let latency_ns = now_ns.saturating_sub(made.called_ns);
        if latency_ns > MAX_CALL_INTERVAL_NS {
            return;
        }
        let beside = rounds.beside(made.needs, policy, now_ns);
        match made.joined {
            None => of_kind.returned_ungated(policy, now_ns, latency_ns, beside),
            Some(joined) => {
                if of_kind.returned_from_round(policy, &joined, beside) {
                    place.own.observe(now_ns.saturating_sub(made.answered_ns));
                    if let Some(figures) = place.figures {
                        figures.rounds.fetch_add(1, Ordering::Relaxed);
                    }
                }
            }
        }
    }

    /// Counts a call that has gone on from a round.
    pub(super) fn count_held(&mut self, gone: &ReleasedCall, now_ns: u64) {
        let ReleasedCall { held, room, joined, .. } = gone;
        room.rounds.complete();
        let place = self.places.of(held.place);
        if let Some(figures) = place.and_then(|place| place.figures) {
            let part = RoundTimes {
                written_back_ns: held.written_back_ns,
                waited_ns: joined.waited_ns,
                timed_out: joined.timed_out,
                first_to_return: false,
            };
            figures.record_unseen(held.call.kind, Some(&part));
        }
        if let (Some(index), Some(caller)) = (held.place, self.callers.get(held.call.caller)) {
            caller.has_made(AnsweredCall {
                who: held.call.who,
                place: index,
                needs: room.of,
                called_ns: held.call.called_ns,
                answered_ns: now_ns,
                joined: Some(*joined),
            });
        }
    }
}
