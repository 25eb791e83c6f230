//! When to ask the API server again whether it serves a group version.
//!
//! Nothing announces that a kind is served. But the definition that brings it changes when it is
//! established, and a watch shows that: so one question is asked soon after each such change, and
//! more ever more rarely in case it is somebody else who brings the kind.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::Instant;

/// Delay after a sign that the answer may have changed: the server needs a moment, and a payload's
/// definitions come by the dozen.
const DELAY_MIN: Duration = Duration::from_millis(200);
/// Longest delay between two questions about the same group version.
const DELAY_MAX: Duration = Duration::from_secs(10);

/// A group and one of its versions.
pub(crate) type GroupVersion = (String, String);

struct Enquiry {
    at: Instant,
    delay: Duration,
    asking: bool,
}

/// The group versions that something waits for.
#[derive(Default)]
pub(crate) struct Enquiries(BTreeMap<GroupVersion, Enquiry>);

impl Enquiries {
    /// Sets what is waited for.
    pub(crate) fn want(&mut self, wanted: &BTreeSet<GroupVersion>, now: Instant) {
        self.0.retain(|version, _| wanted.contains(version));
        for version in wanted {
            self.0.entry(version.clone()).or_insert_with(|| Enquiry {
                at: now + DELAY_MIN,
                delay: DELAY_MIN * 2,
                asking: false,
            });
        }
    }

    /// A definition of this group changed.
    pub(crate) fn hint(&mut self, group: &str, now: Instant) {
        for (_, enquiry) in self.0.iter_mut().filter(|((of, _), _)| of == group) {
            enquiry.at = enquiry.at.min(now + DELAY_MIN);
            enquiry.delay = DELAY_MIN * 2;
        }
    }

    /// What to ask now; each counts as being asked until it is answered.
    pub(crate) fn due(&mut self, now: Instant) -> Vec<GroupVersion> {
        let due = self.0.iter_mut().filter(|(_, enquiry)| !enquiry.asking && enquiry.at <= now);
        due.map(|(version, enquiry)| {
            enquiry.asking = true;
            version.clone()
        })
        .collect()
    }

    /// An answer came, whatever it was.
    pub(crate) fn answered(&mut self, version: &GroupVersion, now: Instant) {
        if let Some(enquiry) = self.0.get_mut(version) {
            enquiry.asking = false;
            enquiry.at = now + enquiry.delay;
            enquiry.delay = (enquiry.delay * 2).min(DELAY_MAX);
        }
    }

    /// When something is to be asked next.
    pub(crate) fn next_at(&self) -> Option<Instant> {
        self.0.values().filter(|enquiry| !enquiry.asking).map(|enquiry| enquiry.at).min()
    }
}

#[cfg(test)]
mod tests {
    //! Soon after a sign, then ever more rarely, and never twice at once.

    use super::*;

    #[test]
    fn a_question_is_asked_soon_then_more_rarely_and_soon_again_after_a_sign() {
        let start = Instant::now();
        let at = |milliseconds| start + Duration::from_millis(milliseconds);
        let version = ("example.com".to_owned(), "v1".to_owned());
        let wanted = BTreeSet::from([version.clone()]);
        let mut enquiries = Enquiries::default();
        enquiries.want(&wanted, start);
        assert!(enquiries.due(at(199)).is_empty());
        assert_eq!(enquiries.due(at(200)), std::slice::from_ref(&version));
        assert!(enquiries.due(at(500)).is_empty(), "it is being asked");
        enquiries.answered(&version, at(500));
        assert_eq!(enquiries.next_at(), Some(at(900)));
        assert_eq!(enquiries.due(at(900)), std::slice::from_ref(&version));
        enquiries.answered(&version, at(1000));
        assert_eq!(enquiries.next_at(), Some(at(1800)));
        enquiries.hint("example.com", at(1010));
        assert_eq!(enquiries.next_at(), Some(at(1210)));
        enquiries.want(&BTreeSet::new(), at(1220));
        assert_eq!(enquiries.next_at(), None);
    }
}
