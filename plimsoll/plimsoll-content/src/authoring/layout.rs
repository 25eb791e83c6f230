//! `release.yaml`: what the author of a release says about it.

mod checks;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::fields::{Field, FieldReader, Fields};
use super::{RELEASE_FILE, SourceProblems};
use crate::capability::{meant, most_similar};
use crate::diagnostic::FindingCode;
use crate::yaml;

const FIELDS: [&str; 10] = [
    "name",
    "version",
    "previous",
    "channels",
    "url",
    "profiles",
    "capabilities",
    "images",
    "kubeVersion",
    "components",
];
const CAPABILITY_FIELDS: [&str; 5] = ["name", "description", "requires", "featureGates", "optIn"];
const IMAGE_FIELDS: [&str; 3] = ["name", "from", "image"];
const COMPONENT_FIELDS: [&str; 8] =
    ["name", "runLevel", "namespace", "capability", "gate", "values", "apiVersions", "omitHooks"];
const GATE_FIELDS: [&str; 1] = ["clusterOperator"];

/// Distance of the run levels that components get by their position.
const LEVEL_STEP: u32 = 10;
/// Highest run level.
const LEVEL_MAX: u32 = 999;
/// What `components` is for.
const COMPONENTS: &str = "name the folders of the release, in their order";
/// Longest name of a component or a release: it becomes a part of names of objects and files.
const NAME_LEN_MAX: usize = 53;

/// What `release.yaml` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReleaseSource {
    /// Name of what is released.
    pub name: String,
    /// Version of the release.
    pub version: String,
    /// Versions from which an update leads here.
    pub previous: Vec<String>,
    /// Update channels that it belongs to.
    pub channels: Vec<String>,
    /// Where its release notes are; empty if it says nothing.
    pub url: String,
    /// Cluster profiles of manifests that name none themselves; without any, these are for clusters of any
    /// profile.
    pub profiles: Vec<String>,
    /// Its optional parts.
    pub capabilities: Vec<SourceCapability>,
    /// Its images.
    pub images: Vec<SourceImage>,
    /// The version of Kubernetes that Helm charts are rendered for; `None` for the one that Helm
    /// knows.
    pub kube_version: Option<String>,
    /// Its components, in their order.
    pub components: Vec<Component>,
}

/// A capability of a release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceCapability {
    /// Its name.
    pub name: String,
    /// Whether clusters that select nothing are without it.
    pub opt_in: bool,
    /// Its entry in the ReleaseCapabilities manifest.
    pub declaration: Value,
}

/// An image of a release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceImage {
    /// The name by which `image-for` finds it.
    pub name: String,
    /// The repository that manifests name instead, with any tag or digest; `None` if they name the
    /// image itself.
    pub from: Option<String>,
    /// Its pull specification.
    pub image: String,
    /// The line of `release.yaml` on which it begins.
    pub line: usize,
}

/// A component: a folder of the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Component {
    /// Its name, which is that of its folder.
    pub name: String,
    /// Its run level.
    pub run_level: u32,
    /// Namespace of its objects that name none.
    pub namespace: Option<String>,
    /// The capabilities that its manifests belong to, as their annotation has them.
    pub capability: Option<String>,
    /// The ClusterOperator that the component is done with.
    pub cluster_operator: Option<String>,
    /// Values of its Helm chart.
    pub values: ChartValues,
    /// API versions, or kinds of them, that its Helm chart finds besides those of Kubernetes.
    pub api_versions: Vec<String>,
    /// Names of Helm hooks that are left out.
    pub omit_hooks: BTreeSet<String>,
    /// The line of `release.yaml` on which it begins.
    pub line: usize,
}

/// Values of a Helm chart beside its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChartValues {
    /// None.
    Own,
    /// Those of a file, by its path in the source.
    File(String),
    /// Those of `release.yaml`.
    Inline(Value),
}

impl ReleaseSource {
    /// Reads `release.yaml`; `version` replaces the one that it names.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn read(text: &str, version: Option<&str>) -> Result<Self, SourceProblems> {
        let value = document(text)?;
        let lines = yaml::lines(text);
        // A document that is not null has lines.
        let Some(lines) = lines.first() else { return Err(empty()) };
        let mut reader = FieldReader::new(RELEASE_FILE, lines);
        let fields = reader.fields(&Field::new("", &value), &FIELDS);
        let source = source(&fields, version, lines, &mut reader);
        let mut problems = reader.problems;
        problems.sort_by_key(|problem| problem.line);
        if problems.is_empty() { Ok(source) } else { Err(SourceProblems(problems)) }
    }
}

fn empty() -> SourceProblems {
    problem(0, "the file is empty; it needs name, version and components")
}

