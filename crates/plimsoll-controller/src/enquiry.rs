//! When to ask the API server again whether it serves a group version.
//!
//! Nothing announces that a kind is served. But the definition that brings it changes when it is
//! established, and a watch shows that: so one question is asked soon after each such change, and
//! more ever more rarely in case it is somebody else who brings the kind. How soon depends on how
//! long the last answer took: a server that is busy establishing kinds is asked less.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::Instant;

/// Shortest delay after a sign that the answer may have changed: the server needs a moment, and a
/// payload's definitions come by the dozen.
const DELAY_MIN: Duration = Duration::from_millis(20);
/// The delay, in times of what the last answer took.
const ANSWERS_PER_DELAY: u32 = 10;
/// The most that a slow answer makes of it.
const DELAY_SLOW: Duration = Duration::from_millis(500);
/// Longest delay between two questions about the same group version.
const DELAY_MAX: Duration = Duration::from_secs(10);

/// A group and one of its versions.
pub(crate) type GroupVersion = (String, String);

struct Enquiry {
    at: Instant,
    delay: Duration,
    asked: Option<Instant>,
}

/// The group versions that something waits for.
pub(crate) struct Enquiries {
    waiting: BTreeMap<GroupVersion, Enquiry>,
    /// Delay after a sign.
    pace: Duration,
}

impl Enquiries {
    pub(crate) fn new() -> Self {
        Self { waiting: BTreeMap::new(), pace: DELAY_MIN }
    }

    /// Sets what is waited for.
    pub(crate) fn want(&mut self, wanted: &BTreeSet<GroupVersion>, now: Instant) {
        let pace = self.pace;
        self.waiting.retain(|version, _| wanted.contains(version));
        for version in wanted {
            self.waiting.entry(version.clone()).or_insert_with(|| Enquiry {
                at: now + pace,
                delay: pace * 2,
                asked: None,
            });
        }
    }

    /// A definition of this group changed.
    pub(crate) fn hint(&mut self, group: &str, now: Instant) {
        for (_, enquiry) in self.waiting.iter_mut().filter(|((of, _), _)| of == group) {
            enquiry.at = enquiry.at.min(now + self.pace);
            enquiry.delay = self.pace * 2;
        }
    }

    /// What to ask now; each counts as being asked until it is answered.
    pub(crate) fn due(&mut self, now: Instant) -> Vec<GroupVersion> {
        let due = self
            .waiting
            .iter_mut()
            .filter(|(_, enquiry)| enquiry.asked.is_none() && enquiry.at <= now);
        due.map(|(version, enquiry)| {
            enquiry.asked = Some(now);
            version.clone()
        })
        .collect()
    }

    /// An answer came, whatever it was.
    pub(crate) fn answered(&mut self, version: &GroupVersion, now: Instant) {
        let Some(enquiry) = self.waiting.get_mut(version) else {
            return;
        };
        if let Some(asked) = enquiry.asked.take() {
            self.pace = ((now - asked) * ANSWERS_PER_DELAY).clamp(DELAY_MIN, DELAY_SLOW);
        }
        enquiry.at = now + enquiry.delay;
        enquiry.delay = (enquiry.delay * 2).min(DELAY_MAX);
    }

    /// When something is to be asked next.
    pub(crate) fn next_at(&self) -> Option<Instant> {
        let waiting = self.waiting.values().filter(|enquiry| enquiry.asked.is_none());
        waiting.map(|enquiry| enquiry.at).min()
    }
}

#[cfg(test)]
mod tests {
    //! Soon after a sign, then ever more rarely, never twice at once, and less of a slow server.

    use super::*;

    #[test]
    fn a_question_is_asked_soon_then_more_rarely_and_soon_again_after_a_sign() {
        let start = Instant::now();
        let at = |milliseconds| start + Duration::from_millis(milliseconds);
        let version = ("example.com".to_owned(), "v1".to_owned());
        let wanted = BTreeSet::from([version.clone()]);
        let mut enquiries = Enquiries::new();
        enquiries.want(&wanted, start);
        assert!(enquiries.due(at(19)).is_empty());
        assert_eq!(enquiries.due(at(20)), std::slice::from_ref(&version));
        assert!(enquiries.due(at(500)).is_empty(), "it is being asked");
        enquiries.answered(&version, at(21));
        assert_eq!(enquiries.next_at(), Some(at(61)), "after twice the delay");
        assert_eq!(enquiries.due(at(61)), std::slice::from_ref(&version));
        enquiries.answered(&version, at(91));
        assert_eq!(enquiries.next_at(), Some(at(171)), "after twice that");
        enquiries.hint("example.org", at(92));
        assert_eq!(enquiries.next_at(), Some(at(171)), "a sign of something else");
        assert_eq!(enquiries.due(at(171)), std::slice::from_ref(&version));
        enquiries.answered(&version, at(201));
        enquiries.hint("example.com", at(202));
        assert_eq!(enquiries.next_at(), Some(at(361)), "no later than it would be anyway");
        enquiries.want(&BTreeSet::new(), at(300));
        assert_eq!(enquiries.next_at(), None);
        enquiries.want(&wanted, at(300));
        assert_eq!(enquiries.next_at(), Some(at(600)), "ten times what the last answer took");
    }
}
