//! Conversion webhooks of definitions: the service that answers one, and the phases in which a definition
//! with one is applied.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_api::ObjectKey;
use plimsoll_content::{Definition, Manifest};
use plimsoll_plan::plan::GroupVersionKind;
use serde::Deserialize;

use super::Phase;

/// The part of a definition that says how its objects are converted.
#[derive(Debug, Default, Deserialize)]
struct Converted {
    #[serde(default)]
    spec: ConvertedSpec,
}

#[derive(Debug, Default, Deserialize)]
struct ConvertedSpec {
    conversion: Option<Conversion>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Conversion {
    strategy: String,
    webhook: Option<Webhook>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Webhook {
    client_config: Option<ClientConfig>,
}

#[derive(Debug, Deserialize)]
struct ClientConfig {
    service: Option<Service>,
}

#[derive(Debug, Deserialize)]
struct Service {
    namespace: String,
    name: String,
}

/// Returns the service that converts the objects of a definition; `None` if no service does.
pub(crate) fn conversion_service(definition: &Manifest) -> Option<ObjectKey> {
    definition.definition.as_ref()?;
    let Converted { spec } = serde_json::from_slice(&definition.raw.unpack()).ok()?;
    let conversion = spec.conversion.filter(|it| it.strategy == "Webhook")?;
    let Service { namespace, name } = conversion.webhook?.client_config?.service?;
    Some(ObjectKey { group: String::new(), kind: "Service".to_owned(), namespace, name })
}

/// Returns whether a webhook converts the objects of a definition: a service, or a URL.
fn has_webhook(definition: &Manifest) -> bool {
    let read: Result<Converted, _> = serde_json::from_slice(&definition.raw.unpack());
    read.is_ok_and(|it| it.spec.conversion.is_some_and(|it| it.strategy == "Webhook"))
}

/// Returns the definitions among objects that a service among them converts, each with that service.
pub(crate) fn converted_definitions(objects: &[&Manifest]) -> BTreeMap<ObjectKey, ObjectKey> {
    let found = objects.iter().filter_map(|it| Some((it.key.clone(), conversion_service(it)?)));
    found.filter(|(_, service)| objects.iter().any(|it| it.key == *service)).collect()
}

/// Returns the phases in which an object is applied, in order. `live` has the object as it is in the cluster;
/// `None` if it is not there.
///
/// Until the workloads are ready that answer its conversion webhook, a definition must not have it. What was
/// served before stays; other versions are not served without a conversion, which would lose the fields that
/// these lack.
pub(crate) fn phases(object: &Manifest, live: Option<&Manifest>) -> &'static [Phase] {
    let Some(definition) = &object.definition else { return &[] };
    if conversion_service(object).is_none() {
        return &[];
    }
    match live {
        Some(before) if has_webhook(before) => &[],
        Some(before) if before.definition.as_ref().is_none_or(|it| !is_same(it, definition)) => {
            &[Phase::Conversions]
        }
        Some(_) | None => &[Phase::Definitions, Phase::Conversions],
    }
}

/// Returns the kinds, in the versions that are not served before the conversion webhooks of their definitions are
/// set. Their objects come after that: the workloads would wait for them otherwise, and they for the workloads.
pub(super) fn late_kinds(
    objects: &[Manifest],
    live: &BTreeMap<&ObjectKey, &Manifest>,
) -> BTreeSet<GroupVersionKind> {
    let mut kinds = BTreeSet::new();
    for object in objects {
        let before = live.get(&object.key).copied();
        let Some(definition) = &object.definition else { continue };
        if phases(object, before) != [Phase::Conversions] {
            continue;
        }
        let before = before.and_then(|it| it.definition.as_ref());
        let is_served =
            |version: &str| before.is_some_and(|it| it.served().any(|served| served == version));
        for version in definition.served().filter(|it| !is_served(it)) {
            kinds.insert(GroupVersionKind {
                group: definition.kind.group.clone(),
                version: version.to_owned(),
                kind: definition.kind.kind.clone(),
            });
        }
    }
    kinds
}

/// Returns whether two definitions serve the same versions and store objects in the same one.
fn is_same(before: &Definition, after: &Definition) -> bool {
    let served = |it: &Definition| it.served().map(str::to_owned).collect::<BTreeSet<String>>();
    let stored = |it: &Definition| {
        let stored = it.versions.iter().find(|it| it.storage);
        stored.map(|it| it.name.clone())
    };
    served(before) == served(after) && stored(before) == stored(after)
}
