//! ClusterOperators of bundles.

use super::*;

/// Returns the answer to the request for a bundle, which has a ClusterOperator besides; `None` for other
/// effects.
fn bundle_answer(effect: &OperatorEffect) -> Option<OperatorEvent> {
    let OperatorEffect::ReadBundle { operator, ticket, bundle, .. } = effect else { return None };
    let mut content = content(operator, bundle.clone());
    content.objects.push(json!({
        "apiVersion": "config.openshift.io/v1",
        "kind": "ClusterOperator",
        "metadata": { "name": "kettle" },
        "status": { "relatedObjects": [{ "group": "", "resource": "namespaces", "name": "bar" }] },
    }));
    let content = Ok(Box::new(content));
    Some(OperatorEvent::BundleRead { operator: operator.clone(), ticket: *ticket, content })
}

#[test]
fn related_objects_are_filled_in_once_a_cluster_operator_is_applied() {
    let mut course = Course::begin();
    let version = ("config.openshift.io".to_owned(), "v1".to_owned());
    let (group, kind) = (version.0.clone(), "ClusterOperator".to_owned());
    let kind = GroupVersionKind { group, version: "v1".to_owned(), kind };
    course.handle(OperatorEvent::Discovered(version, vec![(kind, Scope::Cluster)]));
    course.operator("bar", "1", "1.2.5", true);
    let mut filled = BTreeSet::new();
    for _ in 0..12 {
        let answers: Vec<OperatorEvent> =
            course.unanswered.iter().filter_map(bundle_answer).collect();
        course.unanswered.retain(|it| !matches!(it, OperatorEffect::ReadBundle { .. }));
        for effect in &course.unanswered {
            if let OperatorEffect::Execute { plan, step, fills_related_objects: true, .. } = effect
            {
                filled.insert(plan.steps[*step].manifest.key.name.clone());
            }
        }
        course.answer();
        for event in answers {
            course.handle(event);
        }
    }
    assert_eq!(filled, BTreeSet::from(["kettle".to_owned()]));
}
