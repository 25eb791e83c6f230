//! Where the comparison looks away, counted: a difference that is tolerated is still a difference.
//!
//! `leniencies.txt` holds a ceiling for each, for the run of the default size and seeds. A run that
//! stays below one prints by how much, so that the ceiling can be lowered; it is never raised.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// The ceilings: a name and a number on each line.
const CEILINGS: &str = include_str!("leniencies.txt");

/// A difference that does not fail the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Leniency {
    /// The real server gave no answer, as when its handler panics; the sequence ends.
    Unanswered,
    /// The real server refuses a built-in object as invalid, the embedded one does not; the
    /// sequence ends.
    OtherCode,
    /// Both refuse a built-in object as invalid, in other words.
    OtherMessage,
    /// Warnings about a built-in object differ.
    OtherWarnings,
    /// The real server alone wrote an object that the request does not change.
    WrittenOnceMore,
    /// The generations differ, of kinds where an empty list counts as a change on the real server.
    OtherGeneration,
}

impl Leniency {
    const ALL: [(Self, &'static str); 6] = [
        (Self::Unanswered, "unanswered"),
        (Self::OtherCode, "other-code"),
        (Self::OtherMessage, "other-message"),
        (Self::OtherWarnings, "other-warnings"),
        (Self::WrittenOnceMore, "written-once-more"),
        (Self::OtherGeneration, "other-generation"),
    ];
}

/// How often the comparison looked away.
#[derive(Debug, Default)]
pub(super) struct Leniencies(Mutex<BTreeMap<Leniency, usize>>);

impl Leniencies {
    pub(super) fn count(&self, leniency: Leniency) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(leniency).or_default() += 1;
    }

    /// A line for each leniency that exceeds its ceiling, and one for each that stays below it.
    pub(super) fn against_ceilings(&self) -> (Vec<String>, Vec<String>) {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        compare(&counts, CEILINGS)
    }
}

fn compare(counts: &BTreeMap<Leniency, usize>, ceilings: &str) -> (Vec<String>, Vec<String>) {
    let (mut above, mut below) = (Vec::new(), Vec::new());
    for (leniency, name) in Leniency::ALL {
        let count = counts.get(&leniency).copied().unwrap_or_default();
        let ceiling =
            ceilings.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
        let ceiling: usize = ceiling.expect("leniencies.txt has a ceiling for each");
        let line = format!("{name}: {count}, ceiling {ceiling}");
        match count.cmp(&ceiling) {
            std::cmp::Ordering::Greater => above.push(line),
            std::cmp::Ordering::Less => below.push(line),
            std::cmp::Ordering::Equal => {}
        }
    }
    (above, below)
}

#[test]
fn a_leniency_above_its_ceiling_is_named() {
    let ceilings = "unanswered 1\nother-code 0\nother-message 2\nother-warnings 0\n\
                    written-once-more 0\nother-generation 0\n";
    let counts = BTreeMap::from([(Leniency::OtherCode, 1), (Leniency::OtherMessage, 2)]);
    let (above, below) = compare(&counts, ceilings);
    assert_eq!(above, ["other-code: 1, ceiling 0"]);
    assert_eq!(below, ["unanswered: 0, ceiling 1"]);
}
