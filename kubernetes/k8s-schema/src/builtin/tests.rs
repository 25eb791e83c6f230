//! The generated data.
use super::{kubernetes_version, resources, schema};

#[test]
fn every_resource_that_can_be_created_has_a_schema() {
    for resource in resources() {
        let has_schema = schema(&resource.group, &resource.version, &resource.kind).is_some();
        assert!(has_schema, "{} {} {}", resource.group, resource.version, resource.kind);
    }
}

#[test]
fn the_core_group_comes_first_and_preferred_versions_before_others() {
    assert_eq!((resources()[0].group.as_str(), resources()[0].version.as_str()), ("", "v1"));
    let versions: Vec<&str> = resources()
        .iter()
        .filter(|resource| resource.kind == "HorizontalPodAutoscaler")
        .map(|resource| resource.version.as_str())
        .collect();
    assert_eq!(versions, ["v2", "v1"]);
}

#[test]
fn a_resource_tells_all_that_discovery_needs() {
    let deployment = resources()
        .iter()
        .find(|resource| resource.plural == "deployments")
        .expect("deployments are built in");
    assert_eq!(deployment.singular, "deployment");
    assert_eq!(deployment.short_names, ["deploy"]);
    assert_eq!(deployment.categories, ["all"]);
    assert!(deployment.namespaced);
    let scale = &deployment.subresources[0];
    assert_eq!(
        (scale.name.as_str(), scale.group.as_str(), scale.version.as_str(), scale.kind.as_str()),
        ("scale", "autoscaling", "v1", "Scale")
    );
}

#[test]
fn the_version_is_that_of_the_source() {
    assert!(kubernetes_version().starts_with("v1."));
}
