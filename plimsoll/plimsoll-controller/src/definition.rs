//! The definition of ClusterVersion that the controller keeps: it accepts the names of capabilities
//! of the release that is applied.

use kube::core::DynamicObject;
use kube::{Api, Client, ResourceExt as _};
use plimsoll_api::crd::{self, CapabilityNames, MANAGED_BY};
use serde_json::Value;

use crate::error::Error;
use crate::resources::definitions;
use crate::write::Writer;

/// Makes the definition accept these names only, or all. One that does not exist, or that another
/// client made, is not changed.
///
/// # Errors
///
/// When the definition cannot be read or applied.
pub(crate) async fn accept(
    client: &Client,
    writer: &Writer,
    names: Option<&CapabilityNames>,
) -> Result<(), Error> {
    let wanted = crd::cluster_versions(names);
    let is_other = |live: &Value| accepted(&live["spec"]) != accepted(&wanted["spec"]);
    apply(client, writer, &wanted, is_other).await
}

/// Makes the definition what it was made with these names, if another client changed it. One that does not
/// exist, or that another client made, is not changed.
///
/// # Errors
///
/// When the definition cannot be read or applied.
pub(crate) async fn restore(
    client: &Client,
    writer: &Writer,
    names: &CapabilityNames,
) -> Result<(), Error> {
    apply(client, writer, &crd::cluster_versions(Some(names)), |_| true).await
}

/// Applies the definition if the present one is kept, and is to be replaced.
async fn apply(
    client: &Client,
    writer: &Writer,
    wanted: &Value,
    is_replaced: impl Fn(&Value) -> bool,
) -> Result<(), Error> {
    let name = wanted["metadata"]["name"].as_str().unwrap_or_default();
    let failed = |source| Error::InstallCrd { name: name.to_owned(), source };
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &definitions());
    let (label, value) = MANAGED_BY;
    let found = api.get_opt(name).await.map_err(failed)?;
    let kept = found.filter(|it| it.labels().get(label).is_some_and(|it| it == value));
    match kept {
        Some(found) if is_replaced(&found.data) => {
            writer.apply_own(&definitions(), name, wanted).await.map_err(failed)
        }
        _ => Ok(()),
    }
}

/// Returns what limits the names in a spec, by the spec of a definition.
fn accepted(spec: &Value) -> [&Value; 3] {
    let requested = &spec["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
        ["capabilities"]["properties"];
    let additional = &requested["additionalEnabledCapabilities"];
    [
        &requested["baselineCapabilitySet"]["enum"],
        &additional["items"]["enum"],
        &additional["maxItems"],
    ]
}
