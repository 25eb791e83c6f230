//! `plimsoll release diff`: the manifests that differ between two releases.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::Args;
use diffy::PatchFormatter;
use plimsoll_api::ObjectKey;
use plimsoll_content::payload::Payload;
use plimsoll_content::{Manifest, yaml};
use plimsoll_plan::apply::sensitive;
use plimsoll_resolve::printable::on_one_line;
use serde::Serialize;
use serde_json::Value;

use super::loaded::load_content;
use crate::arguments::registry::RegistryArguments;
use crate::arguments::store;
use crate::exit;
use crate::render::format::{Format, FormatParser};

/// Arguments of `plimsoll release diff`.
#[derive(Debug, Args)]
pub struct DiffArguments {
    /// A release: the directory of its payload or its source, or a reference to its image
    #[arg(value_name = "FROM", value_parser = store::parse)]
    from: store::Location,
    /// The other one
    #[arg(value_name = "TO", value_parser = store::parse)]
    to: store::Location,
    /// How registries are reached
    #[command(flatten)]
    registry: RegistryArguments,
    /// Output format
    #[arg(long, short, value_name = "FORMAT", value_parser = FormatParser::DIFF, default_value_t)]
    output: Format,
}

/// What the command says.
#[derive(Debug, Serialize)]
struct DiffReport<'a> {
    from: &'a str,
    to: &'a str,
    added: Vec<ChangedManifest>,
    removed: Vec<ChangedManifest>,
    changed: Vec<ChangedManifest>,
    unchanged: usize,
}

/// A manifest that differs.
#[derive(Debug, Serialize)]
struct ChangedManifest {
    group: String,
    kind: String,
    namespace: String,
    name: String,
    /// Its file in the first release; absent if it was added.
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<String>,
    /// Its file in the second release; absent if it was removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<String>,
    /// What differs, as a unified diff of its YAML; empty if only its file does.
    diff: String,
}

pub(super) fn run(
    arguments: &DiffArguments,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let DiffArguments { from, to, registry, output: _ } = arguments;
    let (before, after) = (load_content(from, registry)?, load_content(to, registry)?);
    let report = report(&before, &after);
    match arguments.output {
        Format::Diff => write_diff(&report, out)?,
        Format::Name => write_names(&report, out)?,
        _ if arguments.output.write(&report, out)? => {}
        _ => write_text(&report, out)?,
    }
    Ok(exit::SUCCESS.into())
}

/// The manifests of a payload by what they are of; one object may have several.
fn by_object(payload: &Payload) -> BTreeMap<(&ObjectKey, usize), &Manifest> {
    let mut manifests = BTreeMap::new();
    for manifest in &payload.manifests {
        let numbers = (0..).map(|number| (&manifest.key, number));
        let mut free = numbers.filter(|key| !manifests.contains_key(key));
        let key = free.next().expect("there are more numbers than manifests");
        manifests.insert(key, manifest);
    }
    manifests
}

fn report<'a>(before: &'a Payload, after: &'a Payload) -> DiffReport<'a> {
    let mut report = DiffReport {
        from: &before.release.version,
        to: &after.release.version,
        added: Vec::new(),
        removed: Vec::new(),
        changed: Vec::new(),
        unchanged: 0,
    };
    let (before, after) = (by_object(before), by_object(after));
    for (key, old) in &before {
        match after.get(key) {
            None => report.removed.push(changed(Some(old), None)),
            Some(new) if old.file == new.file && is_same(old, new) => report.unchanged += 1,
            Some(new) => report.changed.push(changed(Some(old), Some(new))),
        }
    }
    let new = after.iter().filter(|(key, _)| !before.contains_key(key));
    report.added.extend(new.map(|(_, new)| changed(None, Some(new))));
    report
}

/// Whether two manifests apply the same object.
fn is_same(old: &Manifest, new: &Manifest) -> bool {
    old.raw == new.raw || old.object() == new.object()
}

