//! Objects as they are named on command lines.

use plimsoll_api::{ApiKind, ObjectKey};

/// Returns what kubectl prints with `-o name` of an object without a namespace, such as
/// `operator.olm.io/foo-operator`.
pub(crate) fn reference(kind: ApiKind, name: &str) -> String {
    let key = ObjectKey {
        group: kind.group.to_owned(),
        kind: kind.kind.to_owned(),
        namespace: String::new(),
        name: name.to_owned(),
    };
    key.reference()
}

/// Whether a word names an object, in a namespace that may be named beside it: as
/// [`ObjectKey::reference`] does, as events and ReleaseProgress do, or as `KIND.GROUP/NAMESPACE/NAME`.
pub(crate) fn is_named(key: &ObjectKey, word: &str, namespace: &str) -> bool {
    let kind = key.group_kind().to_string().to_lowercase();
    let is_there = namespace.is_empty() || key.namespace == namespace;
    let short = key.namespace == namespace && word == format!("{kind}/{}", key.name);
    let long = [key.reference(), key.to_string(), format!("{kind}/{}", key.namespaced_name())];
    short || is_there && long.iter().any(|name| name == word)
}

#[cfg(test)]
mod tests {
    use plimsoll_api::ObjectKey;

    use super::is_named;

    #[test]
    fn objects_are_named_as_for_kubectl() {
        let key = |namespace: &str| ObjectKey {
            group: "apps".to_owned(),
            kind: "Deployment".to_owned(),
            namespace: namespace.to_owned(),
            name: "crane".to_owned(),
        };
        assert_eq!(key("harbour").reference(), "deployment.apps/crane -n harbour");
        assert_eq!(key("").reference(), "deployment.apps/crane");
        let check = |word: &str, namespace: &str, expected: bool| {
            assert_eq!(is_named(&key("harbour"), word, namespace), expected, "{word} {namespace}");
        };
        check("deployment.apps/crane", "harbour", true);
        check("deployment.apps/crane", "pier", false);
        check("deployment.apps/crane", "", false);
        check("deployment.apps/crane -n harbour", "", true);
        check("deployment.apps/harbour/crane", "", true);
        check("deployment.apps \"harbour/crane\"", "", true);
        check("deployment.apps/harbour/crane", "pier", false);
        check("crane", "harbour", false);
    }
}
