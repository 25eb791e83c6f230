//! Tests of the content of namespaces.

use super::*;

#[test]
fn what_may_not_be_listed_matters_only_if_nothing_is_found() {
    let key = |name: &str| ContainedObject {
        key: ObjectKey {
            group: String::new(),
            kind: "ConfigMap".to_owned(),
            namespace: "foo".to_owned(),
            name: name.to_owned(),
        },
        is_terminating: false,
    };
    let forbidden = || vec!["secrets".to_owned(), "leases.example.com".to_owned()];
    assert_eq!(contained(Vec::new(), Vec::new()), Ok(Vec::new()));
    assert_eq!(contained(vec![key("b"), key("a")], forbidden()), Ok(vec![key("a"), key("b")]));
    assert_eq!(
        contained(Vec::new(), forbidden()).unwrap_err(),
        "the controller may not list leases.example.com, secrets: grant it list on them, or delete \
         the namespace yourself"
    );
}
