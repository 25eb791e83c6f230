//! Results of checks on texts, remembered: definitions repeat the same patterns and are checked more
//! than once, while compiling one pattern takes longer than all the rest of its schema.
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// How many results are kept; the release payloads that we know have some 300 patterns.
const ENTRIES_MAX: usize = 1_024;
/// Longest text whose result is kept, in bytes: together they stay under a few MiB.
const TEXT_LEN_MAX: usize = 1_024;

/// Errors by the text that was checked; `None` for a text without one.
pub(crate) struct Memo(Mutex<BTreeMap<Box<str>, Option<String>>>);

impl Memo {
    /// Nothing is remembered yet.
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }

    /// The error of a text: `check` is called unless its result is remembered, and must always return
    /// the same for the same text.
    pub(crate) fn error_of(
        &self,
        text: &str,
        check: impl FnOnce(&str) -> Option<String>,
    ) -> Option<String> {
        if text.len() > TEXT_LEN_MAX {
            return check(text);
        }
        let known =
            |memo: &Self| memo.0.lock().unwrap_or_else(PoisonError::into_inner).get(text).cloned();
        if let Some(result) = known(self) {
            return result;
        }
        // Others need not wait meanwhile.
        let result = check(text);
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= ENTRIES_MAX {
            kept.clear();
        }
        kept.insert(text.into(), result.clone());
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_checked_once() {
        let memo = Memo::new();
        let checked = std::cell::Cell::new(0);
        let check = |text: &str| {
            checked.set(checked.get() + 1);
            text.contains('!').then(|| format!("{text} shouts"))
        };
        for _ in 0..3 {
            assert_eq!(memo.error_of("a", check), None);
            assert_eq!(memo.error_of("a!", check), Some("a! shouts".to_owned()));
        }
        assert_eq!(checked.get(), 2);
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let memo = Memo::new();
        for index in 0..3 * ENTRIES_MAX {
            memo.error_of(&index.to_string(), |_| None);
        }
        memo.error_of(&"a".repeat(TEXT_LEN_MAX + 1), |_| None);
        let kept = memo.0.lock().expect("no thread has panicked");
        assert!(kept.len() <= ENTRIES_MAX && kept.keys().all(|text| text.len() <= TEXT_LEN_MAX));
    }
}
