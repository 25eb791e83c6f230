//! How releases are recorded (CVS-29, CVS-34, CVS-37, CVS-38, CVS-40).

use jiff::Timestamp;
use plimsoll_api::config::{Release, UpdateHistory, UpdateState};

use super::{Current, MAX_HISTORY, prune, record};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("a small number")
}

fn release(name: &str) -> Release {
    let (version, image) = name.split_once('@').unwrap_or((name, name));
    Release { version: version.to_owned(), image: image.to_owned(), ..Release::default() }
}

/// Records a story: each word is a release, with a `!` once it is completed; a second for each.
fn story(words: &str) -> Vec<UpdateHistory> {
    let mut history = Vec::new();
    for (second, word) in (0..).zip(words.split_whitespace()) {
        let release = release(word.trim_end_matches('!'));
        let completed = word.ends_with('!');
        let current = Current { release: &release, completed, verified: false, accepted_risks: "" };
        history = record(&history, current, at(second));
    }
    history
}

/// `B:0-3 A!:0-0`: newest first, with start and completion.
fn render(history: &[UpdateHistory]) -> String {
    let entries = history.iter().map(|entry| {
        let mark = if entry.state == UpdateState::Completed { "!" } else { "" };
        let end = entry.completion_time.map(|end| end.as_second().to_string()).unwrap_or_default();
        format!("{}{mark}:{}-{end}", entry.version, entry.started_time.as_second())
    });
    entries.collect::<Vec<_>>().join(" ")
}

fn check(words: &str, expected: &str) {
    assert_eq!(render(&story(words)), expected, "{words}");
}

#[test]
fn a_release_is_recorded_when_begun_completed_and_left() {
    check("A", "A:0-");
    check("A A A!", "A!:0-2");
    check("A A! A!", "A!:0-1");
    // A later failure does not take completion back.
    check("A! A", "A!:0-0");
    check("A! B", "B:1- A!:0-0");
    check("A B!", "B!:1-1 A:0-1");
    // CVS-37.
    check("A! B B A", "A:3- B:1-3 A!:0-0");
    check("A! B A A!", "A!:2-3 B:1-2 A!:0-0");
}

#[test]
fn a_clock_that_is_set_back_puts_no_end_before_its_beginning() {
    let mut history = Vec::new();
    for (second, word) in [(500, "A"), (600, "A!"), (100, "B"), (90, "B!"), (50, "C"), (700, "C!")]
    {
        let release = release(word.trim_end_matches('!'));
        let completed = word.ends_with('!');
        let current = Current { release: &release, completed, verified: false, accepted_risks: "" };
        history = record(&history, current, at(second));
    }
    assert_eq!(render(&history), "C!:600-700 B!:600-600 A!:500-600");
}

#[test]
fn the_same_release_is_known_by_image_then_by_version() {
    check("@img 1@img", "1:0-");
    check("1@img @img", "1:0-");
    // The same content from another registry is another release.
    check("1@a 1@b", "1:1- 1:0-1");
    check("1@img 2@img", "2:1- 1:0-1");
    let unnamed = UpdateHistory { image: String::new(), ..story("1@img").remove(0) };
    let release = release("1@img");
    let current =
        Current { release: &release, completed: false, verified: false, accepted_risks: "" };
    let history = record(&[unnamed], current, at(5));
    assert_eq!((history.len(), history[0].image.as_str()), (1, "img"));
}

#[test]
fn a_release_without_an_image_leaves_no_trace() {
    check("1@", "");
}

#[test]
fn verification_and_accepted_risks_are_never_forgotten() {
    let release = release("A");
    let current = |verified, accepted_risks| Current {
        release: &release,
        completed: false,
        verified,
        accepted_risks,
    };
    let first = record(&[], current(true, "forced"), at(0));
    let second = record(&first, current(false, ""), at(1));
    assert!(second[0].verified);
    assert_eq!(second[0].accepted_risks, "forced");
    assert_eq!(record(&second, current(false, "other"), at(2))[0].accepted_risks, "other");
}

/// Prunes a history, newest first, to 10 entries and tells which are gone.
fn check_pruned(words: &str, expected: &str) {
    let history: Vec<UpdateHistory> = words
        .split_whitespace()
        .map(|word| UpdateHistory {
            state: if word.ends_with('?') { UpdateState::Partial } else { UpdateState::Completed },
            ..story(word.trim_end_matches('?')).remove(0)
        })
        .collect();
    let mut pruned = history.clone();
    prune(&mut pruned, 10);
    let mut kept = pruned.iter().peekable();
    let gone: Vec<&str> = words
        .split_whitespace()
        .zip(&history)
        .filter(|(_, entry)| kept.next_if_eq(entry).is_none())
        .map(|(word, _)| word)
        .collect();
    assert_eq!(gone.join(" "), expected, "{words}");
}

#[test]
fn the_entry_that_tells_least_is_dropped_first() {
    // CVS-40; newest first, a `?` for a partial entry.
    check_pruned("4.3.1 4.3.0 4.2.4 4.2.3 4.2.2 4.2.1 4.2.0 4.1.4 4.1.2? 4.1.2? 4.1.1", "4.1.2?");
    check_pruned("4.3.0 4.2.2 4.2.1 4.2.0 4.1.6 4.1.5 4.1.4 4.1.3? 4.1.2 4.1.1 4.1.0", "4.1.3?");
    check_pruned("4.7.0 4.6.0 4.5.0 4.4.0 4.3.3 4.3.2 4.3.1 4.3.0 4.2.1 4.2.0 4.1.0", "4.3.1");
    check_pruned("4.10.0 4.9.0 4.8.0 4.7.0 4.6.0 4.5.0 4.4.0 4.3.0 4.2.1 4.2.0 4.1.0", "4.2.0");
    check_pruned("4.5.0 4.4.0 4.3.4 4.3.3 4.3.2 4.3.1? 4.3.0 4.2.1? 4.1.2 4.1.1 4.1.0", "4.3.1?");
    check_pruned("4.2.9? 4.2.8? 4.2.7? 4.2.6? 4.2.5? 4.2.4 4.2.3 4.2.2 4.2.1 4.2.0 4.1.0", "4.2.1");
    // Minor versions of different major versions are different.
    check_pruned("6.1.0 5.1.4 5.1.3 5.1.2 5.1.1 5.1.0 4.1.2 4.1.1? 4.1.0 4.0.1 4.0.0", "4.1.1?");
    check_pruned("4.1.0 4.0.0", "");
}

#[test]
fn the_oldest_of_two_equal_partial_entries_goes() {
    let words = "4.3.1 4.3.0 4.2.4 4.2.3 4.2.2 4.2.1 4.2.0 4.1.4 4.1.2? 4.1.2? 4.1.1";
    let mut history: Vec<UpdateHistory> = (0..)
        .zip(words.split_whitespace())
        .map(|(second, word)| UpdateHistory {
            state: if word.ends_with('?') { UpdateState::Partial } else { UpdateState::Completed },
            started_time: at(second),
            ..story(word.trim_end_matches('?')).remove(0)
        })
        .collect();
    prune(&mut history, 10);
    assert!(history.iter().any(|entry| entry.started_time == at(8)));
    assert!(history.iter().all(|entry| entry.started_time != at(9)));
}

#[test]
fn the_history_stays_bounded() {
    let words: Vec<String> = (0..250).map(|number| format!("1.{number}.0!")).collect();
    let history = story(&words.join(" "));
    assert_eq!(history.len(), MAX_HISTORY);
    assert_eq!(history[0].version, "1.249.0");
    assert_eq!(history[MAX_HISTORY - 1].version, "1.0.0");
}
