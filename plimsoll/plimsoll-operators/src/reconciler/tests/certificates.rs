//! Revisions and the providers of certificates that they are made for.

use super::way_back::{nothing_held, pass, request};
use super::*;

#[test]
fn another_provider_of_certificates_makes_another_revision() {
    let mut course = Course::begin();
    course.operator("bar", "1", "1.2.5", true);
    pass(&mut course, 12, nothing_held);
    assert_eq!(course.shown["bar"]["status"]["revision"], 1);
    let spec = json!({ "version": "1.2.5", "certificates": "CertManager" });
    let effects = request(&mut course, 2, spec.clone());
    assert!(effects.contains(&"read bar.v1.2.5".to_owned()), "{effects:?}");
    let effects = pass(&mut course, 12, nothing_held);
    assert!(effects.contains(&"write bar-2".to_owned()), "{effects:?}");
    assert_eq!(course.shown["bar"]["status"]["revision"], 2);
    // Nothing more is made while the provider stays.
    request(&mut course, 3, spec);
    let effects = pass(&mut course, 12, nothing_held);
    assert!(!effects.iter().any(|it| it.starts_with("read bar")), "{effects:?}");
}
