//! ReleaseCapabilities: the manifest by which a payload declares capabilities and sets of its own.
//!
//! It is read and never applied. What it means is described in `docs/payload.md`.

use std::sync::Arc;

use serde::Deserialize;

use super::{CURRENT, Capability, CapabilityRegistry, CapabilitySet, NONE};
use crate::Manifest;

/// API group of the kind.
pub const GROUP: &str = "plimsoll.io";
/// API version of the kind.
pub const VERSION: &str = "v1alpha1";
/// The kind.
pub const KIND: &str = "ReleaseCapabilities";

/// Whether a manifest declares capabilities, in whatever version.
pub fn is_declaration(manifest: &Manifest) -> bool {
    manifest.key.group == GROUP && manifest.key.kind == KIND
}

/// The `spec` of a ReleaseCapabilities manifest.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct CapabilityDeclaration {
    /// Forget the names and versioned sets of the published API: this release has only what it
    /// declares, and `vCurrent` begins empty.
    pub omit_built_in: bool,
    /// Capabilities of the release.
    pub capabilities: Vec<DeclaredCapability>,
    /// Sets of the release, or what it changes about `vCurrent`.
    pub sets: Vec<DeclaredSet>,
}

/// A capability that a payload declares.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DeclaredCapability {
    /// Its name.
    pub name: String,
    /// What it brings, for people.
    #[serde(default)]
    pub description: String,
    /// Capabilities without which it does not work.
    #[serde(default)]
    pub requires: Vec<String>,
    /// Feature gates of which one must be on for it to exist.
    #[serde(default)]
    pub feature_gates: Vec<String>,
}

/// A set that a payload declares.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DeclaredSet {
    /// Its name; `vCurrent` for what the release changes about that one.
    pub name: String,
    /// The set whose capabilities it begins with; none but for `vCurrent`, which begins with what
    /// it has.
    #[serde(default)]
    pub extends: Option<String>,
    /// Capabilities in it.
    #[serde(default)]
    pub capabilities: Vec<String>,
    /// Capabilities of the set it extends that are not in it.
    #[serde(default)]
    pub without: Vec<String>,
}

/// What is wrong with a ReleaseCapabilities manifest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeclarationError {
    /// It is of a version that this program does not read.
    #[error("version {0} of {KIND} is not known, write apiVersion: {GROUP}/{VERSION}")]
    Version(String),
    /// Its spec is not what it must be.
    #[error("{0}")]
    Spec(String),
    /// A name that no annotation or list could hold.
    #[error("{field}: {name:?} is not a name: use letters, digits, `-`, `.` and `_`")]
    Name {
        /// The path of the field, such as `spec.sets[0].name`.
        field: String,
        /// The name, as it is written.
        name: String,
    },
    /// Something is declared twice.
    #[error("{field}: {name:?} is declared twice")]
    Twice {
        /// The path of the field, such as `spec.sets[0].name`.
        field: String,
        /// The name, as it is written.
        name: String,
    },
    /// A capability that is not declared.
    #[error("{field}: there is no capability {name:?}{}", meant(.similar.as_deref()))]
    UnknownCapability {
        /// The path of the field, such as `spec.sets[0].name`.
        field: String,
        /// The name, as it is written.
        name: String,
        /// The closest name that exists; `None` when none is close.
        similar: Option<String>,
    },
    /// A set that is not declared.
    #[error("{field}: there is no set {name:?}{}", meant(.similar.as_deref()))]
    UnknownSet {
        /// The path of the field, such as `spec.sets[0].name`.
        field: String,
        /// The name, as it is written.
        name: String,
        /// The closest name that exists; `None` when none is close.
        similar: Option<String>,
    },
    /// A set of the published API, whose content is promised.
    #[error("{field}: set {name} never changes, only {CURRENT} does; declare one of another name")]
    FixedSet {
        /// The path of the field, such as `spec.sets[0].name`.
        field: String,
        /// The name, as it is written.
        name: String,
    },
}

/// The end of a message about a name that does not exist: the one that was probably meant.
pub fn meant(similar: Option<&str>) -> String {
    similar.map_or_else(String::new, |name| format!(", did you mean {name:?}?"))
}

impl CapabilityRegistry {
    /// Takes up what some manifests declare, in their order; the others are passed over. Returns
    /// what is wrong, each with the number of its manifest.
    pub fn declare(&mut self, manifests: &[Manifest]) -> Vec<(usize, DeclarationError)> {
        let mut problems = Vec::new();
        let mut declarations = Vec::new();
        let declaring = manifests.iter().enumerate().filter(|(_, it)| is_declaration(it));
        for (number, manifest) in declaring {
            match read(manifest) {
                Ok(declaration) => declarations.push((number, &manifest.file, declaration)),
                Err(problem) => problems.push((number, problem)),
            }
        }
        if declarations.iter().any(|(_, _, declaration)| declaration.omit_built_in) {
            *self = Self::bare();
        }
        // All names first: what one manifest declares another may use.
        for (number, file, declaration) in &declarations {
            let found = self.declare_capabilities(file, declaration);
            problems.extend(found.into_iter().map(|problem| (*number, problem)));
        }
        for (number, file, declaration) in &declarations {
            let found = self.declare_sets(file, declaration);
            problems.extend(found.into_iter().map(|problem| (*number, problem)));
        }
        problems
    }