/// Returns the only problem of the file, on a line from 1; 0 is the whole file.
fn problem(line: usize, message: impl Into<String>) -> SourceProblems {
    SourceProblems(vec![FindingCode::Source.diagnostic(RELEASE_FILE, message).at_line(line)])
}

/// The one document of a text.
fn document(text: &str) -> Result<Value, SourceProblems> {
    let mut documents = yaml::parse(text).into_iter().filter(|it| it.value != Ok(Value::Null));
    let first = documents.next().ok_or_else(empty)?;
    let duplicate = first.notes.first();
    if let Some(second) = documents.next() {
        return Err(problem(second.line, "a second document begins here, one is expected"));
    }
    if let Some(note) = duplicate {
        return Err(problem(note.line.unwrap_or(first.line), note.oddity.to_string()));
    }
    first.value.map_err(|error| problem(error.line, format!("{error}, column {}", error.column)))
}

fn source(
    fields: &Fields<'_>,
    version: Option<&str>,
    lines: &yaml::Lines,
    reader: &mut FieldReader<'_>,
) -> ReleaseSource {
    let written = reader.text(fields.field("version").as_ref());
    let version = match version {
        Some(version) => version.to_owned(),
        None => written.unwrap_or_default(),
    };
    if version.is_empty() {
        require(fields, "version", "write a version such as 1.0.0", reader);
    } else if let Err(error) = semver::Version::parse(&version) {
        reader.problem("version", format!("{version:?} is not a semantic version: {error}"));
    }
    let previous = previous(fields, &version, reader);
    let name = required_name(fields, reader);
    let profiles = checks::distinct(fields, "profiles", "profile", &checks::profile, reader);
    let capabilities: Vec<_> = reader
        .items(fields.field("capabilities"))
        .iter()
        .map(|item| capability(item, reader))
        .collect();
    let images: Vec<_> =
        reader.items(fields.field("images")).iter().map(|it| image(it, lines, reader)).collect();
    checks::images(&images, reader);
    require(fields, "components", COMPONENTS, reader);
    let components = components(reader.items(fields.field("components")), lines, reader);
    if fields.field("components").is_some_and(|it| it.value.as_array().is_some_and(Vec::is_empty)) {
        reader.problem("components", format!("there are none: {COMPONENTS}"));
    }
    let source = ReleaseSource {
        name,
        version,
        previous,
        channels: checks::distinct(fields, "channels", "channel", &checks::channel, reader),
        url: reader.text(fields.field("url").as_ref()).unwrap_or_default(),
        profiles,
        capabilities,
        images,
        kube_version: checks::kube_version(fields, reader),
        components,
    };
    references(&source, reader);
    source
}

/// The versions from which an update leads to a version.
fn previous(fields: &Fields<'_>, version: &str, reader: &mut FieldReader<'_>) -> Vec<String> {
    let released = semver::Version::parse(version).ok();
    let problem = |text: &str| match semver::Version::parse(text) {
        Err(error) => Some(format!("{text:?} is not a semantic version: {error}")),
        Ok(_) if text == version => Some(format!("{text} is the version of the release itself")),
        Ok(earlier) => released.as_ref().is_some_and(|released| earlier >= *released).then(|| {
            format!("{text} is newer than the release, {version}: name earlier versions only")
        }),
    };
    checks::distinct(fields, "previous", "version", &problem, reader)
}

/// Reports a field that is absent.
fn require(fields: &Fields<'_>, name: &str, what: &str, reader: &mut FieldReader<'_>) {
    if fields.exist() && fields.field(name).is_none() {
        reader.problem(&fields.path, format!("{name} is missing: {what}"));
    }
}

/// The field `name`, which is a part of the names of files and objects.
fn required_name(fields: &Fields<'_>, reader: &mut FieldReader<'_>) -> String {
    require(fields, "name", "lower-case letters, digits and `-`", reader);
    let field = fields.field("name");
    let Some(name) = reader.text(field.as_ref()) else { return String::new() };
    if let (Err(message), Some(field)) = (check_name(&name), field) {
        reader.problem(&field.path, message);
    }
    name
}

/// Checks the name of a release or a component.
///
/// # Errors
/// What names look like, if this is none.
pub fn check_name(name: &str) -> Result<(), String> {
    let letter = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit();
    let word = |word: &str| !word.is_empty() && word.bytes().all(letter);
    if name.len() <= NAME_LEN_MAX && name.split('-').all(word) {
        return Ok(());
    }
    Err(format!(
        "{name:?} is not a name: use lower-case letters and digits in groups joined by single \
         hyphens, {NAME_LEN_MAX} at most"
    ))
}

