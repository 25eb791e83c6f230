//! Lock files: the exact bundles that a loadout resolves to, with their digests.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_api::olm::BundleReference;
use plimsoll_content::hash::sha256;
use plimsoll_resolve::{Bundle, CatalogPart};
use serde::{Deserialize, Serialize};

use super::loadout::converge;
use super::planner::is_kept;
use super::{InstalledOperator, OperatorInputs, RequestedOperator, version_text};

/// The version of the file format.
const FORMAT: u32 = 2;

/// The bundles that a loadout resolves to, by Operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OperatorLock {
    format: u32,
    operators: BTreeMap<String, LockedBundle>,
}

/// A bundle of a lock file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct LockedBundle {
    version: String,
    bundle: String,
    channel: String,
    catalog: String,
    /// The image with the content; empty if the catalog has the content itself, or does not describe the bundle.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    image: String,
    /// The digest of the content: of the image, or of the files that the catalog has; empty if it is not known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    content_digest: String,
    /// The digest of the catalog's description of the bundle: what it provides, requires and is compatible
    /// with; empty if no catalog describes it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    description_digest: String,
    /// The digest of the properties that expressions see; empty if none was reached that may see them.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    properties_digest: String,
}

impl LockedBundle {
    /// Returns whether another bundle is this one, as far as the content and the description of both are known.
    fn may_be(&self, other: &Self) -> bool {
        let is_image_known = |it: &Self| {
            let has_content = !it.content_digest.is_empty() || !it.image.is_empty();
            has_content && !it.description_digest.is_empty()
        };
        let mut like = other.clone();
        for (is, was) in [
            (&mut like.content_digest, &self.content_digest),
            (&mut like.description_digest, &self.description_digest),
            (&mut like.properties_digest, &self.properties_digest),
        ] {
            if is.is_empty() || was.is_empty() {
                is.clone_from(was);
            }
        }
        if !is_image_known(self) || !is_image_known(other) {
            like.image.clone_from(&self.image);
        }
        *self == like
    }
}

/// The content of a bundle.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LockedContent {
    /// The image that it lies in; empty if the catalog has it itself.
    pub image: String,
    /// Its digest; empty if it is not known, as of an image with a tag alone.
    pub digest: String,
}

/// Operators, some of which have what a lock file has for installed.
#[derive(Debug, Clone, Default)]
pub struct LockedOperators {
    /// The Operators, by name.
    pub operators: BTreeMap<String, RequestedOperator>,
    /// The names of those whose bundle is installed only according to the lock file.
    pub locked: BTreeSet<String>,
}

impl LockedOperators {
    /// Returns Operators of which no lock file says what is installed.
    pub fn unlocked(operators: BTreeMap<String, RequestedOperator>) -> Self {
        Self { operators, locked: BTreeSet::new() }
    }
}

/// The part of a lock file that all versions of the format have.
#[derive(Deserialize)]
struct AnyLock {
    format: u32,
}

impl OperatorLock {
    /// Locks the installed bundles of Operators as their catalogs describe them, whatever the cluster knows of
    /// them; `contents` has the content of each, by Operator.
    pub fn new(
        operators: &BTreeMap<String, RequestedOperator>,
        contents: &BTreeMap<String, LockedContent>,
        catalogs: &[CatalogPart],
    ) -> Self {
        let locked = operators.iter().filter_map(|(name, operator)| {
            let installed = operator.installed.as_ref()?;
            let LockedContent { image, digest } = contents.get(name).cloned().unwrap_or_default();
            let described = described(name, &installed.reference, catalogs);
            let bundle = LockedBundle {
                version: installed.bundle.version.to_string(),
                bundle: installed.reference.name.clone(),
                channel: installed.reference.channel.clone(),
                catalog: installed.reference.catalog.clone(),
                image,
                content_digest: digest,
                description_digest: described.map(description_digest).unwrap_or_default(),
                properties_digest: described.map(properties_digest).unwrap_or_default(),
            };
            Some((name.clone(), bundle))
        });
        Self { format: FORMAT, operators: locked.collect() }
    }

    /// Reads a lock file.
    ///
    /// # Errors
    ///
    /// A sentence, when the text is not JSON of this form, or has another format version.
    pub fn read(text: &str) -> Result<Self, String> {
        let other =
            |error: serde_json::Error| format!("it is not what `operator lock` writes: {error}");
        let AnyLock { format } = serde_json::from_str(text).map_err(other)?;
        match format {
            FORMAT => serde_json::from_str(text).map_err(other),
            found => {
                let anew = "write it anew with `operator lock`";
                Err(format!("its format is {found}, not {FORMAT}: {anew}"))
            }
        }
    }

    /// Returns a sentence for each bundle whose content is not locked, since no digest of it is known.
    pub fn unlocked(&self) -> Vec<String> {
        let unlocked = self.operators.iter().filter(|(_, it)| it.content_digest.is_empty());
        let sentence = |(name, bundle): (&String, &LockedBundle)| {
            let LockedBundle { image, catalog, .. } = bundle;
            let why = match image.is_empty() {
                true => format!(
                    "what is read here of catalog {catalog} has neither its image nor its files"
                ),
                false => {
                    format!("its image {image} has no digest, and its tag may get other content")
                }
            };
            let version = version_text(&bundle.version);
            format!("the content of {name} {version} is not locked: {why}")
        };
        unlocked.map(sentence).collect()
    }

