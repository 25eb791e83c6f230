//! What Operators, their revisions and Catalogs say.

use jiff::Timestamp;
use serde_json::json;

use super::{check, meta_condition};
use crate::config::UpdateState;
use crate::olm::{
    BundleProperty, BundleReference, CatalogDefect, CatalogDefects, CatalogSource,
    CatalogSourceType, CatalogSpec, CatalogStatus, CertificateProvider, DeletionProgress,
    Dependant, DependencyStatus, InstalledApi, OperatorHistory, OperatorRevisionSpec, OperatorSpec,
    OperatorStatus, PlatformRequirements, ReadinessRule, RemainingObjects, RevisionObject,
    RevisionPart, UpgradePolicy,
};
use crate::{CATALOG, OPERATOR, OPERATOR_REVISION, ObjectKey};

fn bundle_reference() -> BundleReference {
    BundleReference {
        name: "kettle.v1.2.3".into(),
        version: "1.2.3".into(),
        digest: "sha256:abc".into(),
        channel: "stable".into(),
        catalog: "kitchen".into(),
    }
}

fn operator_status() -> OperatorStatus {
    let time = Timestamp::from_second(1).unwrap();
    OperatorStatus {
        observed_generation: 2,
        conditions: vec![meta_condition()],
        resolved_version: "^1.2 (@v1.2.3)".into(),
        namespace: "kettle".into(),
        bundle: Some(bundle_reference()),
        revision: Some(3),
        dependencies: vec![DependencyStatus {
            requirement: "tap >=1.0.0".into(),
            satisfied: false,
            operator: "tap".into(),
            version: "0.9.0".into(),
            message: "tap v0.9.0 is installed".into(),
        }],
        dependants: vec![Dependant { operator: "tea".into(), requirement: "kettle >1".into() }],
        orphaned: true,
        provided_apis: vec![InstalledApi {
            group: "example.com".into(),
            version: "v1".into(),
            kind: "Kettle".into(),
        }],
        platform: Some(PlatformRequirements {
            max_openshift_version: "4.22".into(),
            native_apis: vec![InstalledApi {
                group: "example.com".into(),
                version: "v1".into(),
                kind: "Tap".into(),
            }],
        }),
        predecessors: vec!["7a0c".into()],
        inventory: vec![ObjectKey {
            group: String::new(),
            kind: "ConfigMap".into(),
            namespace: "kettle".into(),
            name: "settings".into(),
        }],
        deletion: Some(DeletionProgress {
            phase: "Operands".into(),
            started_time: time,
            remaining: vec![RemainingObjects {
                kind: "Kettle.example.com".into(),
                namespace: "tea".into(),
                count: 2,
                names: vec!["copper".into()],
            }],
            stuck: vec!["kettle.example.com/a -n tea: finalizer example.com/boil".into()],
        }),
        history: vec![OperatorHistory {
            state: UpdateState::Completed,
            started_time: time,
            completion_time: Some(time),
            revision: 3,
            bundle: "kettle.v1.2.3".into(),
            version: "1.2.3".into(),
            accepted_risks: "tap >=1.0.0".into(),
        }],
    }
}

fn readiness_rule() -> ReadinessRule {
    ReadinessRule {
        group: "example.com".into(),
        kind: "Kettle".into(),
        namespace: "kettle".into(),
        name: "large".into(),
        rule: "self.status.phase == 'Boiling'".into(),
    }
}

#[test]
fn everything_of_the_add_on_layer_is_declared() {
    let spec = OperatorSpec {
        version: "^1.2".into(),
        channel: "stable".into(),
        repository: "kitchen".into(),
        namespace: "kettle".into(),
        upgrade_policy: UpgradePolicy::Semver,
        config: Some(json!({"watchNamespace": "tea"})),
        certificates: CertificateProvider::CertManager,
        ready_when: vec![readiness_rule()],
        revision: Some(2),
        paused: true,
        progress_deadline: "10m".into(),
        ..OperatorSpec::default()
    };
    check(OPERATOR, "spec", &spec);
    check(OPERATOR, "spec", &OperatorSpec::default());
    check(OPERATOR, "status", &operator_status());
    check(OPERATOR, "status", &OperatorStatus::default());
    let catalog = CatalogSpec {
        source: CatalogSource {
            type_: CatalogSourceType::ImageLayout,
            path: "/catalogs/kitchen".into(),
            reference: "v1".into(),
        },
        weight: -3,
        poll_interval: "1h".into(),
        ..CatalogSpec::default()
    };
    check(CATALOG, "spec", &catalog);
    check(CATALOG, "spec", &CatalogSpec::default());
    let status = CatalogStatus {
        observed_generation: 1,
        conditions: vec![meta_condition()],
        digest: "sha256:abc".into(),
        last_read_time: Timestamp::from_second(1).ok(),
        packages: 3,
        bundles: 9,
        defects: Some(CatalogDefects {
            errors: 1,
            warnings: 0,
            first: vec![CatalogDefect {
                file: "kettle/catalog.yaml".into(),
                line: 12,
                package: "kettle".into(),
                message: "it has no head".into(),
            }],
        }),
    };
    check(CATALOG, "status", &status);
    check(CATALOG, "status", &CatalogStatus::default());
    let revision = OperatorRevisionSpec {
        operator: "kettle".into(),
        revision: 3,
        part: RevisionPart { number: 1, of: 2 },
        digest: "sha256:abc".into(),
        bundle: bundle_reference(),
        properties: vec![BundleProperty { type_: "olm.gvk".into(), value: json!({"kind": "K"}) }],
        namespace: "kettle".into(),
        omitted_capabilities: vec!["Console".to_owned()],
        config: Some(json!({"watchNamespace": "tea"})),
        certificates: CertificateProvider::ServiceCa,
        ready_when: vec![readiness_rule()],
        objects: vec![RevisionObject {
            phase: "Workloads".into(),
            object: json!({"kind": "Deployment", "spec": {"replicas": 1}}),
        }],
    };
    check(OPERATOR_REVISION, "spec", &revision);
}
