//! Queries of a whole cluster: what everything in it reports, and the kinds that can be listed.

#![expect(clippy::panic, reason = "how a test fails")]

use std::collections::BTreeMap;
use std::fmt::Write as _;

use kube::Api;
use kube::api::{DynamicObject, ListParams};
use kube::core::{ApiResource, GroupVersionKind};
use plimsoll_api::olm::OPERATOR_LABEL;
use plimsoll_api::{CATALOG, OPERATOR};
use serde_json::Value;

use super::AddOns;
use crate::harness::{DEFINITION, answered, until};

impl AddOns {
    /// Waits until the report of an Operator is as wanted. A wait in vain fails with all Operators and
    /// Catalogs: why one does not report something is often what another one reports.
    pub(super) async fn until_reported(
        &self,
        name: &str,
        what: &str,
        wanted: impl Fn(&BTreeMap<String, String>) -> bool,
    ) {
        if let Err(error) = answered(what, || self.reported(name), wanted).await {
            panic!("{error}\n{}", self.reports().await);
        }
    }

    /// Returns all Operators and Catalogs as JSON, or why they cannot be listed.
    async fn reports(&self) -> String {
        let mut reports = String::new();
        for kind in [OPERATOR, CATALOG] {
            let objects = match self.harness.api(kind).list(&ListParams::default()).await {
                Ok(objects) => objects,
                Err(error) => {
                    let _ = writeln!(reports, "{}: {error}", kind.plural);
                    continue;
                }
            };
            for mut object in objects {
                object.metadata.managed_fields = None;
                let name = object.metadata.name.clone().unwrap_or_default();
                let object = serde_json::to_value(object).expect("it is JSON");
                let _ = writeln!(reports, "{} {name}: {object:#}", kind.kind);
            }
        }
        reports
    }

    /// Waits until the objects of each kind that an Operator brought can be listed. A real API server cannot
    /// do that in a kind's first moments, and a deletion lists them to plan what goes.
    pub(super) async fn until_listable(&self) {
        let errors = || async {
            let brought = ListParams::default().labels(OPERATOR_LABEL);
            let definitions = self.harness.api(DEFINITION).list(&brought).await;
            let mut errors = Vec::new();
            for resource in definitions.expect("a list").iter().flat_map(served) {
                let objects: Api<DynamicObject> =
                    Api::all_with(self.harness.client.clone(), &resource);
                if let Err(error) = objects.list_metadata(&ListParams::default().limit(500)).await {
                    errors.push(format!("{}: {error}", resource.plural));
                }
            }
            errors
        };
        until("the kinds that Operators brought can be listed", errors, Vec::is_empty).await;
    }
}

/// Returns the versions of a kind that its definition serves.
fn served(definition: &DynamicObject) -> Vec<ApiResource> {
    let spec = &definition.data["spec"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let versions = spec["versions"].as_array().into_iter().flatten();
    let versions = versions.filter(|it| it["served"] == true);
    versions
        .map(|version| {
            let (group, version) = (text(&spec["group"]), text(&version["name"]));
            let kind = GroupVersionKind { group, version, kind: text(&spec["names"]["kind"]) };
            ApiResource::from_gvk_with_plural(&kind, &text(&spec["names"]["plural"]))
        })
        .collect()
}
