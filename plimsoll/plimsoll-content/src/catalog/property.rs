//! What a bundle's properties say (RES-2).

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use plimsoll_resolve::range::blang::Range;
use plimsoll_resolve::version::{number_for_text, parse_strict};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::constraint;
use super::defect::DefectCode;
use super::document::{
    WrittenApi, WrittenLabel, WrittenManifest, WrittenMetadata, WrittenObject, WrittenPackage,
    WrittenProperty, WrittenValue,
};
use super::model::{
    BundleDetails, IndexedApi, IndexedPackageRange, IndexedProperty, IndexedRequirement,
    InstallModes,
};
use super::record::Text;

/// Most bytes of a value that is kept for CEL rules.
const VALUE_MAX: usize = 1 << 16;

/// What the properties of a bundle say.
#[derive(Debug, Default)]
pub(super) struct ParsedProperties<'a> {
    pub(super) package: Option<(Text<'a>, Text<'a>, Text<'a>)>,
    /// Whether there is a property `olm.package`, which may be unreadable.
    pub(super) has_package: bool,
    pub(super) provided: Vec<IndexedApi<'a>>,
    pub(super) required: Vec<IndexedRequirement<'a>>,
    pub(super) labels: Vec<Text<'a>>,
    pub(super) others: Vec<IndexedProperty<'a>>,
    pub(super) details: BundleDetails<'a>,
    pub(super) withdrawn: bool,
    pub(super) maximum_open_shift: Option<Text<'a>>,
    pub(super) has_objects: bool,
    pub(super) problems: Vec<(DefectCode, String)>,
}

/// Reads the properties of a bundle.
pub(super) fn read<'a>(properties: Vec<WrittenProperty<'a>>) -> ParsedProperties<'a> {
    let mut facts = ParsedProperties::default();
    let mut has_metadata = false;
    let mut objects = Vec::new();
    for property in properties {
        let (Some(kind), Some(value)) = (property.kind, property.value) else {
            facts.problem(DefectCode::Property, "a property needs a type and a value");
            continue;
        };
        facts.has_package |= &*kind == "olm.package";
        let value = match value {
            WrittenValue::Api(api) => {
                facts.read_api(&kind, api);
                continue;
            }
            WrittenValue::Package(package) => {
                facts.read_package(&kind, package);
                continue;
            }
            WrittenValue::Raw(value) => value.get(),
        };
        match &*kind {
            "olm.csv.metadata" => {
                has_metadata = true;
                facts.metadata(value);
            }
            "olm.bundle.object" => objects.push(value),
            _ => facts.property(kind, value),
        }
    }
    facts.has_objects = !objects.is_empty();
    if !has_metadata {
        facts.objects(&objects);
    }
    facts.required.sort();
    facts.required.dedup();
    facts.provided.sort();
    facts.provided.dedup();
    facts
}

impl<'a> ParsedProperties<'a> {
    fn problem(&mut self, code: DefectCode, message: impl Into<String>) {
        self.problems.push((code, message.into()));
    }

