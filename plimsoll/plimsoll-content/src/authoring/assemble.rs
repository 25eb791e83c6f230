//! From the rendered objects of components to the files of a payload.

use std::collections::{BTreeMap, BTreeSet};

use k8s_schema::builtin;
use plimsoll_api::{GroupKind, ObjectKey};
use serde_json::{Map, Value, json};

use super::documents::{Origin, RenderedFile, SourceObject, read};
use super::generated;
use super::hooks::{self, Hook, HookPlace};
use super::order::{self, Order};
use super::{Component, RELEASE_FILE, ReleaseSource, SourceProblems, images};
use crate::annotations::{CREATE_ONLY, DELETE};
use crate::built_in::NAMESPACES;
use crate::capability::{ANNOTATION as CAPABILITY, is_declaration, meant, most_similar};
use crate::definition::Scope;
use crate::diagnostic::{Diagnostic, FindingCode};
use crate::inclusion::INCLUDE_PREFIX;
use crate::kinds::Kinds;
use crate::location::Directory;
use crate::payload::{IMAGE_REFERENCES, RELEASE_METADATA, SourceFile};
use crate::{Manifest, yaml};

/// Longest name of a Job: it is a label of its pods.
const JOB_NAME_LEN_MAX: usize = 63;

/// The texts of a component.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RenderedComponent {
    /// In the order of their paths.
    pub files: Vec<RenderedFile>,
    /// The program that rendered them, and its version; `None` for plain YAML.
    pub program: Option<(String, String)>,
}

/// A release that was built.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BuiltRelease {
    /// The files of its payload, in the order of their names.
    pub files: Vec<SourceFile>,
    /// Where the objects of its files come from, by the names of the files; those that were added
    /// are not among them.
    pub origins: BTreeMap<String, Origin>,
    /// What was left out or added, a sentence each.
    pub notes: Vec<String>,
}

/// An object at its place.
struct Placed {
    origin: Option<Origin>,
    manifest: Manifest,
    object: Value,
    place: HookPlace,
}

/// Makes the files of a payload of the texts of the components of a release, which are in the order
/// of its components.
///
/// # Errors
/// Everything that keeps the payload from being made.
pub fn assemble(
    source: &ReleaseSource,
    rendered: &[RenderedComponent],
) -> Result<BuiltRelease, SourceProblems> {
    let mut assembly = Assembly {
        source,
        problems: Vec::new(),
        notes: Vec::new(),
        found: vec![false; source.images.len()],
    };
    let parts: Vec<Vec<Placed>> = source
        .components
        .iter()
        .zip(rendered)
        .map(|(component, rendered)| assembly.objects(component, rendered))
        .collect();
    let parts = assembly.namespaces(parts);
    assembly.check_images();
    let Assembly { problems, notes, .. } = assembly;
    if !problems.is_empty() {
        return Err(SourceProblems(problems));
    }
    let programs = rendered.iter().filter_map(|it| it.program.as_ref());
    let programs = programs.map(|(name, version)| format!("{name} {version}")).collect();
    let mut built = BuiltRelease { notes, ..BuiltRelease::default() };
    let built_in = builtin::resources().iter();
    let built_in = built_in.map(|it| GroupKind::new(&it.group, &it.kind)).collect();
    for (component, objects) in source.components.iter().zip(parts) {
        write_component(source, component, objects, &built_in, &mut built);
    }
    built.files.push(manifest_file(
        &format!("0000_00_{}_00_capabilities.releasecapabilities", source.name),
        &generated::capabilities(source),
    ));
    built.files.push(special(RELEASE_METADATA, &generated::metadata(source, &programs)));
    built.files.push(special(
        IMAGE_REFERENCES,
        &generated::image_references(&source.version, &source.images),
    ));
    built.files.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(built)
}

struct Assembly<'a> {
    source: &'a ReleaseSource,
    problems: Vec<Diagnostic>,
    notes: Vec<String>,
    /// Which images of the release manifests name.
    found: Vec<bool>,
}

