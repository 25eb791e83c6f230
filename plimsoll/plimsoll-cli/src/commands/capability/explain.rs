//! `plimsoll capability explain`: what a capability is, and what enabling it would create.

use std::collections::BTreeSet;
use std::io::{self, Write};

use anyhow::bail;
use plimsoll_api::ObjectKey;
use plimsoll_content::Manifest;
use plimsoll_content::capability::meant;
use plimsoll_plan::capabilities::{Enabling, enabling};
use serde::Serialize;

use crate::arguments::capability::Subject;
use crate::render::capability::Description;
use crate::render::count::counted;
use crate::render::format::Format;
use crate::render::table;

/// What the command says.
#[derive(Debug, Serialize)]
struct CapabilityExplanation<'a> {
    #[serde(flatten)]
    description: Description<'a>,
    /// What is required and not enabled.
    missing: BTreeSet<&'a str>,
    #[serde(flatten)]
    brings: Option<Brings<'a>>,
}

/// What the capability brings; unknown without a release.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Brings<'a> {
    /// Objects that are there because of it, or would be.
    objects: Vec<Object<'a>>,
    /// Objects of it that need more capabilities than it.
    needing_more: Vec<Object<'a>>,
    /// How many manifests of it are for other profiles, feature sets or feature gates.
    elsewhere: usize,
}

/// An object of a release.
#[derive(Debug, Serialize)]
struct Object<'a> {
    #[serde(flatten)]
    key: &'a ObjectKey,
    file: &'a str,
    document: usize,
    /// Capabilities that are disabled and that it belongs to as well.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    needs: BTreeSet<&'a str>,
}

pub(super) fn run(
    subject: &Subject,
    name: &str,
    format: &Format,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    if subject.registry.capability(name).is_none() && !subject.names().contains(name) {
        let similar = meant(subject.registry.similar(name));
        bail!("there is no capability {name:?}{similar} (see `plimsoll capability list`)");
    }
    let description = Description::of(name, subject);
    let context = |payload: &plimsoll_content::Payload| {
        payload.context(&subject.profile, &subject.feature_set)
    };
    let brings = subject.payload.as_ref().map(|payload| {
        let (registry, enabled) = (&subject.registry, &subject.enabled);
        Brings::of(enabling(name, &payload.manifests, &context(payload), enabled, registry))
    });
    let missing = subject.registry.missing_for(name, &subject.enabled);
    let report = CapabilityExplanation { description, missing, brings };
    if !format.write(&report, out)? {
        write_text(&report, subject, out)?;
    }
    Ok(())
}

impl<'a> Brings<'a> {
    fn of(enabling: Enabling<'a>) -> Self {
        let none = BTreeSet::new;
        Self {
            objects: enabling.manifests.into_iter().map(|it| object(it, none())).collect(),
            needing_more: enabling
                .partly
                .into_iter()
                .map(|(it, needs)| object(it, needs))
                .collect(),
            elsewhere: enabling.elsewhere,
        }
    }
}

fn object<'a>(manifest: &'a Manifest, needs: BTreeSet<&'a str>) -> Object<'a> {
    Object { key: &manifest.key, file: &manifest.file, document: manifest.document, needs }
}

fn write_text(
    report: &CapabilityExplanation<'_>,
    subject: &Subject,
    out: &mut dyn Write,
) -> io::Result<()> {
    let it = &report.description;
    let enabled = match (it.implicit, it.implied_by) {
        (_, Some(by)) => format!(
            "{}, since {}: release {} needed it for {} ({})",
            it.state(),
            by.since,
            by.version,
            by.object,
            by.file
        ),
        (Some(true), None) => "implicit: the spec no longer requests it".to_owned(),
        _ => it.state().to_owned(),
    };
    let release = subject.payload.as_ref().map(|payload| payload.release.version.clone());
    let of_cluster = subject.cluster.as_ref().map(|cluster| cluster.version.clone());
    let missing: Vec<&str> = report.missing.iter().copied().collect();
    let facts = [
        ("Name", it.name.to_owned()),
        ("Description", it.description.to_owned()),
        ("Enabled", enabled),
        ("Sets", it.sets.join(", ")),
        ("Requires", it.requires.join(", ")),
        ("Missing", missing.join(", ")),
        ("Feature gates", it.feature_gates.join(" or ")),
        ("Declared in", it.declared_in.unwrap_or_default().to_owned()),
        ("Release", release.or(of_cluster).unwrap_or_default()),
    ];
    for (name, value) in facts.iter().filter(|(_, value)| !value.is_empty()) {
        writeln!(out, "{:<15} {value}", format!("{name}:"))?;
    }
    writeln!(out)?;
    match &report.brings {
        Some(brings) => write_brings(brings, it, out)?,
        None => writeln!(out, "Use --release DIR to list its objects.")?,
    }
    if subject.cluster.is_some() && (!it.enabled || it.implicit == Some(true)) {
        let add: Vec<&str> = std::iter::once(it.name).chain(missing).collect();
        writeln!(
            out,
            "To enable it{}, add to spec.capabilities.additionalEnabledCapabilities of the \
             ClusterVersion: {}",
            if it.enabled { " explicitly" } else { "" },
            add.join(", "),
        )?;
        writeln!(out, "  kubectl edit clusterversion version")?;
        writeln!(out, "A capability cannot be disabled once it is enabled.")?;
    }
    Ok(())
}

fn write_brings(brings: &Brings<'_>, it: &Description<'_>, out: &mut dyn Write) -> io::Result<()> {
    let objects = |count: usize| counted(count, "object");
    let verb = if it.enabled { "It has created" } else { "Enabling it creates" };
    writeln!(out, "{verb} {}", objects(brings.objects.len()))?;
    write_objects(&brings.objects, out)?;
    if !brings.needing_more.is_empty() {
        let count = objects(brings.needing_more.len());
        writeln!(out, "{count} of it would still be excluded: other capabilities are needed, too")?;
        write_objects(&brings.needing_more, out)?;
    }
    if brings.elsewhere > 0 {
        let other = "for other profiles, feature sets or feature gates";
        let manifests = counted(brings.elsewhere, "manifest");
        let verb = if brings.elsewhere == 1 { "is" } else { "are" };
        writeln!(out, "{manifests} of it {verb} {other}\n")?;
    }
    Ok(())
}

fn write_objects(objects: &[Object<'_>], out: &mut dyn Write) -> io::Result<()> {
    if objects.is_empty() {
        return writeln!(out);
    }
    let more = objects.iter().any(|object| !object.needs.is_empty());
    let row = |object: &Object<'_>| {
        let mut row = vec![
            format!("  {}", object.key.group_kind()),
            object.key.namespaced_name(),
            object.file.to_owned(),
        ];
        let needs: Vec<&str> = object.needs.iter().copied().collect();
        row.extend(more.then(|| needs.join(",")));
        row
    };
    let rows: Vec<Vec<String>> = objects.iter().map(row).collect();
    let mut headings = vec!["  KIND", "NAME", "FILE"];
    headings.extend(more.then_some("NEEDS"));
    table::print(out, &headings, &rows)?;
    writeln!(out)
}