    fn parse<T: Deserialize<'a>>(
        &mut self,
        kind: &str,
        code: DefectCode,
        value: &'a str,
    ) -> Option<T> {
        match serde_json::from_str(value) {
            Ok(parsed) => Some(parsed),
            Err(error) => {
                self.problem(code, format!("property {kind}: {error}"));
                None
            }
        }
    }

    fn property(&mut self, kind: Text<'a>, value: &'a str) {
        match &*kind {
            "olm.gvk" | "olm.gvk.required" => {
                let api = self.parse::<WrittenApi<'a>>(&kind, DefectCode::Property, value);
                if let Some(api) = api {
                    self.read_api(&kind, api);
                }
            }
            "olm.package" | "olm.package.required" => {
                let package = self.parse::<WrittenPackage<'a>>(&kind, DefectCode::Property, value);
                if let Some(package) = package {
                    self.read_package(&kind, package);
                }
            }
            "olm.label" => {
                let label = self.label(&kind, DefectCode::Property, value);
                self.labels.extend(label);
            }
            "olm.label.required" => {
                let label = self.label(&kind, DefectCode::Dependency, value);
                self.required.extend(label.map(IndexedRequirement::Label));
            }
            "olm.constraint" => self.constraint(value),
            "olm.deprecated" => self.withdrawn = true,
            "olm.maxOpenShiftVersion" => {
                self.maximum_open_shift(value);
                self.other(kind, value);
            }
            "olm.channel" => {}
            _ => self.other(kind, value),
        }
    }

    fn other(&mut self, kind: Text<'a>, value: &'a str) {
        if value.len() > VALUE_MAX {
            let size = value.len();
            self.problem(DefectCode::Property, format!("property {kind}: {size} bytes, too large"));
        } else {
            self.others.push(IndexedProperty { kind, value: value.into() });
        }
    }

    fn read_api(&mut self, kind: &str, api: WrittenApi<'a>) {
        let is_required = kind == "olm.gvk.required";
        match of_written(api) {
            Some(api) if is_required => self.required.push(IndexedRequirement::Api(api)),
            Some(api) => self.provided.push(api),
            None => {
                let code = if is_required { DefectCode::Dependency } else { DefectCode::Property };
                let text = format!("property {kind}: it needs a group, a version and a kind");
                self.problem(code, text);
            }
        }
    }

    fn read_package(&mut self, kind: &str, written: WrittenPackage<'a>) {
        if kind == "olm.package.required" {
            return self.package_required(written);
        }
        let (Some(name), Some(version)) = (written.name, written.version) else {
            return self
                .problem(DefectCode::Property, "property olm.package: no packageName or version");
        };
        if self.package.is_some() {
            return self.problem(DefectCode::Property, "more than one property olm.package");
        }
        self.package = Some((name, version, written.release.unwrap_or_default()));
    }

    fn label(&mut self, kind: &str, code: DefectCode, value: &'a str) -> Option<Text<'a>> {
        let label = self.parse::<WrittenLabel<'a>>(kind, code, value)?.label;
        if label.is_none() {
            self.problem(code, format!("property {kind}: no label"));
        }
        label
    }

    fn package_required(&mut self, written: WrittenPackage<'a>) {
        // `dependencies.yaml` calls the range a version.
        let (Some(name), Some(range)) = (written.name, written.range.or(written.version)) else {
            let text = "property olm.package.required: no packageName or versionRange";
            return self.problem(DefectCode::Dependency, text);
        };
        // What was just read was checked.
        let known = self
            .required
            .iter()
            .rev()
            .any(|it| matches!(it, IndexedRequirement::Package(known) if known.range == range));
        if !known {
            self.range(&name, &range);
        }
        self.required.push(IndexedRequirement::Package(IndexedPackageRange { name, range }));
    }

    fn range(&mut self, name: &str, range: &str) {
        match Range::parse(range) {
            Err(error) => {
                self.problem(DefectCode::Dependency, format!("dependency on {name}: {error}"))
            }
            Ok(_) => {
                if let Some(surprise) = Range::misreading(range) {
                    let text = format!("dependency on {name}: range `{range}`: {surprise}");
                    self.problem(DefectCode::MisleadingRange, text);
                }
            }
        }
    }

    fn constraint(&mut self, value: &str) {
        match constraint::read(value) {
            Ok(constraint) => {
                let mut ranges = Vec::new();
                constraint::ranges(&constraint, &mut ranges);
                for package in ranges {
                    self.range(&package.name, &package.range);
                }
                self.required.push(IndexedRequirement::Constraint(constraint));
            }
            Err(error) => self.problem(DefectCode::Dependency, format!("olm.constraint: {error}")),
        }
    }

    fn maximum_open_shift(&mut self, value: &'a str) {
        // Upstream reads numbers, too, and with them 4.20 as 4.2.
        if value.starts_with(|first: char| first.is_ascii_digit() || first == '-') {
            let text = format!("olm.maxOpenShiftVersion {}", number_for_text(value));
            return self.problem(DefectCode::Property, text);
        }
        let text = value.trim_matches('"');
        let is_number = |part: &str| {
            !part.is_empty() && part.len() < 6 && part.bytes().all(|byte| byte.is_ascii_digit())
        };
        let parts = text.split_once('.');
        if !parts.is_some_and(|(major, minor)| is_number(major) && is_number(minor)) {
            let text = format!("olm.maxOpenShiftVersion: {value} is not major.minor");
            return self.problem(DefectCode::Property, text);
        }
        if self.maximum_open_shift.is_some() {
            return self
                .problem(DefectCode::Property, "more than one property olm.maxOpenShiftVersion");
        }
        self.maximum_open_shift = Some(text.into());
    }

    fn metadata(&mut self, value: &'a str) {
        let Some(metadata) =
            self.parse::<WrittenMetadata<'a>>("olm.csv.metadata", DefectCode::Property, value)
        else {
            return;
        };
        self.details = details(metadata);
    }

    /// Looks for the ClusterServiceVersion among the manifests of a bundle.
    fn objects(&mut self, values: &[&'a str]) {
        for value in values {
            let kind = "olm.bundle.object";
            let Some(object) = self.parse::<WrittenObject<'a>>(kind, DefectCode::Property, value)
            else {
                continue;
            };
            let Some(bytes) = object.data.and_then(|data| STANDARD.decode(&*data).ok()) else {
                self.problem(
                    DefectCode::Property,
                    "property olm.bundle.object: data is not base64",
                );
                continue;
            };
            if let Some(details) = details_of_manifest(&bytes) {
                self.details = details;
                return;
            }
        }
    }
}

fn details_of_manifest(bytes: &[u8]) -> Option<BundleDetails<'static>> {
    let manifest: WrittenManifest<'_> = serde_json::from_slice(bytes).ok()?;
    if manifest.kind.as_deref() != Some("ClusterServiceVersion") {
        return None;
    }
    let mut metadata: WrittenMetadata<'_> = serde_json::from_str(manifest.spec?.get()).ok()?;
    let object = manifest.metadata.unwrap_or_default();
    (metadata.annotations, metadata.labels) = (object.annotations, object.labels);
    Some(owned(&details(metadata)))
}