impl Assembly<'_> {
    /// The objects of a component as they are applied, but for namespaces that are left to it.
    fn objects(&mut self, component: &Component, rendered: &RenderedComponent) -> Vec<Placed> {
        let problems_before = self.problems.len();
        let read = |file| read(file, &mut self.problems);
        let objects: Vec<SourceObject> = rendered.files.iter().flat_map(read).collect();
        if objects.is_empty() && self.problems.len() == problems_before {
            let message = format!("component {:?} has no manifests", component.name);
            self.problems.push(
                FindingCode::Source.diagnostic(RELEASE_FILE, message).at_line(component.line),
            );
        }
        let mut hook_names = BTreeSet::new();
        let placed = objects
            .into_iter()
            .flat_map(|object| self.object(component, object, &mut hook_names))
            .collect();
        for name in component.omit_hooks.difference(&hook_names) {
            let similar = most_similar(name, hook_names.iter().map(String::as_str));
            let message = format!("omitHooks: there is no hook {name:?}{}", meant(similar));
            self.problems.push(
                FindingCode::Source.diagnostic(RELEASE_FILE, message).at_line(component.line),
            );
        }
        placed
    }

    /// Reports the profiles that an object is for, if the release lists others only, and those that seem to be
    /// misspelled. An object for a listed profile may be for others besides, of other products.
    fn check_profiles(&mut self, origin: &Origin, object: &Value) {
        let known = &self.source.profiles;
        let annotations = object.pointer("/metadata/annotations").and_then(Value::as_object);
        let keys = annotations.into_iter().flat_map(Map::keys).filter(|_| !known.is_empty());
        let named: Vec<&str> = keys.filter_map(|key| key.strip_prefix(INCLUDE_PREFIX)).collect();
        let (listed, other): (Vec<&str>, Vec<&str>) =
            named.into_iter().partition(|name| known.iter().any(|it| it == name));
        for name in other {
            let left = known.iter().map(String::as_str).filter(|it| !listed.contains(it));
            let similar = most_similar(name, left);
            if !listed.is_empty() && similar.is_none() {
                continue;
            }
            let message = format!(
                "annotation {INCLUDE_PREFIX}{name}: {RELEASE_FILE} lists no profile {name:?}{}; add it to \
                 profiles there, or correct the annotation",
                meant(similar)
            );
            self.problems.push(origin.problem(message));
        }
    }

    /// An object as it is applied; none if it is left out or wrong, and more for a Job that has a name
    /// of its own in each version.
    fn object(
        &mut self,
        component: &Component,
        SourceObject { origin, mut object }: SourceObject,
        hook_names: &mut BTreeSet<String>,
    ) -> Vec<Placed> {
        if let Err(error) = Manifest::read("".into(), 0, &object) {
            self.problems.push(origin.problem(error.to_string()));
            return Vec::new();
        }
        self.check_profiles(&origin, &object);
        let Some(hook) = self.hook(component, &origin, &object, hook_names) else {
            return Vec::new();
        };
        hooks::strip(&mut object);
        let mut more = annotations(self.source, component, &object);
        let is_job = matches!(hook.place, HookPlace::Before(_) | HookPlace::After(_));
        if is_job && !hook.each_update {
            more.insert(CREATE_ONLY.to_owned(), "true".into());
        }
        let mut placed = Vec::new();
        if is_job && hook.each_update {
            // A Job of another name runs again; the template of one that ran cannot change.
            let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            for version in &self.source.previous {
                placed
                    .push(added(deletion(&object, &job_name(&name, version), more.clone()), &hook));
            }
            object["metadata"]["name"] = job_name(&name, &self.source.version).into();
        }
        if let Err(message) = annotate(&mut object, more) {
            self.problems.push(origin.problem(message));
            return Vec::new();
        }
        images::substitute(&mut object, &self.source.images, &mut self.found);
        match Manifest::read("".into(), 0, &object) {
            Ok(manifest) => {
                placed.push(Placed { origin: Some(origin), manifest, object, place: hook.place });
            }
            Err(error) => self.problems.push(origin.problem(error.to_string())),
        }
        placed
    }

    /// What hook an object is; `None` if it is left out or cannot be converted.
    fn hook(
        &mut self,
        component: &Component,
        origin: &Origin,
        object: &Value,
        hook_names: &mut BTreeSet<String>,
    ) -> Option<Hook> {
        let kind = object["kind"].as_str().unwrap_or_default();
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let mut leave_out = |what: &str| {
            let note = format!("component {}: {what} {kind} {name:?} is left out", component.name);
            self.notes.push(note);
        };
        if hooks::is_hook(object) {
            hook_names.insert(name.to_owned());
            if component.omit_hooks.contains(name) {
                leave_out("hook");
                return None;
            }
        }
        match hooks::read(object) {
            Ok(Hook { place: HookPlace::Test, .. }) => {
                leave_out("test");
                None
            }
            Ok(hook) => Some(hook),
            Err(reason) => {
                let message = format!(
                    "{kind} {name:?} is a Helm hook that cannot be converted: {reason}; leave it \
                     out with omitHooks: [{name}] of component {}",
                    component.name
                );
                self.problems.push(origin.problem(message));
                None
            }
        }
    }

    /// Gives the namespaces of components to the objects that need one and name none, and adds those
    /// that nothing creates.
    fn namespaces(&mut self, mut parts: Vec<Vec<Placed>>) -> Vec<Vec<Placed>> {
        let manifests: Vec<Manifest> =
            parts.iter().flatten().map(|placed| placed.manifest.clone()).collect();
        let kinds = Kinds::of(&manifests);
        let is_namespace = |it: &&Manifest| it.key.group.is_empty() && it.key.kind == "Namespace";
        let mut there: BTreeSet<String> =
            manifests.iter().filter(is_namespace).map(|it| it.key.name.clone()).collect();
        there.extend(NAMESPACES.map(str::to_owned));
        for (component, objects) in self.source.components.iter().zip(&mut parts) {
            let Some(namespace) = &component.namespace else { continue };
            for placed in &mut *objects {
                let key = &mut placed.manifest.key;
                let scope = kinds.scope(&key.group_kind());
                if key.namespace.is_empty() && scope == Some(Scope::Namespaced) {
                    key.namespace.clone_from(namespace);
                    placed.object["metadata"]["namespace"] = namespace.as_str().into();
                }
            }
            let is_used = objects.iter().any(|it| it.manifest.key.namespace == *namespace);
            if is_used && there.insert(namespace.clone()) {
                objects.push(self.namespace(component, namespace));
                self.notes.push(format!(
                    "component {}: namespace {namespace} is added, since no manifest creates it",
                    component.name
                ));
            }
        }
        parts
    }

    /// The namespace of a component, and of others that name it.
    fn namespace(&self, component: &Component, name: &str) -> Placed {
        let mut object = json!({
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": { "name": name },
        });
        let mut more = annotations(self.source, component, &object);
        let shares = |other: &Component| other.namespace.as_deref() == Some(name);
        let mut sharing = self.source.components.iter().filter(|other| shares(other));
        if sharing.any(|other| other.capability != component.capability) {
            more.remove(CAPABILITY);
        }
        annotate(&mut object, more).expect("it has no annotations of another form");
        added(object, &Hook::NONE)
    }

    /// Reports images that nothing names: a repository that is misspelt changes nothing.
    fn check_images(&mut self) {
        if !self.problems.is_empty() {
            return;
        }
        for (image, found) in self.source.images.iter().zip(&self.found) {
            if let (Some(from), false) = (&image.from, found) {
                let message = format!("image {}: no manifest names {from}", image.name);
                self.problems.push(
                    FindingCode::Source.diagnostic(RELEASE_FILE, message).at_line(image.line),
                );
            }
        }
    }
}

