//! What was read of a document, until all documents of its package have been read.

use serde::{Deserialize, Serialize};

use super::defect::DefectCode;
use super::document::{Document, WrittenEntry};
use super::model::{
    BundleDetails, IndexedApi, IndexedBundle, IndexedEntry, IndexedProperty, IndexedRequirement,
};
use super::property::{self, check_version};
use super::record::Text;
use crate::diagnostic::{Diagnostic, Severity};

/// Where a document lies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct DocumentPosition {
    /// Number of the file.
    pub(super) file: u32,
    /// Line, from 1.
    pub(super) line: u32,
}

impl DocumentPosition {
    /// Returns a diagnostic of the document, of one of `files`.
    pub(super) fn diagnostic(
        self,
        files: &[String],
        code: DefectCode,
        message: impl Into<String>,
    ) -> Diagnostic {
        let file = files.get(self.file as usize).cloned().unwrap_or_default();
        code.diagnostic(file, message).at_line(self.line as usize)
    }
}

/// A document of a package.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Pending<'a> {
    pub(super) place: DocumentPosition,
    #[serde(borrow)]
    pub(super) content: PendingContent<'a>,
}

/// What a document says.
#[derive(Debug, Serialize, Deserialize)]
#[expect(clippy::large_enum_variant, reason = "nearly all documents are of the largest variant")]
pub(super) enum PendingContent<'a> {
    #[serde(borrow)]
    Package(PendingPackage<'a>),
    #[serde(borrow)]
    Channel(PendingChannel<'a>),
    #[serde(borrow)]
    Bundle(PendingBundle<'a>),
    #[serde(borrow)]
    Deprecations(Vec<PendingDeprecation<'a>>),
    /// A document that is of no use, which is known already.
    Lost,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct PendingPackage<'a> {
    #[serde(borrow)]
    pub(super) default_channel: Text<'a>,
    #[serde(borrow)]
    pub(super) description: Text<'a>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct PendingChannel<'a> {
    #[serde(borrow)]
    pub(super) name: Text<'a>,
    #[serde(borrow)]
    pub(super) entries: Vec<IndexedEntry<'a>>,
    pub(super) nameless: u32,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct PendingBundle<'a> {
    #[serde(borrow)]
    pub(super) bundle: IndexedBundle<'a>,
    /// Where its facts lie among what is kept.
    pub(super) facts: (usize, usize),
    pub(super) problems: Vec<(DefectCode, String)>,
}

/// What the properties of a bundle say; mostly the same for every version of a package, and kept
/// only once then.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct PendingFacts<'a> {
    #[serde(borrow)]
    pub(super) provided: Vec<IndexedApi<'a>>,
    #[serde(borrow)]
    pub(super) required: Vec<IndexedRequirement<'a>>,
    #[serde(borrow)]
    pub(super) properties: Vec<IndexedProperty<'a>>,
    #[serde(borrow)]
    pub(super) details: BundleDetails<'a>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct PendingDeprecation<'a> {
    #[serde(borrow)]
    pub(super) schema: Text<'a>,
    #[serde(borrow)]
    pub(super) name: Text<'a>,
    #[serde(borrow)]
    pub(super) message: Text<'a>,
}

/// A bundle of a document, with everything that is wrong with it alone.
pub(super) fn bundle<'a>(
    document: Document<'a>,
    name: Text<'a>,
    package: &str,
) -> (PendingBundle<'a>, PendingFacts<'a>) {
    let properties = document.properties.unwrap_or_default().0;
    let facts = property::read(properties);
    let mut problems = facts.problems;
    let mut bundle = IndexedBundle {
        name,
        image: document.image.unwrap_or_default(),
        withdrawn: facts.withdrawn,
        maximum_open_shift: facts.maximum_open_shift,
        labels: facts.labels,
        ..IndexedBundle::default()
    };
    match facts.package {
        // What is wrong with it is among the problems.
        None if facts.has_package => {}
        None => problems.push((DefectCode::Version, "no property olm.package".to_owned())),
        Some((owner, version, release)) => {
            if &*owner != package {
                let text = format!("its property olm.package names package {owner}");
                problems.push((DefectCode::Property, text));
            }
            if let Err(error) = check_version(&version) {
                problems.push((DefectCode::Version, error));
            }
            (bundle.version, bundle.release) = (version, release);
        }
    }
    if bundle.image.is_empty() && !facts.has_objects {
        problems.push((DefectCode::NoImage, "neither an image nor olm.bundle.object".to_owned()));
    }
    let wrong = problems.iter().find(|(code, _)| code.severity() == Severity::Error);
    bundle.invalid = wrong.map(|(_, message)| Text::from(message.clone()));
    let facts = PendingFacts {
        provided: facts.provided,
        required: facts.required,
        properties: facts.others,
        details: facts.details,
    };
    (PendingBundle { bundle, facts: (0, 0), problems }, facts)
}

/// A channel of a document.
pub(super) fn channel<'a>(document: Document<'a>, name: Text<'a>) -> PendingChannel<'a> {
    let written = document.entries.unwrap_or_default().0;
    let all = written.len();
    let entries: Vec<IndexedEntry<'a>> = written.into_iter().filter_map(entry).collect();
    let nameless = u32::try_from(all - entries.len()).unwrap_or(u32::MAX);
    PendingChannel { name, entries, nameless }
}

fn entry(written: WrittenEntry<'_>) -> Option<IndexedEntry<'_>> {
    Some(IndexedEntry {
        name: written.name.filter(|name| !name.is_empty())?,
        bundle: None,
        replaces: written.replaces.filter(|name| !name.is_empty()),
        skips: written.skips.unwrap_or_default().0,
        skip_range: written.skip_range.filter(|range| !range.is_empty()),
    })
}

/// The deprecations of a document.
pub(super) fn deprecations(document: Document<'_>) -> Vec<PendingDeprecation<'_>> {
    let written = document.entries.unwrap_or_default().0.into_iter();
    written
        .map(|entry| {
            let reference = entry.reference.unwrap_or_default();
            PendingDeprecation {
                schema: reference.schema.unwrap_or_default(),
                name: reference.name.unwrap_or_default(),
                message: entry.message.unwrap_or_default(),
            }
        })
        .collect()
}
