//! Chains of EventActions: which of them led to the change of an object, so that none triggers itself in a circle.
//!
//! An Action that an EventAction makes has the chain in [`TRIGGERED_BY_ANNOTATION`], and leaves it in what it writes,
//! with the generation that it leads to. Whoever changes the spec afterwards begins another chain.

use plimsoll_api::olm::action::{TRIGGERED_BY_ANNOTATION, TRIGGERED_GENERATION_ANNOTATION};

/// The maximum number of EventActions in a chain. Longer ones count as a circle: a reader has to follow what led to an
/// Action.
pub(super) const CHAIN_MAX: usize = 16;

/// Returns the chain that led to an object as it is, from its annotations and its generation; empty for none.
pub(super) fn chain<'a>(
    annotation: impl Fn(&str) -> Option<&'a str>,
    generation: Option<i64>,
) -> Vec<String> {
    let written = annotation(TRIGGERED_GENERATION_ANNOTATION).and_then(|it| it.parse().ok());
    let is_current = generation.is_some() && written == generation;
    let text = annotation(TRIGGERED_BY_ANNOTATION).filter(|_| is_current);
    listed(text.unwrap_or_default())
}

/// Returns the chain in the annotation of an Action, which an admission policy protects.
pub(super) fn listed(text: &str) -> Vec<String> {
    let names = text.split(',').filter(|it| !it.is_empty());
    // One more than fits is enough to tell that it is too long.
    names.take(CHAIN_MAX + 1).map(str::to_owned).collect()
}

/// Returns the chain that led to a change with a further EventAction at its end.
///
/// # Errors
///
/// When that closes a circle, with a message that shows it.
pub(super) fn extended(chain: &[String], own: &str) -> Result<Vec<String>, String> {
    if let Some(begin) = chain.iter().position(|it| it == own) {
        return Err(format!("{} -> {own}", chain[begin..].join(" -> ")));
    }
    if chain.len() >= CHAIN_MAX {
        return Err(format!("{} -> {own}, which are more than {CHAIN_MAX}", chain.join(" -> ")));
    }
    Ok(chain.iter().map(String::as_str).chain([own]).map(str::to_owned).collect())
}

/// Adds a chain to another one, empty at first, that ends in the same EventAction.
///
/// # Errors
///
/// When both together are too long, with a message that shows them.
pub(super) fn join(chain: &mut Vec<String>, other: &[String]) -> Result<(), String> {
    let mut both = chain.clone();
    let own = both.pop();
    let others = &other[..other.len().saturating_sub(1)];
    both.extend(others.iter().filter(|it| !chain.contains(it)).cloned());
    both.extend(own.or_else(|| other.last().cloned()));
    if both.len() > CHAIN_MAX {
        return Err(format!("{}, which are more than {CHAIN_MAX}", both.join(" -> ")));
    }
    *chain = both;
    Ok(())
}

#[cfg(test)]
mod tests {
    //! Chains, and what closes a circle.

    use super::*;

    fn names(text: &str) -> Vec<String> {
        text.split(' ').filter(|it| !it.is_empty()).map(str::to_owned).collect()
    }

    #[test]
    fn a_chain_counts_for_the_generation_that_was_written_with_it() {
        let check = |text: Option<&'static str>, written: Option<&'static str>, expected: &str| {
            let annotation =
                |name: &str| if name == TRIGGERED_BY_ANNOTATION { text } else { written };
            assert_eq!(chain(annotation, Some(3)), names(expected), "{text:?} {written:?}");
            // Whoever writes an object without generations could claim any chain.
            assert_eq!(chain(annotation, None), names(""), "{text:?} {written:?}");
        };
        check(None, None, "");
        check(Some("a/x"), Some("3"), "a/x");
        check(Some("a/x,b/y"), Some("3"), "a/x b/y");
        check(Some("a/x"), Some("2"), "");
        check(Some("a/x"), None, "");
        check(Some(","), Some("3"), "");
    }

    #[test]
    fn an_event_action_is_in_a_chain_once() {
        let check = |chain: &str, expected: Result<&str, &str>| {
            let found = extended(&names(chain), "a/x");
            assert_eq!(found, expected.map(names).map_err(str::to_owned), "{chain}");
        };
        check("", Ok("a/x"));
        check("b/y c/z", Ok("b/y c/z a/x"));
        check("a/x", Err("a/x -> a/x"));
        check("c/z a/x b/y", Err("a/x -> b/y -> a/x"));
        let long: Vec<String> = (0..CHAIN_MAX).map(|it| format!("n/{it}")).collect();
        assert_eq!(extended(&long[1..], "a/x").map(|it| it.len()), Ok(CHAIN_MAX));
        let message = extended(&long, "a/x").unwrap_err();
        assert!(message.ends_with("n/15 -> a/x, which are more than 16"), "{message}");
    }

    #[test]
    fn chains_of_changes_that_make_one_action_are_joined() {
        let check = |chain: &str, other: &str, expected: &str| {
            let mut found = names(chain);
            assert_eq!(join(&mut found, &names(other)), Ok(()));
            assert_eq!(found, names(expected), "{chain} and {other}");
        };
        check("", "a/x", "a/x");
        check("", "b/y a/x", "b/y a/x");
        check("a/x", "b/y a/x", "b/y a/x");
        check("b/y c/z a/x", "c/z d/w a/x", "b/y c/z d/w a/x");
        let long: Vec<String> = (0..CHAIN_MAX).map(|it| format!("n/{it}")).collect();
        let mut found = long.clone();
        assert!(join(&mut found, &names("b/y n/15")).is_err());
        assert_eq!(found, long);
    }
}
