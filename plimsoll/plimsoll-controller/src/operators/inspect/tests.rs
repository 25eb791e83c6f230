//! Tests of objects that are inspected, and of the content of namespaces.

use std::convert::Infallible;

use http::{Request, Response};
use kube::client::Body;

use super::*;

#[tokio::test]
async fn a_kind_that_is_not_served_any_more_has_no_objects() {
    // This is what kube-apiserver answers below a path that it does not serve.
    let service = tower::service_fn(|_: Request<Body>| async {
        let body = Body::from(b"404 page not found\n".to_vec());
        Ok::<_, Infallible>(Response::builder().status(404).body(body).unwrap())
    });
    let client = Client::new(service, "default");
    let gvk = kube::core::GroupVersionKind::gvk("example.com", "v1", "Kettle");
    let resource = ApiResource::from_gvk_with_plural(&gvk, "kettles");
    let key = ObjectKey {
        group: "example.com".to_owned(),
        kind: "Kettle".to_owned(),
        namespace: "foo".to_owned(),
        name: "a".to_owned(),
    };
    let served = Served { resource, scope: Scope::Namespaced };
    assert_eq!(found(client, &served, key).await, Ok(None));
}

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
