//! Division of texts into parts, and back.

use plimsoll_api::olm::action::{ChangeState, PartContent, PlannedChange};

use super::{
    PART_BYTES_MAX, STATUS_PLAN_BYTES_MAX, join, large_plan, part_name, plan_digest, read_plan,
    reference, split, split_at, with_progress, without_progress,
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

#[test]
fn a_plan_has_the_progress_of_those_of_its_changes_that_have_begun() {
    let of = |name: &str| PlannedChange {
        operator: name.into(),
        relies_on: vec!["platform".into()],
        ..PlannedChange::default()
    };
    let begun = |name: &str| PlannedChange {
        state: ChangeState::Failed,
        unwritten: true,
        reason: "PolicyDenied".into(),
        message: "no policy grants it".into(),
        relies_on: Vec::new(),
        ..of(name)
    };
    let plan = ["a", "b", "c"].map(of).to_vec();
    let check = |names: &[&str], expected: Result<[bool; 3], &str>| {
        let progress: Vec<PlannedChange> = names.iter().map(|it| begun(it)).collect();
        let found = with_progress(plan.clone(), &progress);
        if let Ok(found) = &found {
            assert_eq!(without_progress(found), plan, "{names:?}");
            assert_eq!(plan_digest(found), plan_digest(&plan), "{names:?}");
        }
        let is_begun = |it: &PlannedChange| it.unwritten && it.state == ChangeState::Failed;
        let found = found.map(|it| it.iter().map(is_begun).collect::<Vec<_>>());
        assert_eq!(found, expected.map(Vec::from).map_err(str::to_owned), "{names:?}");
    };
    check(&[], Ok([false, false, false]));
    check(&["b"], Ok([false, true, false]));
    check(&["a", "c"], Ok([true, false, true]));
    check(&["d"], Err("a change of d is not in the plan"));
    check(&["c", "a"], Err("a change of a is not in the plan"));
}