/// An object that no file of the source has, at the place of a hook.
fn added(object: Value, hook: &Hook) -> Placed {
    let manifest = Manifest::read("".into(), 0, &object).expect("it has a kind and a name");
    Placed { origin: None, manifest, object, place: hook.place.clone() }
}

/// A manifest that deletes what an object was called in an earlier version, in the clusters that have
/// the object.
fn deletion(object: &Value, name: &str, mut annotations: Map<String, Value>) -> Value {
    let written = object.pointer("/metadata/annotations").and_then(Value::as_object);
    let decides = |key: &str| key.starts_with(INCLUDE_PREFIX) || key == CAPABILITY;
    let kept = written.into_iter().flatten().filter(|(key, _)| decides(key));
    annotations.extend(kept.map(|(key, value)| (key.clone(), value.clone())));
    annotations.insert(DELETE.to_owned(), "true".into());
    let mut metadata = json!({ "name": name, "annotations": annotations });
    if let Some(namespace) = object["metadata"].get("namespace") {
        metadata["namespace"] = namespace.clone();
    }
    json!({ "apiVersion": object["apiVersion"], "kind": object["kind"], "metadata": metadata })
}

/// The annotations that an object of a component lacks.
fn annotations(
    source: &ReleaseSource,
    component: &Component,
    object: &Value,
) -> Map<String, Value> {
    let written = object.pointer("/metadata/annotations").and_then(Value::as_object);
    let has = |is: &dyn Fn(&str) -> bool| {
        written.is_some_and(|annotations| annotations.keys().any(|key| is(key)))
    };
    let mut more = Map::new();
    if !has(&|key| key.starts_with(INCLUDE_PREFIX)) {
        let profiles = source.profiles.iter();
        more.extend(profiles.map(|it| (format!("{INCLUDE_PREFIX}{it}"), "true".into())));
    }
    if let Some(capability) = &component.capability
        && !has(&|key| key == CAPABILITY)
    {
        more.insert(CAPABILITY.to_owned(), capability.as_str().into());
    }
    more
}

