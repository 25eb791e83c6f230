//! Division of texts into parts, and back.

use plimsoll_api::olm::action::{PartContent, PlannedChange};

use super::{
    PART_BYTES_MAX, STATUS_PLAN_BYTES_MAX, join, large_plan, part_name, read_plan, reference,
    split, split_at,
};

#[test]
fn texts_are_divided_between_characters() {
    let check = |text: &str, length_max: usize, expected: &[&str]| {
        assert_eq!(split_at(text, length_max), expected, "{text:?}");
        assert_eq!(split_at(text, length_max).concat(), text);
    };
    check("", 4, &[""]);
    check("abcd", 4, &["abcd"]);
    check("abcde", 4, &["abcd", "e"]);
    check("aéé", 4, &["aé", "é"]);
    // These are longer as JSON.
    check("a\"\"b", 4, &["a\"", "\"b"]);
    check("a\u{1}b", 6, &["a", "\u{1}", "b"]);
    // A character that is too long is a part of its own.
    check("a\u{1}\u{1}", 4, &["a", "\u{1}", "\u{1}"]);
}

#[test]
fn each_part_is_small_as_json() {
    for text in ["x".repeat(PART_BYTES_MAX + 1), "\"é\n".repeat(PART_BYTES_MAX / 2)] {
        let parts = split(&text);
        assert!(parts.len() > 1);
        for part in parts {
            let length = serde_json::to_string(part).unwrap().len();
            assert!(length <= PART_BYTES_MAX + 2, "{length}");
        }
    }
}

#[test]
fn only_the_parts_of_a_text_are_joined() {
    let text = "é".repeat(PART_BYTES_MAX);
    let reference = reference("answer", PartContent::Result, &text);
    assert_eq!((reference.count, reference.bytes), (2, 2 * PART_BYTES_MAX as u64));
    assert_eq!(part_name(&reference, 1), "answer-1");
    let parts = split(&text);
    assert_eq!(join(&reference, parts.iter().copied()), Ok(text.clone()));
    let check = |parts: &[&str], expected: &str| {
        let error = join(&reference, parts.iter().copied()).unwrap_err();
        assert!(error.starts_with(expected), "{error}");
    };
    check(&parts[..1], "1 of 2 ActionParts answer were found");
    check(&[parts[0], "é"], "the ActionParts answer were changed");
    check(&[parts[1], &parts[0][2..]], "the ActionParts answer were changed");
}

#[test]
fn a_large_plan_is_in_parts() {
    let plan = |length: usize| {
        let explained = "x".repeat(length);
        vec![PlannedChange { message: explained, ..PlannedChange::default() }]
    };
    assert_eq!(large_plan(&plan(STATUS_PLAN_BYTES_MAX / 2)), None);
    let large = plan(STATUS_PLAN_BYTES_MAX);
    let text = large_plan(&large).unwrap();
    assert_eq!(read_plan(&text), Ok(large));
    assert!(read_plan("{}").is_err());
}
