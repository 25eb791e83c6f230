//! Change sets, one member of which is refused when its revision is prepared.

use super::*;

/// Two packages that require each other, so that they move at once.
pub(super) const MUTUAL: &str = "
    main 0 a/stable
      1.0.0 requires b >=1.0.0
    main 0 b/stable
      1.0.0 requires a >=1.0.0";
/// Two packages, the first of which moves first.
const CHAIN: &str = "
    main 0 a/stable
      1.0.0
    main 0 b/stable
      1.0.0 requires a >=1.0.0";

/// Begins with the Operators `a` and `b`, which are to be installed as a change set.
pub(super) fn begin(packages: &str) -> Course {
    let mut course = Course::begin();
    course.catalogs = catalogs(packages);
    for name in ["a", "b"] {
        course.resource_version += 1;
        let metadata = json!({
            "name": name, "uid": name, "generation": 1, "finalizers": [DELETION_FINALIZER],
            "resourceVersion": course.resource_version.to_string(),
            "annotations": { "olm.io/change-set": "x/2" },
        });
        let object = json!({ "metadata": metadata, "spec": { "version": "1.0.0" } });
        course.shown(OperatorKind::Operator, name, Some(object));
    }
    course
}

/// Returns the answer to the request for a bundle; `None` for other effects. That of `refused` is invalid.
fn bundle_answer(effect: &OperatorEffect, refused: &str) -> Option<OperatorEvent> {
    let OperatorEffect::ReadBundle { operator, ticket, bundle, .. } = effect else { return None };
    let content = match operator == refused {
        true => Err("it has no CSV".to_owned()),
        false => Ok(Box::new(content(operator, bundle.clone()))),
    };
    Some(OperatorEvent::BundleRead { operator: operator.clone(), ticket: *ticket, content })
}

/// Answers all requests for a while. Returns the keys of what was applied, in order.
fn play(course: &mut Course, refused: &str) -> Vec<String> {
    let mut texts = Vec::new();
    for _ in 0..4 {
        while !course.unanswered.is_empty() {
            let (asked, others): (Vec<_>, Vec<_>) = std::mem::take(&mut course.unanswered)
                .into_iter()
                .partition(|it| matches!(it, OperatorEffect::ReadBundle { .. }));
            course.unanswered = others;
            texts.extend(course.answer());
            for event in asked.iter().filter_map(|it| bundle_answer(it, refused)) {
                texts.extend(course.handle(event));
            }
        }
        course.seconds += 5;
        let moment = course.moment();
        let effects = course.reconciler.handle_timeout(moment);
        texts.extend(effects.iter().map(text));
        course.unanswered.extend(effects);
    }
    let applied = texts.iter().filter_map(|it| it.strip_prefix("apply configmap "));
    let mut applied: Vec<String> = applied.map(str::to_owned).collect();
    // The lists of watches are empty here, so that what was applied is applied again.
    applied.dedup();
    applied
}

/// Returns the message of a condition that an Operator reports.
pub(super) fn message(course: &Course, name: &str, type_: &str) -> String {
    let conditions = course.shown[name]["status"]["conditions"].as_array().expect("conditions");
    let found = conditions.iter().find(|it| it["type"] == type_).expect("it is reported");
    found["message"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn one_that_is_refused_holds_up_all_before_anything_is_applied() {
    for (packages, refused, other) in
        [(MUTUAL, "b", "a"), (MUTUAL, "a", "b"), (CHAIN, "b", "a"), (CHAIN, "a", "b")]
    {
        let mut course = begin(packages);
        let none: Vec<String> = Vec::new();
        assert_eq!(play(&mut course, refused), none, "{refused} is refused: {packages}");
        assert_eq!(
            message(&course, other, "Progressing"),
            format!("Change set x waits: {refused}: it has no CSV")
        );
        assert_eq!(
            message(&course, refused, "HasValidBundle"),
            format!("bundle {refused}.v1.0.0: it has no CSV")
        );
        // Its bundle is read again after a while.
        course.seconds += 30;
        let effects = course.reconciler.handle_timeout(course.moment());
        course.unanswered.extend(effects);
        let mut applied = play(&mut course, "");
        applied.extend(play(&mut course, ""));
        if packages == MUTUAL {
            applied.sort();
        }
        assert_eq!(applied, ["\"a/a\"", "\"b/b\""], "{packages}");
    }
}