fn changed(before: Option<&Manifest>, after: Option<&Manifest>) -> ChangedManifest {
    let file = |manifest: Option<&Manifest>| manifest.map(|it| it.file.to_string());
    let object = |manifest: Option<&Manifest>| manifest.map_or(Value::Null, Manifest::object);
    let (mut old, mut new) = (object(before), object(after));
    if before.is_some_and(Manifest::is_sensitive) || after.is_some_and(Manifest::is_sensitive) {
        sensitive::hide_changes(&mut old, &mut new);
    }
    let text = |value: &Value| if value.is_null() { String::new() } else { yaml::write(value) };
    let (old, new) = (text(&old), text(&new));
    let key = after.or(before).map(|manifest| manifest.key.clone());
    let ObjectKey { group, kind, namespace, name } = key.expect("one of the two is there");
    ChangedManifest {
        group,
        kind,
        namespace,
        name,
        before: file(before),
        after: file(after),
        diff: changed_lines(&old, &new),
    }
}

/// Returns a unified diff without the names of the two texts; empty if they are equal.
fn changed_lines(old: &str, new: &str) -> String {
    let patch = diffy::create_patch(old, new);
    let formatter = PatchFormatter::new().suppress_blank_empty(false);
    let text = formatter.fmt_patch(&patch).to_string();
    text.split_inclusive('\n').skip_while(|line| !line.starts_with("@@")).collect()
}

impl ChangedManifest {
    fn key(&self) -> ObjectKey {
        let Self { group, kind, namespace, name, .. } = self;
        ObjectKey {
            group: group.clone(),
            kind: kind.clone(),
            namespace: namespace.clone(),
            name: name.clone(),
        }
    }

    /// The files, as `before -> after` where they differ.
    fn files(&self) -> String {
        match (&self.before, &self.after) {
            (Some(before), Some(after)) if before != after => format!("{before} -> {after}"),
            (before, after) => after.as_ref().or(before.as_ref()).cloned().unwrap_or_default(),
        }
    }
}

impl DiffReport<'_> {
    /// All that differ, each with its sign.
    fn all(&self) -> impl Iterator<Item = (char, &ChangedManifest)> {
        let removed = self.removed.iter().map(|manifest| ('-', manifest));
        let added = self.added.iter().map(|manifest| ('+', manifest));
        removed.chain(added).chain(self.changed.iter().map(|manifest| ('~', manifest)))
    }
}

fn write_text(report: &DiffReport<'_>, out: &mut dyn Write) -> io::Result<()> {
    for (sign, manifest) in report.all() {
        let line = format!("{sign} {} ({})", manifest.key().reference(), manifest.files());
        writeln!(out, "{}", on_one_line(&line))?;
    }
    writeln!(
        out,
        "{} -> {}: {} added, {} removed, {} changed, {} unchanged",
        report.from,
        report.to,
        report.added.len(),
        report.removed.len(),
        report.changed.len(),
        report.unchanged
    )
}

fn write_names(report: &DiffReport<'_>, out: &mut dyn Write) -> io::Result<()> {
    for (_, manifest) in report.all() {
        writeln!(out, "{}", on_one_line(&manifest.key().reference()))?;
    }
    Ok(())
}

fn write_diff(report: &DiffReport<'_>, out: &mut dyn Write) -> io::Result<()> {
    for (_, manifest) in report.all() {
        let name = |file: &Option<String>, side: &str| match file {
            Some(file) => format!("{side}/{file}"),
            None => "/dev/null".to_owned(),
        };
        writeln!(out, "--- {}", on_one_line(&name(&manifest.before, "a")))?;
        writeln!(out, "+++ {}", on_one_line(&name(&manifest.after, "b")))?;
        write!(out, "{}", manifest.diff)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::changed_lines;

    #[test]
    fn changed_lines_are_a_unified_diff_without_names() {
        let old = "a: 1\n\nb: 1\nc: 1\nd: 1\ne: 1\n";
        for (new, expected) in [
            (old, ""),
            (&old.replace("a: 1", "a: 2"), "@@ -1,4 +1,4 @@\n-a: 1\n+a: 2\n \n b: 1\n c: 1\n"),
            ("", "@@ -1,6 +0,0 @@\n-a: 1\n-\n-b: 1\n-c: 1\n-d: 1\n-e: 1\n"),
        ] {
            assert_eq!(changed_lines(old, new), expected);
        }
    }
}