/// Adds annotations to an object.
fn annotate(object: &mut Value, more: Map<String, Value>) -> Result<(), String> {
    let metadata = &mut object["metadata"];
    if metadata["annotations"].is_null() {
        if more.is_empty() {
            if let Some(metadata) = metadata.as_object_mut() {
                metadata.remove("annotations");
            }
            return Ok(());
        }
        metadata["annotations"] = Value::Object(Map::new());
    }
    let annotations = metadata["annotations"].as_object_mut();
    let annotations = annotations.ok_or("metadata.annotations must be a mapping")?;
    annotations.extend(more);
    Ok(())
}

/// The name of a Job that runs in every release.
fn job_name(name: &str, version: &str) -> String {
    let version: String = version
        .to_ascii_lowercase()
        .chars()
        .map(|it| if it.is_ascii_alphanumeric() { it } else { '-' })
        .collect();
    let room = JOB_NAME_LEN_MAX.saturating_sub(version.len() + 1);
    let name = name.get(..room).unwrap_or(name).trim_end_matches(['-', '.']);
    format!("{name}-{version}")
}

fn write_component(
    source: &ReleaseSource,
    component: &Component,
    mut objects: Vec<Placed>,
    built_in: &BTreeSet<GroupKind>,
    built: &mut BuiltRelease,
) {
    if let Some(name) = &component.cluster_operator {
        objects.push(gate(source, component, name, &objects));
    }
    let weights = |of: fn(&HookPlace) -> Option<i64>| {
        objects.iter().filter_map(|placed| of(&placed.place)).collect()
    };
    let order = Order {
        built_in: Some(built_in),
        defined: objects
            .iter()
            .filter_map(|placed| Some(placed.manifest.definition.as_ref()?.kind.clone()))
            .collect(),
        before: weights(|it| if let HookPlace::Before(weight) = it { Some(*weight) } else { None }),
        after: weights(|it| if let HookPlace::After(weight) = it { Some(*weight) } else { None }),
    };
    // Objects of the same name and kind are told apart by a number, in an order of their own.
    objects.sort_by(|one, other| one.manifest.key.cmp(&other.manifest.key));
    for placed in objects {
        let key = &placed.manifest.key;
        let number = order.number(key, &placed.place);
        let stem = order::file_stem(component.run_level, &component.name, &number, key);
        let is_free = |name: &String| !built.files.iter().any(|file| file.name == *name);
        let mut names = (1_usize..).map(|count| match count {
            1 => format!("{stem}.yaml"),
            count => format!("{stem}_{count}.yaml"),
        });
        let name = names.find(is_free).expect("there are more names than files");
        built.files.push(manifest_file(name.trim_end_matches(".yaml"), &placed.object));
        if let Some(origin) = placed.origin {
            built.origins.insert(name, origin);
        }
    }
}

/// The ClusterOperator that a component is done with.
fn gate(source: &ReleaseSource, component: &Component, name: &str, objects: &[Placed]) -> Placed {
    let keys: Vec<&ObjectKey> = objects
        .iter()
        .filter(|placed| !is_declaration(&placed.manifest))
        .map(|placed| &placed.manifest.key)
        .collect();
    let mut object = generated::cluster_operator(source, name, &keys);
    let more = annotations(source, component, &object);
    annotate(&mut object, more).expect("it has no annotations of another form");
    added(object, &Hook::NONE)
}

fn manifest_file(stem: &str, object: &Value) -> SourceFile {
    SourceFile {
        directory: Directory::ReleaseManifests,
        name: format!("{stem}.yaml"),
        bytes: yaml::write(object).into(),
    }
}

fn special(name: &str, content: &Value) -> SourceFile {
    let text = format!("{content:#}\n");
    let name = name.to_owned();
    SourceFile { directory: Directory::ReleaseManifests, name, bytes: text.into() }
}
