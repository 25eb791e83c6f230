//! When to ask the API server again whether it serves a group version.
//!
//! Nothing announces that a kind is served. But the definition that brings it changes when it is
//! established, and a watch shows that: so one question is asked soon after each such change, and
//! more ever more rarely in case it is somebody else who brings the kind. One is asked at a time, the
//! one that is due the longest: a server that is busy establishing kinds is asked less.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::Instant;

/// Delay after a sign that the answer may have changed: the server needs a moment, and a payload's
/// definitions come by the dozen.
const DELAY_MIN: Duration = Duration::from_millis(20);
/// Longest delay between two questions about the same group version.
const DELAY_MAX: Duration = Duration::from_secs(10);

/// A group and one of its versions.
pub(crate) type GroupVersion = (String, String);

struct PollState {
    at: Instant,
    delay: Duration,
}

/// The group versions that something waits for.
#[derive(Default)]
pub(crate) struct DiscoveryPoller {
    waiting: BTreeMap<GroupVersion, PollState>,
    /// What is being asked now, whether something still waits for it or not.
    asked: Option<GroupVersion>,
}

impl DiscoveryPoller {
    /// Sets what is waited for.
    pub(crate) fn want(&mut self, wanted: &BTreeSet<GroupVersion>, now: Instant) {
        self.waiting.retain(|version, _| wanted.contains(version));
        for version in wanted {
            self.waiting
                .entry(version.clone())
                .or_insert_with(|| PollState { at: now + DELAY_MIN, delay: DELAY_MIN * 2 });
        }
    }

    /// A definition of this group changed.
    pub(crate) fn hint(&mut self, group: &str, now: Instant) {
        for (_, poll) in self.waiting.iter_mut().filter(|((of, _), _)| of == group) {
            poll.at = poll.at.min(now + DELAY_MIN);
            poll.delay = DELAY_MIN * 2;
        }
    }

    /// What to ask now; it counts as being asked until it is answered.
    pub(crate) fn due(&mut self, now: Instant) -> Option<GroupVersion> {
        let (version, _) = self.next().filter(|(_, poll)| poll.at <= now)?;
        self.asked = Some(version.clone());
        self.asked.clone()
    }

    /// An answer came, whatever it was.
    pub(crate) fn answered(&mut self, version: &GroupVersion, now: Instant) {
        self.asked = None;
        if let Some(poll) = self.waiting.get_mut(version) {
            poll.at = now + poll.delay;
            poll.delay = (poll.delay * 2).min(DELAY_MAX);
        }
    }

    /// When something is to be asked next; `None` if there is nothing, or an answer comes first.
    pub(crate) fn next_at(&self) -> Option<Instant> {
        self.next().map(|(_, poll)| poll.at)
    }

    fn next(&self) -> Option<(&GroupVersion, &PollState)> {
        let waiting = self.waiting.iter().filter(|_| self.asked.is_none());
        waiting.min_by_key(|(_, poll)| poll.at)
    }
}

#[cfg(test)]
mod tests {
    //! Soon after a sign, then ever more rarely, and one at a time.

    use super::*;

    fn version(group: &str) -> GroupVersion {
        (group.to_owned(), "v1".to_owned())
    }

    #[test]
    fn a_question_is_asked_soon_then_more_rarely_and_soon_again_after_a_sign() {
        let start = Instant::now();
        let at = |milliseconds| start + Duration::from_millis(milliseconds);
        let version = version("example.com");
        let wanted = BTreeSet::from([version.clone()]);
        let mut poller = DiscoveryPoller::default();
        poller.want(&wanted, start);
        assert_eq!(poller.due(at(19)), None);
        assert_eq!(poller.due(at(20)).as_ref(), Some(&version));
        assert_eq!(poller.due(at(500)), None, "it is being asked");
        poller.answered(&version, at(21));
        assert_eq!(poller.next_at(), Some(at(61)), "after twice the delay");
        assert_eq!(poller.due(at(61)).as_ref(), Some(&version));
        poller.answered(&version, at(91));
        assert_eq!(poller.next_at(), Some(at(171)), "after twice that");
        poller.hint("example.org", at(92));
        assert_eq!(poller.next_at(), Some(at(171)), "a sign of something else");
        poller.hint("example.com", at(92));
        assert_eq!(poller.next_at(), Some(at(112)), "a sign");
        poller.hint("example.com", at(102));
        assert_eq!(poller.next_at(), Some(at(112)), "no later than it would be anyway");
        poller.want(&BTreeSet::new(), at(300));
        assert_eq!(poller.next_at(), None);
    }

    #[test]
    fn one_question_is_asked_at_a_time_and_the_oldest_first() {
        let start = Instant::now();
        let at = |milliseconds| start + Duration::from_millis(milliseconds);
        let wanted: BTreeSet<GroupVersion> = ["a", "b", "c"].map(version).into();
        let mut poller = DiscoveryPoller::default();
        poller.want(&wanted, start);
        assert_eq!(poller.due(at(20)), Some(version("a")));
        assert_eq!(poller.due(at(20)), None);
        assert_eq!(poller.next_at(), None, "an answer comes first");
        poller.answered(&version("a"), at(30));
        assert_eq!(poller.due(at(100)), Some(version("b")), "it is due longer than the other");
        poller.want(&BTreeSet::new(), at(101));
        poller.want(&wanted, at(103));
        assert_eq!(poller.due(at(200)), None, "one is still being asked");
        poller.answered(&version("b"), at(201));
        assert_eq!(poller.due(at(202)), Some(version("a")));
    }
}