fn capability(item: &Field<'_>, reader: &mut FieldReader<'_>) -> SourceCapability {
    let fields = reader.fields(item, &CAPABILITY_FIELDS);
    require(&fields, "name", "the name by which clusters select it", reader);
    let name = reader.text(fields.field("name").as_ref()).unwrap_or_default();
    let mut declaration = json!({ "name": name });
    if let Some(description) = reader.text(fields.field("description").as_ref()) {
        declaration["description"] = description.into();
    }
    for list in ["requires", "featureGates"] {
        let names = reader.texts(fields.field(list));
        if !names.is_empty() {
            declaration[list] = names.into();
        }
    }
    let opt_in = fields.field("optIn");
    let is_opt_in = opt_in.as_ref().and_then(|field| field.value.as_bool());
    if let (Some(field), None) = (&opt_in, is_opt_in) {
        reader.problem(&field.path, "must be true or false");
    }
    SourceCapability { name, opt_in: is_opt_in.unwrap_or_default(), declaration }
}

fn image(item: &Field<'_>, lines: &yaml::Lines, reader: &mut FieldReader<'_>) -> SourceImage {
    let fields = reader.fields(item, &IMAGE_FIELDS);
    require(&fields, "name", "the name by which `image-for` finds it", reader);
    require(&fields, "image", "its pull specification", reader);
    let mut text = |name: &str| reader.text(fields.field(name).as_ref());
    SourceImage {
        name: text("name").unwrap_or_default(),
        from: text("from"),
        image: text("image").unwrap_or_default(),
        line: lines.of(&item.path),
    }
}

fn components(
    items: Vec<Field<'_>>,
    lines: &yaml::Lines,
    reader: &mut FieldReader<'_>,
) -> Vec<Component> {
    let mut components: Vec<Component> = Vec::new();
    for item in items {
        let fields = reader.fields(&item, &COMPONENT_FIELDS);
        let before = components.last().map_or(0, |component| component.run_level);
        let next = (before / LEVEL_STEP + 1) * LEVEL_STEP;
        let component = Component {
            name: required_name(&fields, reader),
            run_level: run_level(&fields, reader).unwrap_or(next),
            namespace: checks::namespace(&fields, reader),
            capability: reader.text(fields.field("capability").as_ref()),
            cluster_operator: gate(&fields, reader),
            values: values(&fields, reader),
            api_versions: reader.texts(fields.field("apiVersions")),
            omit_hooks: reader.texts(fields.field("omitHooks")).into_iter().collect(),
            line: lines.of(&item.path),
        };
        if components.iter().any(|other| other.name == component.name) {
            let message = format!("component {:?} is there already", component.name);
            reader.problem(&format!("{}.name", item.path), message);
        }
        components.push(component);
    }
    components
}

fn run_level(fields: &Fields<'_>, reader: &mut FieldReader<'_>) -> Option<u32> {
    let field = fields.field("runLevel")?;
    let level = field.value.as_u64().and_then(|level| u32::try_from(level).ok());
    let level = level.filter(|level| *level <= LEVEL_MAX);
    if level.is_none() {
        reader.problem(&field.path, format!("must be a number from 0 to {LEVEL_MAX}"));
    }
    level
}

fn gate(fields: &Fields<'_>, reader: &mut FieldReader<'_>) -> Option<String> {
    let fields = reader.fields(&fields.field("gate")?, &GATE_FIELDS);
    require(&fields, "clusterOperator", "the name of the ClusterOperator to wait for", reader);
    checks::object_name(&fields, "clusterOperator", reader)
}

fn values(fields: &Fields<'_>, reader: &mut FieldReader<'_>) -> ChartValues {
    let Some(field) = fields.field("values") else { return ChartValues::Own };
    match field.value {
        Value::Object(_) => ChartValues::Inline(field.value.clone()),
        Value::String(path) if is_inside(path) => ChartValues::File(path.clone()),
        _ => {
            let message = "must be a mapping of values, or the path of a file in the source";
            reader.problem(&field.path, message);
            ChartValues::Own
        }
    }
}

/// Whether a path stays below where it begins.
fn is_inside(path: &str) -> bool {
    !path.is_empty() && path.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

/// Reports capabilities that components name and that are not declared.
fn references(source: &ReleaseSource, reader: &mut FieldReader<'_>) {
    let known = || source.capabilities.iter().map(|it| it.name.as_str());
    for (index, component) in source.components.iter().enumerate() {
        let names = component.capability.iter().flat_map(|names| names.split('+'));
        for name in names.filter(|name| !known().any(|it| it == *name)) {
            let message = match most_similar(name, known()) {
                similar @ Some(_) => format!("there is no capability {name:?}{}", meant(similar)),
                None => format!("there is no capability {name:?}: declare it in capabilities"),
            };
            reader.problem(&format!("components[{index}].capability"), message);
        }
    }
}
