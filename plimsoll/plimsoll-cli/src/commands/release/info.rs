//! `plimsoll release info`: what a payload holds, and why each document is in or out.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::process::ExitCode;

use plimsoll_content::Manifest;
use plimsoll_content::diagnostic::Diagnostic;
use plimsoll_content::inclusion::{
    Context, DEFAULT_FEATURE_SET, Decision, FEATURE_GATE, FEATURE_SET, FEATURE_SETS,
    capability_names, decide,
};
use plimsoll_content::payload::{Payload, ReleaseInfo};
use plimsoll_content::position::Position;
use serde::Serialize;

use super::InfoArguments;
use crate::exit;
use crate::render::table;

pub(super) fn run(
    arguments: &InfoArguments,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let InfoArguments { release, registry, profile, feature_set, output: _ } = arguments;
    let payload = release.load(registry, profile, Some(feature_set))?;
    let report = report(&payload, profile, feature_set);
    if !arguments.output.write(&report, out)? {
        write_text(&report, out)?;
    }
    Ok(exit::SUCCESS.into())
}

/// What the command says.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ReleaseSummary<'a> {
    version: &'a str,
    digest: &'a str,
    profile: &'a str,
    feature_set: &'a str,
    release: &'a ReleaseInfo,
    documents: usize,
    included: usize,
    excluded: usize,
    counts: Counts,
    manifests: Vec<Entry<'a>>,
    warnings: &'a [Diagnostic],
}

/// How many documents there are of each sort, included and all.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Counts {
    kinds: BTreeMap<String, Count>,
    run_levels: BTreeMap<String, Count>,
    capabilities: BTreeMap<String, Count>,
    /// Documents for each profile, with the feature set that was asked for.
    profiles: BTreeMap<String, Count>,
    /// Documents for each feature set, with the profile that was asked for; none if no document depends on it.
    feature_sets: BTreeMap<String, Count>,
}

/// A number of documents, and how many of them are included.
#[derive(Debug, Default, Clone, Copy, Serialize)]
struct Count {
    documents: usize,
    included: usize,
}

impl Count {
    fn add(&mut self, included: bool) {
        self.documents += 1;
        self.included += usize::from(included);
    }
}

/// A document and what becomes of it.
#[derive(Debug, Serialize)]
struct Entry<'a> {
    file: &'a str,
    document: usize,
    group: &'a str,
    version: &'a str,
    kind: &'a str,
    namespace: &'a str,
    name: &'a str,
    included: bool,
    /// Why it is not included; empty if it is.
    reason: String,
}

fn report<'a>(payload: &'a Payload, profile: &'a str, feature_set: &'a str) -> ReleaseSummary<'a> {
    let context = payload.context(profile, feature_set);
    let mut counts = Counts::default();
    let mut manifests = Vec::with_capacity(payload.manifests.len());
    for manifest in &payload.manifests {
        let reason = match decide(manifest, &context) {
            Decision::Included => None,
            Decision::Excluded(reason) => Some(reason.to_string()),
        };
        counts.add(manifest, reason.is_none());
        manifests.push(entry(manifest, reason));
    }
    counts.profiles =
        count_each(payload, payload.profiles(), |name| payload.context(name, feature_set));
    if uses_feature_sets(payload) {
        counts.feature_sets =
            count_each(payload, FEATURE_SETS, |name| payload.context(profile, name));
    }
    let included = manifests.iter().filter(|entry| entry.included).count();
    ReleaseSummary {
        version: &payload.release.version,
        digest: &payload.digest,
        profile,
        feature_set: if feature_set.is_empty() { DEFAULT_FEATURE_SET } else { feature_set },
        release: &payload.release,
        documents: manifests.len(),
        included,
        excluded: manifests.len() - included,
        counts,
        manifests,
        warnings: &payload.warnings,
    }
}

/// Whether what a payload includes depends on the feature set of a cluster.
fn uses_feature_sets(payload: &Payload) -> bool {
    let decides = |key: &str| [FEATURE_SET, FEATURE_GATE].contains(&key);
    payload.manifests.iter().any(|it| it.annotations.keys().any(|key| decides(key)))
}

