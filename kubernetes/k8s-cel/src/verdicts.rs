//! What was found out about texts before: definitions say the same patterns again and again, and
//! are looked at more than once, while compiling one takes longer than all the rest of its schema.
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// How many verdicts are kept; the release payloads that we know have some 300 patterns.
const COUNT_MAX: usize = 1_024;
/// Longest text whose verdict is kept, in bytes: together they stay under a few MiB.
const TEXT_LEN_MAX: usize = 1_024;

/// Why texts are not acceptable, as far as that was asked before.
pub(crate) struct Verdicts(Mutex<BTreeMap<Box<str>, Option<String>>>);

impl Verdicts {
    /// Nothing was asked yet.
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }

    /// What is wrong with a text by `judge`, which says the same of the same text each time.
    pub(crate) fn of(
        &self,
        text: &str,
        judge: impl FnOnce(&str) -> Option<String>,
    ) -> Option<String> {
        if text.len() > TEXT_LEN_MAX {
            return judge(text);
        }
        let known = |verdicts: &Self| {
            verdicts.0.lock().unwrap_or_else(PoisonError::into_inner).get(text).cloned()
        };
        if let Some(verdict) = known(self) {
            return verdict;
        }
        // Others need not wait meanwhile.
        let verdict = judge(text);
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= COUNT_MAX {
            kept.clear();
        }
        kept.insert(text.into(), verdict.clone());
        verdict
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_judged_once() {
        let verdicts = Verdicts::new();
        let judged = std::cell::Cell::new(0);
        let judge = |text: &str| {
            judged.set(judged.get() + 1);
            text.contains('!').then(|| format!("{text} shouts"))
        };
        for _ in 0..3 {
            assert_eq!(verdicts.of("a", judge), None);
            assert_eq!(verdicts.of("a!", judge), Some("a! shouts".to_owned()));
        }
        assert_eq!(judged.get(), 2);
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let verdicts = Verdicts::new();
        for index in 0..3 * COUNT_MAX {
            verdicts.of(&index.to_string(), |_| None);
        }
        verdicts.of(&"a".repeat(TEXT_LEN_MAX + 1), |_| None);
        let kept = verdicts.0.lock().expect("nobody has panicked");
        assert!(kept.len() <= COUNT_MAX && kept.keys().all(|text| text.len() <= TEXT_LEN_MAX));
    }
}
