//! From a bundle's properties to what the resolver knows of it.
//!
//! A property of a known type that cannot be understood makes the bundle defective; one of an
//! unknown type means nothing here, but expressions see it.

mod constraint;

use semver::Version;
use serde::Deserialize;
use serde_json::Value;

use crate::bundle::{Api, Bundle, Constraint, InstallMode, Property};
use crate::range::blang;
use crate::version::{number_for_text, parse_strict};

pub use constraint::CONSTRAINT_BYTES_MAX;

/// A bundle of a name with what its properties say. `package` is the one that it is listed under.
///
/// [`Bundle::properties`] stays empty. A bundle without a readable version gets 0.0.0 and a defect.
pub fn bundle_from_properties(name: &str, package: &str, properties: &[Property]) -> Bundle {
    let mut bundle = Bundle::new(name, Version::new(0, 0, 0));
    let mut identity = None;
    for Property { kind, value } in properties {
        if let Err(cause) = read(&mut bundle, &mut identity, kind, value) {
            bundle.defects.push(format!("its property `{kind}` {cause}"));
        }
    }
    match identity {
        // What is wrong with it is among the defects.
        None if properties.iter().any(|it| it.kind == "olm.package") => {}
        None => bundle.defects.push("it has no property `olm.package`".to_owned()),
        Some(identity) if identity.package_name != package => bundle.defects.push(format!(
            "its property `olm.package` names package `{}`, but it belongs to `{package}`",
            identity.package_name
        )),
        Some(_) => {}
    }
    bundle
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Identity {
    package_name: String,
    version: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PackageRequired {
    package_name: String,
    version_range: String,
}

#[derive(Deserialize)]
struct Label {
    label: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    #[serde(default)]
    install_modes: Vec<InstallModeSupport>,
    min_kube_version: Option<String>,
    #[serde(default, rename = "nativeAPIs")]
    native_apis: Vec<Api>,
    #[serde(default)]
    labels: serde_json::Map<String, Value>,
    #[serde(default)]
    annotations: serde_json::Map<String, Value>,
}

#[derive(Deserialize)]
struct InstallModeSupport {
    #[serde(rename = "type")]
    mode: InstallMode,
    supported: bool,
}

/// The label by which a ClusterServiceVersion says that it runs on an architecture.
const ARCHITECTURE_LABEL: &str = "operatorframework.io/arch.";
/// The annotation by which content says which capabilities it belongs to.
const CAPABILITY_ANNOTATION: &str = "capability.openshift.io/name";

fn read(
    bundle: &mut Bundle,
    identity: &mut Option<Identity>,
    kind: &str,
    value: &Value,
) -> Result<(), String> {
    match kind {
        "olm.package" => {
            let found: Identity = typed(value)?;
            bundle.version = parse_strict(&found.version).map_err(|error| error.to_string())?;
            if identity.replace(found).is_some() {
                return Err("occurs more than once".to_owned());
            }
        }
        "olm.gvk" => bundle.provides.push(typed(value)?),
        "olm.gvk.required" => bundle.requires.push(Constraint::Api(typed(value)?).into()),
        "olm.package.required" => {
            let PackageRequired { package_name: name, version_range: range } = typed(value)?;
            blang::Range::parse(&range).map_err(|error| format!("is invalid: {error}"))?;
            bundle.requires.push(Constraint::Package { name, range }.into());
        }
        "olm.label" => bundle.labels.push(typed::<Label>(value)?.label),
        "olm.label.required" => {
            bundle.requires.push(Constraint::Label(typed::<Label>(value)?.label).into());
        }
        "olm.constraint" => bundle.requires.push(constraint::parse(value)?),
        "olm.deprecated" => bundle.deprecated = true,
        "olm.maxOpenShiftVersion" => bundle.max_openshift_version = Some(max_openshift(value)?),
        "olm.csv.metadata" => metadata(bundle, typed(value)?),
        _ => {}
    }
    Ok(())
}

fn typed<'a, T: Deserialize<'a>>(value: &'a Value) -> Result<T, String> {
    T::deserialize(value).map_err(|error| {
        let number = value.as_object().and_then(|fields| {
            fields
                .iter()
                .find(|(name, value)| VERSIONS.contains(&name.as_str()) && value.is_number())
        });
        match number {
            Some((name, number)) => format!("is invalid: `{name}` {}", number_for_text(number)),
            None => format!("is invalid: {error}"),
        }
    })
}

/// Fields of properties that hold a version or a range of versions.
const VERSIONS: [&str; 3] = ["version", "versionRange", "minKubeVersion"];

/// A minor version. Upstream reads numbers, too, and with them 4.20 as 4.2.
fn max_openshift(value: &Value) -> Result<String, String> {
    let text = match value {
        // Quotes within the text are the leftovers of a template; upstream drops them.
        Value::String(text) => text.trim_matches('"').to_owned(),
        Value::Number(number) => return Err(number_for_text(number)),
        _ => return Err("is not a string".to_owned()),
    };
    let parts: Vec<&str> = text.split('.').collect();
    match parts.as_slice() {
        [major, minor] if major.parse::<u64>().is_ok() && minor.parse::<u64>().is_ok() => Ok(text),
        _ => Err(format!("is `{text}`, not of the form MAJOR.MINOR")),
    }
}

fn metadata(bundle: &mut Bundle, metadata: Metadata) {
    let Metadata { install_modes, min_kube_version, native_apis, labels, annotations } = metadata;
    if !install_modes.is_empty() {
        let supported = install_modes.into_iter().filter(|mode| mode.supported);
        bundle.install_modes = Some(supported.map(|mode| mode.mode).collect());
    }
    bundle.min_kube_version = min_kube_version.filter(|text| !text.is_empty());
    bundle.native_apis = native_apis;
    bundle.architectures = labels
        .iter()
        .filter(|(_, value)| *value == "supported")
        .filter_map(|(key, _)| key.strip_prefix(ARCHITECTURE_LABEL).map(str::to_owned))
        .collect();
    if let Some(Value::String(names)) = annotations.get(CAPABILITY_ANNOTATION) {
        bundle.capabilities =
            names.split('+').filter(|name| !name.is_empty()).map(str::to_owned).collect();
    }
}

#[cfg(test)]
mod tests;