    fn declare_capabilities(
        &mut self,
        file: &Arc<str>,
        from: &CapabilityDeclaration,
    ) -> Vec<DeclarationError> {
        let mut problems = Vec::new();
        for (index, declared) in from.capabilities.iter().enumerate() {
            let field = format!("spec.capabilities[{index}].name");
            let name = declared.name.clone();
            let before = self.capability(&name).is_some_and(|it| it.declared.is_some());
            if !is_name(&name) {
                problems.push(DeclarationError::Name { field, name });
            } else if before {
                problems.push(DeclarationError::Twice { field, name });
            } else {
                let capability = Capability {
                    name: name.clone(),
                    description: declared.description.trim().to_owned(),
                    requires: declared.requires.clone(),
                    gates: declared.feature_gates.clone(),
                    declared: Some(Arc::clone(file)),
                };
                self.capabilities.insert(name, capability);
            }
        }
        problems
    }

    fn declare_sets(
        &mut self,
        file: &Arc<str>,
        from: &CapabilityDeclaration,
    ) -> Vec<DeclarationError> {
        let mut problems = Vec::new();
        for (index, declared) in from.capabilities.iter().enumerate() {
            let field = format!("spec.capabilities[{index}].requires");
            problems.extend(self.unknown(&field, &declared.requires));
        }
        for (index, declared) in from.sets.iter().enumerate() {
            let field = |name: &str| format!("spec.sets[{index}].{name}");
            problems.extend(self.unknown(&field("capabilities"), &declared.capabilities));
            problems.extend(self.unknown(&field("without"), &declared.without));
            if let Err(problem) = self.declare_set(file, &field, declared) {
                problems.push(problem);
            }
        }
        problems
    }

    fn declare_set(
        &mut self,
        file: &Arc<str>,
        field: &dyn Fn(&str) -> String,
        declared: &DeclaredSet,
    ) -> Result<(), DeclarationError> {
        let name = declared.name.clone();
        if !is_name(&name) {
            return Err(DeclarationError::Name { field: field("name"), name });
        }
        let before = self.set(&name);
        if before.is_some_and(|set| set.declared.is_some()) {
            return Err(DeclarationError::Twice { field: field("name"), name });
        }
        if before.is_some() && name != CURRENT {
            return Err(DeclarationError::FixedSet { field: field("name"), name });
        }
        let begins = match (&declared.extends, name.as_str()) {
            (Some(extends), _) => extends.as_str(),
            (None, CURRENT) => CURRENT,
            (None, _) => NONE,
        };
        let Some(base) = self.set(begins) else {
            let similar = self.similar_set(begins).map(str::to_owned);
            let name = begins.to_owned();
            return Err(DeclarationError::UnknownSet { field: field("extends"), name, similar });
        };
        let mut capabilities = base.capabilities.clone();
        capabilities.extend(declared.capabilities.iter().cloned());
        capabilities.retain(|name| !declared.without.contains(name));
        let set = CapabilitySet { name, capabilities, declared: Some(Arc::clone(file)) };
        match self.sets.iter_mut().find(|it| it.name == set.name) {
            Some(current) => *current = set,
            None => self.sets.push(set),
        }
        Ok(())
    }

    /// A problem for each name of a list that is not declared.
    fn unknown(&self, field: &str, names: &[String]) -> Vec<DeclarationError> {
        let unknown = names.iter().enumerate().filter(|(_, name)| self.capability(name).is_none());
        let problem = |(index, name): (usize, &String)| DeclarationError::UnknownCapability {
            field: format!("{field}[{index}]"),
            name: name.clone(),
            similar: self.similar(name).map(str::to_owned),
        };
        unknown.map(problem).collect()
    }
}

fn read(manifest: &Manifest) -> Result<CapabilityDeclaration, DeclarationError> {
    if manifest.version != VERSION {
        return Err(DeclarationError::Version(manifest.version.clone()));
    }
    let mut object = manifest.object();
    Deserialize::deserialize(object["spec"].take())
        .map_err(|error: serde_json::Error| DeclarationError::Spec(format!("spec: {error}")))
}

/// Whether a name can stand in annotations, where `+` separates them, and in lists.
fn is_name(name: &str) -> bool {
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || "-._".contains(letter);
    name.starts_with(|first: char| first.is_ascii_alphanumeric()) && name.chars().all(allowed)
}
