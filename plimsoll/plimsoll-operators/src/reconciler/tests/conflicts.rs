//! Objects that are in the way of an installation, and stay there.

use super::way_back::{pass, reported};
use super::*;

fn is_inspection(effect: &OperatorEffect) -> bool {
    matches!(effect, OperatorEffect::InspectObjects { .. })
}

/// Answers a request to inspect objects with a ConfigMap of another client; does nothing without one.
fn find_foreign(course: &mut Course) {
    let Some(index) = course.unanswered.iter().position(is_inspection) else { return };
    let OperatorEffect::InspectObjects { operator, ticket, objects, .. } =
        course.unanswered.remove(index)
    else {
        unreachable!("it was found")
    };
    let of_other = objects.into_iter().filter(|(key, _)| key.kind == "ConfigMap");
    let of_other = of_other.map(|(key, _)| FoundObject {
        key,
        operator: String::new(),
        is_ours: false,
        controller: None,
        managers: BTreeSet::new(),
        is_terminating: false,
    });
    let findings = Ok(Findings { objects: of_other.collect(), ..Findings::default() });
    course.handle(OperatorEvent::ObjectsInspected { operator, ticket, findings });
}

#[test]
fn a_conflict_that_stays_changes_no_condition() {
    let mut course = Course::begin();
    course.operator("bar", "1", "1.2.5", true);
    pass(&mut course, 3, is_inspection);
    find_foreign(&mut course);
    pass(&mut course, 3, is_inspection);
    let (mut seen, mut inspections) = (BTreeSet::new(), 0);
    for _ in 0..100 {
        inspections += usize::from(course.unanswered.iter().any(is_inspection));
        find_foreign(&mut course);
        pass(&mut course, 1, is_inspection);
        let types = ["HasValidBundle", "Installed", "Progressing"];
        seen.insert(types.map(|type_| reported(&course, type_)));
    }
    assert!(inspections > 1, "it is tried again");
    assert_eq!(seen.len(), 1, "{seen:#?}");
}