impl Counts {
    fn add(&mut self, manifest: &Manifest, included: bool) {
        let level = Position::of(&manifest.file)
            .map_or_else(|| "none".to_owned(), |position| format!("{:02}", position.level));
        self.kinds.entry(manifest.key.group_kind().to_string()).or_default().add(included);
        self.run_levels.entry(level).or_default().add(included);
        for name in capability_names(&manifest.annotations) {
            self.capabilities.entry(name.to_owned()).or_default().add(included);
        }
    }
}

fn count_each<'a>(
    payload: &Payload,
    names: impl IntoIterator<Item = &'a str>,
    context: impl Fn(&str) -> Context,
) -> BTreeMap<String, Count> {
    let count = |name: &str| {
        let context = context(name);
        let mut count = Count::default();
        for manifest in &payload.manifests {
            count.add(decide(manifest, &context) == Decision::Included);
        }
        count
    };
    names.into_iter().map(|name| (name.to_owned(), count(name))).collect()
}

fn entry(manifest: &Manifest, reason: Option<String>) -> Entry<'_> {
    Entry {
        file: &manifest.file,
        document: manifest.document,
        group: &manifest.key.group,
        version: &manifest.version,
        kind: &manifest.key.kind,
        namespace: &manifest.key.namespace,
        name: &manifest.key.name,
        included: reason.is_none(),
        reason: reason.unwrap_or_default(),
    }
}

fn write_text(report: &ReleaseSummary<'_>, out: &mut dyn Write) -> io::Result<()> {
    let release = report.release;
    let mut facts = vec![
        ("Version", report.version.to_owned()),
        ("Digest", report.digest.to_owned()),
        ("Created", release.created.clone().unwrap_or_default()),
        ("URL", release.url.clone()),
        ("Channels", release.channels.join(", ")),
        ("Architecture", release.architecture.clone()),
        ("Updates from", release.previous.join(", ")),
        ("Updates to", release.next.join(", ")),
        ("Images", release.images.len().to_string()),
    ];
    if !release.any_profile || !report.counts.profiles.is_empty() {
        facts.push(("Profile", report.profile.to_owned()));
    }
    if !report.counts.feature_sets.is_empty() {
        facts.push(("Feature set", report.feature_set.to_owned()));
    }
    facts.push((
        "Documents",
        format!("{}: {} included, {} excluded", report.documents, report.included, report.excluded),
    ));
    for (name, value) in facts.iter().filter(|(_, value)| !value.is_empty()) {
        writeln!(out, "{:<14} {value}", format!("{name}:"))?;
    }
    let counts = &report.counts;
    write_counts("KIND", &counts.kinds, out)?;
    write_counts("RUN LEVEL", &counts.run_levels, out)?;
    write_counts("CAPABILITY", &counts.capabilities, out)?;
    write_counts("PROFILE", &counts.profiles, out)?;
    write_counts("FEATURE SET", &counts.feature_sets, out)?;
    writeln!(out)?;
    let rows: Vec<Vec<String>> = report.manifests.iter().map(row).collect();
    table::print(out, &["FILE", "DOCUMENT", "OBJECT", "INCLUDED", "REASON"], &rows)?;
    if !report.warnings.is_empty() {
        writeln!(out)?;
    }
    report.warnings.iter().try_for_each(|warning| writeln!(out, "{warning}"))
}

fn write_counts(
    heading: &str,
    counts: &BTreeMap<String, Count>,
    out: &mut dyn Write,
) -> io::Result<()> {
    if counts.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    let row = |(name, count): (&String, &Count)| {
        vec![name.clone(), count.documents.to_string(), count.included.to_string()]
    };
    let rows: Vec<Vec<String>> = counts.iter().map(row).collect();
    table::print(out, &[heading, "DOCUMENTS", "INCLUDED"], &rows)
}

fn row(entry: &Entry<'_>) -> Vec<String> {
    let dot = if entry.group.is_empty() { "" } else { "." };
    let slash = if entry.namespace.is_empty() { "" } else { "/" };
    vec![
        entry.file.to_owned(),
        entry.document.to_string(),
        format!("{}{dot}{} {}{slash}{}", entry.kind, entry.group, entry.namespace, entry.name),
        if entry.included { "yes" } else { "no" }.to_owned(),
        entry.reason.clone(),
    ]
}
