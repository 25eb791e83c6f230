//! Lock files: the exact bundles that a loadout resolves to, with their digests.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_content::hash::sha256;
use plimsoll_resolve::CatalogPart;
use serde::{Deserialize, Serialize};

use super::loadout::converge;
use super::planner::may_move;
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
    /// The image with the content; empty if the catalog has the content itself.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    image: String,
    /// The digest of the content: of the image, or of the files that the catalog has; empty if it is not known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    content_digest: String,
    /// The digest of the catalog's description of the bundle: what it provides, requires and is compatible
    /// with.
    description_digest: String,
}

impl LockedBundle {
    /// Returns whether another bundle is this one, as far as the content of both is known.
    fn may_be(&self, other: &Self) -> bool {
        let is_unknown = |it: &Self| it.content_digest.is_empty() && it.image.is_empty();
        let mut like = other.clone();
        if self.content_digest.is_empty() || other.content_digest.is_empty() {
            like.content_digest.clone_from(&self.content_digest);
        }
        if is_unknown(self) || is_unknown(other) {
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
    /// Locks the installed bundles of Operators; `contents` has the content of each, by Operator.
    pub fn new(
        operators: &BTreeMap<String, RequestedOperator>,
        contents: &BTreeMap<String, LockedContent>,
    ) -> Self {
        let locked = operators.iter().filter_map(|(name, operator)| {
            let installed = operator.installed.as_ref()?;
            let LockedContent { image, digest } = contents.get(name).cloned().unwrap_or_default();
            let text = serde_json::to_vec(&installed.bundle).expect("all keys are strings");
            let bundle = LockedBundle {
                version: installed.bundle.version.to_string(),
                bundle: installed.reference.name.clone(),
                channel: installed.reference.channel.clone(),
                catalog: installed.reference.catalog.clone(),
                image,
                content_digest: digest,
                description_digest: sha256([text.as_slice()]),
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
        let catalog = catalogs.iter().find(|it| it.name.name == locked.catalog)?;
        let bundle = catalog.bundle(name, &locked.bundle)?;
        let reference = plimsoll_api::olm::BundleReference {
            name: locked.bundle.clone(),
            version: locked.version.clone(),
            digest: String::new(),
            channel: locked.channel.clone(),
            catalog: locked.catalog.clone(),
        };
        Some(InstalledOperator {
            reference,
            bundle: bundle.clone(),
            revision: 1,
            upgrade_block: None,
        })
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

    /// Returns the differences of another lock file from this one, a sentence for each Operator. Content of which
    /// either has no digest is none.
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

/// Returns whether what is installed of an Operator is what it requests, or stays whatever it requests.
fn has_requested(operator: &RequestedOperator) -> bool {
    let installed = operator.installed.as_ref();
    installed.is_some_and(|it| !may_move(operator) || it.is_requested_by(&operator.spec))
}

#[cfg(test)]
mod tests {
    //! Tests of the differences that lock files report.

    use super::*;
    use crate::tests::{FIXTURE, catalogs, inputs, operators};

    fn lock(text: &str, digest: &str) -> OperatorLock {
        let operators = operators(&catalogs(FIXTURE), text);
        let content = |name: &String| {
            let image = format!("example.com/{name}");
            (name.clone(), LockedContent { image, digest: digest.to_owned() })
        };
        OperatorLock::new(&operators, &operators.keys().map(content).collect())
    }

    #[test]
    fn a_lock_names_what_is_otherwise() {
        let before = lock("foo: at 1.2.3\nbar: at 1.2.5\nbaz: version 9", "");
        assert_eq!(OperatorLock::read(&before.text()), Ok(before.clone()));
        assert_eq!(before.differences(&before), Vec::<String>::new());
        let after = lock("foo: at 1.2.5\nbaz: at 1.2.4", "");
        let expected = [
            "bar v1.2.5 is locked, and would not be installed",
            "baz v1.2.4 is not locked",
            "foo is locked at v1.2.3, and would be v1.2.5",
        ];
        assert_eq!(before.differences(&after), expected);
        let republished = lock("foo: at 1.2.3\nbar: at 1.2.5; from other/stable", "sha256:0");
        let other = "bar is locked from catalog main, and would be from other";
        // What was not locked of foo is not compared.
        assert_eq!(before.differences(&republished), [other]);
        let before = lock("foo: at 1.2.3\nbar: at 1.2.5", "sha256:1");
        let expected = [other, "foo v1.2.3 is another bundle than the locked one"];
        assert_eq!(before.differences(&republished), expected);
        let expected = "the content of foo v1.2.3 is not locked: its image example.com/foo has no digest, and \
                        its tag may get other content";
        assert_eq!(lock("foo: at 1.2.3", "").unlocked(), [expected]);
        assert_eq!(republished.unlocked(), Vec::<String>::new());
    }

    #[test]
    fn content_without_a_digest_is_neither_locked_nor_compared() {
        let of = |digest: &str| {
            let content = LockedContent { digest: digest.to_owned(), ..LockedContent::default() };
            let contents = BTreeMap::from([("foo".to_owned(), content)]);
            OperatorLock::new(&operators(&catalogs(FIXTURE), "foo: at 1.2.3"), &contents)
        };
        let (known, unknown) = (of("sha256:0"), of(""));
        let expected = "the content of foo v1.2.3 is not locked: what is read here of catalog main has neither its \
                        image nor its files";
        assert_eq!(unknown.unlocked(), [expected]);
        // Where the content is known, so may be the image that has it.
        let image = lock("foo: at 1.2.3", "sha256:0");
        for other in [&known, &image] {
            assert_eq!(other.differences(&unknown), Vec::<String>::new());
            assert_eq!(unknown.differences(other), Vec::<String>::new());
            assert_eq!(unknown.uncompared(other), Vec::<String>::new());
        }
        let expected = "the content of foo v1.2.3 is locked, and its digest is not known here: name a copy of the \
                        catalog with `--catalog main=FILE`";
        assert_eq!(known.uncompared(&unknown), [expected]);
        assert_eq!(image.uncompared(&unknown), [expected]);
        for other in [of("sha256:0"), of("sha256:1"), lock("bar: at 1.2.5", "")] {
            assert_eq!(known.uncompared(&other), Vec::<String>::new());
        }
        assert_eq!(unknown.uncompared(&unknown), Vec::<String>::new());
    }

    #[test]
    fn what_is_locked_counts_as_installed_while_a_catalog_has_it() {
        let of = catalogs(FIXTURE);
        let before = lock("foo: at 1.2.3", "");
        let installed = before.installed("foo", &of).unwrap();
        assert_eq!(installed.bundle.version.to_string(), "1.2.3");
        assert!(before.installed("bar", &of).is_none());
        assert!(before.installed("foo", &[]).is_none());
    }

    #[test]
    fn what_is_locked_leads_to_what_is_requested_or_does_not_count() {
        let of = catalogs(FIXTURE);
        let before = lock("foo: at 1.2.3\nbar: at 1.2.5\nbaz: at 1.5.6", "");
        let check = |requested: &str, expected: &str| {
            let operators = operators(&of, requested);
            let inputs = inputs(&operators);
            let filled = before.filled(inputs, &of);
            let version = |(name, it): (&String, &RequestedOperator)| {
                let version = it.installed.as_ref().map(|it| it.bundle.version.to_string());
                format!("{name} {}", version.unwrap_or_default())
            };
            let found: Vec<String> = filled.operators.iter().map(version).collect();
            assert_eq!(found.join(", "), expected, "{requested}");
            let is_locked = |name: &String| expected.contains(&format!("{name} 1"));
            assert!(filled.locked.iter().all(is_locked), "{:?}", filled.locked);
        };
        check("foo: version ~1.2\nbar: version 1.2.7", "bar 1.2.5, foo 1.2.3");
        // Nothing leads to a lower version, or past a requirement that is not satisfied.
        check("foo: version 1.2.2\nbar: version 1.2.1", "bar , foo ");
        check("foo: version 1.2.9\nbar: version 1.2.5", "bar 1.2.5, foo ");
        check("baz: version 1.2.4; paused", "baz 1.5.6");
        check("baz: version ~1.5; repository other", "baz ");
    }

    #[test]
    fn another_text_is_refused() {
        let refused = |text: &str| OperatorLock::read(text).unwrap_err();
        assert!(refused("foo").starts_with("it is not what `operator lock` writes: "));
        assert!(refused(r#"{"format": 2, "operators": {}, "x": 1}"#).contains("unknown field `x`"));
        let older = refused(r#"{"format": 1, "operators": {"foo": {"digest": "sha256:0"}}}"#);
        assert_eq!(older, "its format is 1, not 2: write it anew with `operator lock`");
    }
}
