//! The channels of a package whose bundles lie in directories of their own (RES-4.7).

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_resolve::version::parse_tolerant;
use semver::Version;
use serde_json::{Value, json};

use super::documents::package_document;
use super::properties::ParsedBundle;
use super::read::documents as read_documents;
use super::{BundleDocument, BundleFile};
use crate::catalog::DefectCode;
use crate::diagnostic::Diagnostic;

/// How the entries of a channel follow each other: `updateGraph` of a package's `ci.yaml`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum UpdateGraphMode {
    /// As the bundles say.
    Replaces,
    /// By version, each replaces the one before it.
    #[default]
    Semver,
    /// By version, but the patches of a minor version skip each other.
    SkipPatch,
}

/// The mode for the package of a bundle directory.
pub(super) fn mode(
    directory: &str,
    others: &[BundleFile],
    defects: &mut Vec<Diagnostic>,
) -> UpdateGraphMode {
    // A bundle directory on its own says itself what it replaces.
    let Some((parent, _)) = directory.trim_end_matches('/').rsplit_once('/') else {
        let file = others.iter().find(|file| file.path == "ci.yaml" && !directory.is_empty());
        return match file {
            Some(file) => read(file, defects),
            None if directory.is_empty() => UpdateGraphMode::Replaces,
            None => UpdateGraphMode::Semver,
        };
    };
    let path = format!("{parent}/ci.yaml");
    others
        .iter()
        .find(|file| file.path == path)
        .map_or(UpdateGraphMode::Semver, |file| read(file, defects))
}

fn read(file: &BundleFile, defects: &mut Vec<Diagnostic>) -> UpdateGraphMode {
    let mut found = Vec::new();
    let documents = read_documents(file, &mut found);
    let mode = documents.first().map_or("", |it| it.text("/updateGraph")).to_owned();
    for defect in found {
        if !defects.contains(&defect) {
            defects.push(defect);
        }
    }
    match mode.as_str() {
        "" | "semver-mode" => UpdateGraphMode::Semver,
        "replaces-mode" => UpdateGraphMode::Replaces,
        "semver-skippatch-mode" => UpdateGraphMode::SkipPatch,
        other => {
            let known = "replaces-mode, semver-mode and semver-skippatch-mode";
            let text = format!("updateGraph: there is no `{other}`, only {known}");
            let defect = DefectCode::BundleFile.diagnostic(&file.path, text);
            if !defects.contains(&defect) {
                defects.push(defect);
            }
            UpdateGraphMode::Semver
        }
    }
}

/// The documents of a package; of one bundle that is looked at by itself with `is_alone`.
pub(super) fn documents(
    name: &str,
    mut bundles: Vec<ParsedBundle>,
    mode: UpdateGraphMode,
    is_alone: bool,
    defects: &mut Vec<Diagnostic>,
) -> Vec<BundleDocument> {
    bundles.sort_by_cached_key(|it| (parse_tolerant(&it.version).ok(), it.name.clone()));
    let channels: BTreeSet<String> =
        bundles.iter().flat_map(|it| it.channels.iter().cloned()).collect();
    // The newest bundle that names a default channel decides. A bundle by itself need not be in it:
    // others of its package are.
    let mut named = bundles.iter().rev().filter_map(|it| it.default_channel.clone());
    let named = named.find(|name| !is_alone || channels.contains(name));
    let default = named.or_else(|| channels.first().cloned()).unwrap_or_default();
    let Some(newest) = bundles.last() else { return Vec::new() };
    let mut documents = vec![package_document(name, &default, &newest.file, newest.line)];
    for channel in channels {
        let members: Vec<&ParsedBundle> =
            bundles.iter().filter(|it| it.channels.contains(&channel)).collect();
        if mode != UpdateGraphMode::Replaces {
            report_same_versions(name, &channel, &members, defects);
        }
        let entries: Vec<Value> = match mode {
            UpdateGraphMode::Replaces => members
                .iter()
                .map(|it| entry(it, it.replaces.as_deref(), it.skips.clone()))
                .collect(),
            UpdateGraphMode::Semver => by_version(&members),
            UpdateGraphMode::SkipPatch => by_minor_version(&members),
        };
        let Some(newest) = members.last() else { continue };
        documents.push(BundleDocument {
            file: newest.file.clone(),
            line: newest.line,
            value: json!({
                "schema": "olm.channel",
                "package": name,
                "name": channel,
                "entries": entries,
            }),
        });
    }
    let bundles = bundles.into_iter();
    documents.extend(bundles.map(|it| BundleDocument {
        file: it.file,
        line: it.line,
        value: it.document,
    }));
    documents
}

fn report_same_versions(
    package: &str,
    channel: &str,
    members: &[&ParsedBundle],
    defects: &mut Vec<Diagnostic>,
) {
    for pair in members.windows(2) {
        if let [one, other] = pair
            && one.version == other.version
        {
            let message = format!(
                "channel {channel}: {} and {} are both {}",
                one.name, other.name, one.version
            );
            let defect = DefectCode::SameVersion.diagnostic(&other.file, message);
            let package = package.to_owned();
            defects.push(Diagnostic { package, ..defect.at_line(other.line) });
        }
    }
}

/// An entry of a channel.
pub(super) fn entry(bundle: &ParsedBundle, replaces: Option<&str>, skips: Vec<String>) -> Value {
    let mut entry = json!({ "name": &bundle.name });
    if let Some(replaces) = replaces {
        entry["replaces"] = replaces.into();
    }
    if !skips.is_empty() {
        entry["skips"] = skips.into();
    }
    if let Some(range) = &bundle.skip_range {
        entry["skipRange"] = range.as_str().into();
    }
    entry
}

fn by_version(members: &[&ParsedBundle]) -> Vec<Value> {
    let mut before = None;
    let mut entries = Vec::new();
    for bundle in members {
        entries.push(entry(bundle, before, bundle.skips.clone()));
        before = Some(bundle.name.as_str());
    }
    entries
}

fn by_minor_version(members: &[&ParsedBundle]) -> Vec<Value> {
    let minor = |it: &ParsedBundle| {
        parse_tolerant(&it.version).map(|Version { major, minor, .. }| (major, minor))
    };
    let mut minors: BTreeMap<(u64, u64), Vec<&ParsedBundle>> = BTreeMap::new();
    for bundle in members {
        minors.entry(minor(bundle).unwrap_or_default()).or_default().push(bundle);
    }
    let mut before: Option<&str> = None;
    let mut entries = Vec::new();
    for patches in minors.values() {
        for (index, bundle) in patches.iter().enumerate() {
            let mut skips = bundle.skips.clone();
            skips.extend(patches[..index].iter().map(|it| it.name.clone()));
            skips.sort();
            skips.dedup();
            entries.push(entry(bundle, before, skips));
        }
        before = patches.last().map(|it| it.name.as_str());
    }
    entries
}