fn owned(details: &BundleDetails<'_>) -> BundleDetails<'static> {
    let text = |text: &Text<'_>| Text::from(text.to_string());
    BundleDetails {
        display_name: text(&details.display_name),
        description: text(&details.description),
        provider: text(&details.provider),
        install_modes: details.install_modes,
        minimum_kubernetes: text(&details.minimum_kubernetes),
        native_apis: details
            .native_apis
            .iter()
            .map(|api| IndexedApi {
                group: text(&api.group),
                version: text(&api.version),
                kind: text(&api.kind),
            })
            .collect(),
        architectures: details.architectures.iter().map(text).collect(),
        capabilities: details.capabilities.iter().map(text).collect(),
    }
}

fn details<'a>(metadata: WrittenMetadata<'a>) -> BundleDetails<'a> {
    let modes = metadata.install_modes.map(|modes| {
        let mut supported = InstallModes::default();
        for mode in modes.0 {
            let on = mode.supported.unwrap_or_default();
            match mode.kind.as_deref() {
                Some("OwnNamespace") => supported.own_namespace = on,
                Some("SingleNamespace") => supported.single_namespace = on,
                Some("MultiNamespace") => supported.multi_namespace = on,
                Some("AllNamespaces") => supported.all_namespaces = on,
                Some(_) | None => {}
            }
        }
        supported
    });
    let natives = metadata.native_apis.unwrap_or_default().0.into_iter();
    let annotations = metadata.annotations.unwrap_or_default();
    BundleDetails {
        display_name: metadata.display_name.unwrap_or_default(),
        description: annotations.description.unwrap_or_default(),
        provider: metadata.provider.and_then(|it| it.name).unwrap_or_default(),
        install_modes: modes,
        minimum_kubernetes: metadata.minimum_kubernetes.unwrap_or_default(),
        native_apis: natives.filter_map(of_core_or_written).collect(),
        architectures: metadata.labels.map(architectures).unwrap_or_default(),
        capabilities: annotations
            .capabilities
            .iter()
            .flat_map(|names| names.split('+'))
            .filter(|name| !name.is_empty())
            .map(|name| Text::from(name.to_owned()))
            .collect(),
    }
}

/// The label by which a ClusterServiceVersion says that it runs on an architecture.
const ARCHITECTURE_LABEL: &str = "operatorframework.io/arch.";

fn architectures<'a>(labels: &RawValue) -> Vec<Text<'a>> {
    if !labels.get().contains(ARCHITECTURE_LABEL) {
        return Vec::new();
    }
    let labels: BTreeMap<String, Value> = serde_json::from_str(labels.get()).unwrap_or_default();
    let supported = labels.iter().filter(|(_, value)| *value == "supported");
    supported
        .filter_map(|(key, _)| key.strip_prefix(ARCHITECTURE_LABEL))
        .map(|name| Text::from(name.to_owned()))
        .collect()
}

/// An API; native ones may be of the core group, whose name is empty.
fn of_core_or_written(api: WrittenApi<'_>) -> Option<IndexedApi<'_>> {
    let group = api.group.unwrap_or_default();
    Some(IndexedApi { group, version: api.version?, kind: api.kind? })
}

fn of_written(api: WrittenApi<'_>) -> Option<IndexedApi<'_>> {
    let api = IndexedApi { group: api.group?, version: api.version?, kind: api.kind? };
    let complete = !api.group.is_empty() && !api.version.is_empty() && !api.kind.is_empty();
    complete.then_some(api)
}

/// What is wrong with the version of a bundle (RES-1.5, RES-1.6).
pub(super) fn check_version(version: &str) -> Result<semver::Version, String> {
    parse_strict(version).map_err(|error| error.to_string())
}
