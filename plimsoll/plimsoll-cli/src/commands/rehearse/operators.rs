//! `plimsoll rehearse --operators`: Operators of files, applied to a copy of the cluster before they are applied
//! to the cluster.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{anyhow, bail};
use plimsoll_api::OPERATOR;
use plimsoll_content::yaml;
use plimsoll_operators::loadout::{Loadout, LoadoutFile};
use plimsoll_simulation::rehearsal::{ClusterSnapshot, OperatorRequest, OperatorsRehearsal};
use serde_json::Value;

use super::RehearseArguments;
use crate::arguments::faults;
use crate::commands::operator::loadout::read_files;
use crate::commands::operator::rehearse::{cache, rehearsed};
use crate::exit;
use crate::render::format::ignore_broken_pipe;
use crate::render::rehearsal::operators::OperatorsReport;

/// Rehearses the Operators of a directory and reports.
///
/// # Errors
///
/// When a file, a catalog or a snapshot cannot be read, the cluster cannot be copied, or the API server refuses
/// an Operator.
pub(super) fn run(
    arguments: &RehearseArguments,
    directory: &Path,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let requests = requests(directory)?;
    let faults = arguments.faults.as_deref().map(faults::read).transpose()?.unwrap_or_default();
    let opened = arguments.catalogs.open(&BTreeMap::new())?;
    let (cluster, on) = initial_state(arguments)?;
    let rehearsal = OperatorsRehearsal {
        cluster,
        requests,
        catalogs: rehearsed(&opened)?,
        cache: cache(arguments.catalogs.no_cache),
        delay: arguments.delay,
        faults,
    };
    let report = OperatorsReport::of(rehearsal.run()?, on);
    let written = report.write(&arguments.output, arguments.details, out);
    ignore_broken_pipe(written)?;
    Ok(if report.succeeds { exit::SUCCESS } else { exit::WOULD_STOP }.into())
}

/// Returns the Operators of a directory as they are to be applied.
fn requests(directory: &Path) -> Result<Vec<OperatorRequest>, anyhow::Error> {
    let files = read_files(directory)?;
    let operators = operators(&files);
    Loadout::read_sound(files).map_err(|error| anyhow!(error))?;
    if operators.is_empty() {
        bail!("`{}` has no Operators", directory.display());
    }
    Ok(operators.into_iter().map(OperatorRequest::Apply).collect())
}

/// Returns the Operators that files declare, those of lists included, as they are written.
fn operators(files: &[LoadoutFile]) -> Vec<Value> {
    let documents = files.iter().flat_map(|file| yaml::parse(&file.text));
    let objects = documents.filter_map(|it| it.value.ok()).flat_map(items);
    let is_operator = |it: &Value| {
        it["kind"] == OPERATOR.kind && it["apiVersion"] == OPERATOR.api_version().as_str()
    };
    objects.filter(is_operator).collect()
}

/// Returns the items of a list; of anything else, itself.
fn items(mut document: Value) -> Vec<Value> {
    match document.get_mut("items").map(Value::take) {
        Some(Value::Array(items)) => items,
        _ => vec![document],
    }
}

/// What it is rehearsed on, and how that is called.
fn initial_state(
    arguments: &RehearseArguments,
) -> Result<(Option<ClusterSnapshot>, String), anyhow::Error> {
    if let Some(path) = &arguments.snapshot {
        return Ok((Some(ClusterSnapshot::read(path)?), format!("snapshot {}", path.display())));
    }
    if !arguments.from_cluster {
        return Ok((None, "an empty cluster".to_owned()));
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let copy = runtime.block_on(async {
        let client = arguments.cluster.client("rehearse").await?;
        anyhow::Ok(ClusterSnapshot::of_operators(&client).await?)
    })?;
    if let Some(path) = &arguments.save {
        copy.save(path)?;
    }
    Ok((Some(copy), "a copy of the cluster".to_owned()))
}

#[cfg(test)]
mod tests {
    //! Files, and the Operators that are applied.

    use super::*;

    #[test]
    fn operators_are_applied_as_they_are_written() {
        let operator = |name: &str| {
            format!("apiVersion: olm.io/v1\nkind: Operator\nmetadata: {{name: {name}}}\n")
        };
        let list = "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: olm.io/v1, kind: Operator, \
                    metadata: {name: baz}}\n";
        let other = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: foo}\n";
        let (foo, bar) = (operator("foo"), operator("bar"));
        let text = [foo.as_str(), "", other, list, "spec: 1\n", bar.as_str()];
        let file = LoadoutFile { path: "a.yaml".to_owned(), text: text.join("---\n") };
        let found = operators(&[file]);
        let names: Vec<_> = found.iter().map(|it| it["metadata"]["name"].as_str()).collect();
        assert_eq!(names, [Some("foo"), Some("baz"), Some("bar")]);
    }
}
