//! Objects of kinds that are not served.

use super::change_sets::{MUTUAL, begin, message};
use super::*;

/// What bundles have, and the cluster.
#[derive(Clone, Copy)]
struct Setting {
    /// Whether the bundle of `b` has the definition of the kind of which `a` has an object.
    is_brought: bool,
    /// Whether the cluster serves the kind.
    is_served: bool,
    /// The Operator whose bundle is not read; empty for none.
    unread: &'static str,
}

/// Returns the content of the bundle of an Operator: `a` has a custom object.
fn bundle_content(operator: &str, bundle: BundleReference, setting: Setting) -> RevisionContent {
    let mut content = content(operator, bundle);
    if operator == "a" {
        let metadata = json!({ "name": "a", "namespace": "a" });
        let kettle =
            json!({ "apiVersion": "example.com/v1", "kind": "Kettle", "metadata": metadata });
        content.objects.push(kettle);
    } else if setting.is_brought {
        let version = json!({ "name": "v1", "served": true, "storage": true });
        content.objects.push(json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": { "name": "kettles.example.com" },
            "spec": {
                "group": "example.com",
                "scope": "Namespaced",
                "names": { "kind": "Kettle", "plural": "kettles" },
                "versions": [version],
            },
        }));
    }
    content
}

fn findings(kinds: BTreeSet<GroupVersionKind>, setting: Setting) -> Findings {
    let unserved = kinds.into_iter().filter(|it| it.group == "example.com" && !setting.is_served);
    let unserved = unserved.map(|kind| UnservedKind {
        kind,
        versions: Vec::new(),
        providers: vec!["kettle".to_owned()],
    });
    Findings { unserved: unserved.collect(), ..Findings::default() }
}

/// Answers all requests for a while. Returns the effects as texts.
fn play(course: &mut Course, setting: Setting) -> Vec<String> {
    let mut texts = Vec::new();
    for _ in 0..20 {
        let effects = std::mem::take(&mut course.unanswered).into_iter();
        let (held, effects): (Vec<_>, Vec<_>) = effects.partition(|it| {
            matches!(it, OperatorEffect::ReadBundle { operator, .. } if operator == setting.unread)
        });
        let mut events = Vec::new();
        for effect in effects {
            events.push(match effect {
                OperatorEffect::ReadBundle { operator, ticket, bundle, .. } => {
                    let content = Ok(Box::new(bundle_content(&operator, bundle, setting)));
                    OperatorEvent::BundleRead { operator, ticket, content }
                }
                OperatorEffect::InspectObjects { operator, ticket, kinds, .. } => {
                    let findings = Ok(findings(kinds, setting));
                    OperatorEvent::ObjectsInspected { operator, ticket, findings }
                }
                other => {
                    course.unanswered.push(other);
                    continue;
                }
            });
        }
        texts.extend(course.answer());
        for event in events {
            texts.extend(course.handle(event));
        }
        course.unanswered.extend(held);
        course.seconds += 2;
        let effects = course.reconciler.handle_timeout(course.moment());
        texts.extend(effects.iter().map(text));
        course.unanswered.extend(effects);
    }
    texts
}

fn is_applied(texts: &[String]) -> bool {
    texts.iter().any(|it| it.starts_with("apply"))
}

#[test]
fn a_kind_that_no_member_of_the_change_set_brings_is_refused_before_anything_is_applied() {
    let mut course = begin(MUTUAL);
    let setting = Setting { is_brought: false, is_served: false, unread: "" };
    let texts = play(&mut course, setting);
    assert!(!is_applied(&texts), "{texts:?}");
    let refused = ".v1.0.0 has objects of kinds that the cluster does not serve: \
                   kettle.example.com \"a/a\" (example.com/v1, Kind=Kettle): \
                   install a package that provides it: kettle";
    for name in ["a", "b"] {
        let found = message(&course, name, "Progressing");
        assert!(found.ends_with(refused), "{name}: {found}");
    }
    // Another client brings it.
    let defined = OperatorEvent::Definition("example.com".to_owned(), "kettles".to_owned());
    let effects = course.handle(defined);
    assert!(effects.contains(&"read a.v1.0.0".to_owned()), "{effects:?}");
    let texts = play(&mut course, Setting { is_served: true, ..setting });
    assert!(is_applied(&texts), "{texts:?}");
}

#[test]
fn a_kind_that_a_member_of_the_change_set_brings_is_waited_for() {
    let mut course = begin(MUTUAL);
    let setting = Setting { is_brought: true, is_served: false, unread: "b" };
    let texts = play(&mut course, setting);
    assert!(!texts.contains(&"write a-1".to_owned()), "{texts:?}");
    let found = message(&course, "a", "Progressing");
    assert!(!found.contains("does not serve"), "{found}");
    let texts = play(&mut course, Setting { unread: "", ..setting });
    for expected in ["write a-1", "write b-1", "apply configmap \"a/a\""] {
        assert!(texts.iter().any(|it| it == expected), "{expected}: {texts:?}");
    }
}