    /// Returns the lock file as text. Equal content has equal text.
    pub fn text(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("all keys are strings");
        text.push('\n');
        text
    }

    /// Takes the locked bundles as installed by the Operators of which nothing else is known to be: files do not
    /// declare what is installed. One from which nothing leads to what its Operator requests does not count.
    pub fn filled(&self, inputs: OperatorInputs<'_>, catalogs: &[CatalogPart]) -> LockedOperators {
        let mut filled = LockedOperators::unlocked(inputs.operators.clone());
        let LockedOperators { operators, locked } = &mut filled;
        for (name, operator) in operators.iter_mut().filter(|(_, it)| it.installed.is_none()) {
            if let Some(bundle) = self.installed(name, catalogs) {
                *operator = operator.clone().with_installed(bundle);
                locked.insert(name.clone());
            }
        }
        while !locked.is_empty() {
            let inputs = OperatorInputs { operators: &*operators, ..inputs };
            let converged = converge(inputs, catalogs).operators;
            let is_stale = |name: &&String| !converged.get(*name).is_some_and(has_requested);
            let stale: Vec<String> = locked.iter().filter(is_stale).cloned().collect();
            if stale.is_empty() {
                break;
            }
            for name in stale {
                locked.remove(&name);
                if let Some(operator) = operators.get_mut(&name) {
                    operator.installed = None;
                    operator.owned.clear();
                }
            }
        }
        filled
    }

    /// Returns the locked bundle of an Operator; `None` if it is not locked or no catalog has the bundle.
    fn installed(&self, name: &str, catalogs: &[CatalogPart]) -> Option<InstalledOperator> {
        let locked = self.operators.get(name)?;
        let reference = BundleReference {
            name: locked.bundle.clone(),
            version: locked.version.clone(),
            digest: String::new(),
            channel: locked.channel.clone(),
            catalog: locked.catalog.clone(),
        };
        let bundle = described(name, &reference, catalogs)?.clone();
        Some(InstalledOperator { reference, bundle, revision: 1, upgrade_block: None })
    }

    /// Returns a sentence for each bundle of another lock file that is the locked one as far as is known: this
    /// file has a digest of the content, and the other one has none.
    pub fn uncompared(&self, other: &Self) -> Vec<String> {
        let unknown = self.operators.iter().filter(|(name, was)| {
            let is_locked = !was.content_digest.is_empty();
            other
                .operators
                .get(*name)
                .is_some_and(|is| is_locked && is.content_digest.is_empty() && was.may_be(is))
        });
        let sentence = |(name, was): (&String, &LockedBundle)| {
            let (version, catalog) = (version_text(&was.version), &was.catalog);
            format!(
                "the content of {name} {version} is locked, and its digest is not known here: name a copy of the \
                 catalog with `--catalog {catalog}=FILE`"
            )
        };
        unknown.map(sentence).collect()
    }

    /// Returns the differences of another lock file from this one, a sentence for each Operator. Content, or a
    /// description, of which either has no digest is none.
    pub fn differences(&self, other: &Self) -> Vec<String> {
        let names: BTreeSet<&String> =
            self.operators.keys().chain(other.operators.keys()).collect();
        let difference = |name: &String| {
            let version = |it: &LockedBundle| version_text(&it.version);
            Some(match (self.operators.get(name), other.operators.get(name)) {
                (Some(was), Some(is)) if was.may_be(is) => return None,
                (Some(was), Some(is)) if was.version != is.version => {
                    format!("{name} is locked at {}, and would be {}", version(was), version(is))
                }
                (Some(was), Some(is)) if was.catalog != is.catalog => {
                    format!(
                        "{name} is locked from catalog {}, and would be from {}",
                        was.catalog, is.catalog
                    )
                }
                (Some(was), Some(_)) => {
                    format!("{name} {} is another bundle than the locked one", version(was))
                }
                (Some(was), None) => {
                    format!("{name} {} is locked, and would not be installed", version(was))
                }
                (None, Some(is)) => format!("{name} {} is not locked", version(is)),
                (None, None) => return None,
            })
        };
        names.into_iter().filter_map(difference).collect()
    }
}

/// Returns a bundle of a package as its catalog describes it; `None` if that does not have it.
fn described<'c>(
    package: &str,
    reference: &BundleReference,
    catalogs: &'c [CatalogPart],
) -> Option<&'c Bundle> {
    let catalog = catalogs.iter().find(|it| it.name.name == reference.catalog)?;
    catalog.bundle(package, &reference.name)
}

/// Returns the digest of a description. Properties are no part of it: whether they are known depends on what else
/// is asked for.
fn description_digest(bundle: &Bundle) -> String {
    digest(&Bundle { properties: Vec::new(), ..bundle.clone() })
}

/// Returns the digest of the properties of a bundle; empty if they are not known.
fn properties_digest(bundle: &Bundle) -> String {
    match bundle.properties.is_empty() {
        true => String::new(),
        false => digest(&bundle.properties),
    }
}

fn digest(value: &impl Serialize) -> String {
    let text = serde_json::to_vec(value).expect("all keys are strings");
    sha256([text.as_slice()])
}

/// Returns whether what is installed of an Operator is what it requests, or stays whatever it requests.
fn has_requested(operator: &RequestedOperator) -> bool {
    let installed = operator.installed.as_ref();
    installed.is_some_and(|it| is_kept(operator) || it.is_requested_by(&operator.spec))
}

#[cfg(test)]
mod tests;
