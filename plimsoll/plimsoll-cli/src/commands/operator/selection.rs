//! The Operators that a command is about: by name, by label, as files declare them, or all.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Error, anyhow, bail};
use clap::Args;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Client;
use plimsoll_api::OPERATOR;
use plimsoll_content::yaml;
use plimsoll_operators::RequestedPackage;
use plimsoll_operators::install::RequestError;
use plimsoll_operators::loadout::{Loadout, LoadoutFile};
use serde::Deserialize as _;
use serde_json::{Value, json};

use super::loadout::read_files;
use super::state::{AddOnState, operators};
use crate::arguments::installation::read_input;
use crate::arguments::name;

/// The path that stands for standard input.
const STANDARD_INPUT: &str = "-";
/// What messages call standard input.
pub(super) const INPUT_NAME: &str = "standard input";

/// The Operators that a command is about, as the command line selects them.
#[derive(Debug, Clone, Default, Args)]
#[group(multiple = false)]
pub struct OperatorSelection {
    /// Operators
    #[arg(value_name = "NAME", value_parser = name::operator())]
    names: Vec<String>,
    /// Operators with these labels, such as `team=harbour`
    #[arg(long, short = 'l', value_name = "SELECTOR")]
    selector: Option<String>,
    /// All Operators
    #[arg(long, short = 'A')]
    all: bool,
    /// Operators that a file, or the files of a directory, declare; `-` for standard input; repeatable
    #[arg(long, short = 'f', value_name = "FILE")]
    filename: Vec<PathBuf>,
}

impl OperatorSelection {
    /// Returns the label selector; empty without one.
    pub(super) fn selector(&self) -> &str {
        self.selector.as_deref().unwrap_or_default()
    }

    /// Returns whether no Operator is left out: all are selected, or nothing is.
    pub(super) fn is_whole(&self) -> bool {
        self.names.is_empty() && self.selector.is_none() && self.filename.is_empty()
    }

    /// Returns the Operators that the command line or files name, each once; `None` if neither does.
    ///
    /// # Errors
    ///
    /// When the command line names one twice, a file cannot be read, or the files declare no Operator.
    pub(super) fn named(&self) -> Result<Option<Vec<String>>, Error> {
        if !self.filename.is_empty() {
            let declared = declared_operators(&self.filename)?;
            return Ok(Some(distinct(declared.into_iter().map(|it| it.name))));
        }
        let mut seen = BTreeSet::new();
        if let Some(twice) = self.names.iter().find(|it| !seen.insert(*it)) {
            bail!("{}", RequestError::Twice { name: twice.clone(), ranges: Vec::new() });
        }
        Ok((!self.names.is_empty()).then(|| self.names.clone()))
    }

    /// Returns the names of the selected Operators of a cluster; all if nothing is selected.
    ///
    /// # Errors
    ///
    /// When the cluster has none of a name (the error names similar ones), one is named twice, nothing matches, or a
    /// file or the cluster cannot be read.
    pub(super) async fn names(
        &self,
        client: &Client,
        state: &AddOnState,
    ) -> Result<Vec<String>, Error> {
        if let Some(names) = self.named()? {
            for name in &names {
                state.operator(name)?;
            }
            return Ok(names);
        }
        if let Some(selector) = &self.selector {
            return labelled(client, selector).await;
        }
        if state.operators.is_empty() {
            bail!("the cluster has no Operators: `operator install` installs some");
        }
        Ok(state.operators.keys().cloned().collect())
    }
}

/// Reads the name of an Operator, or of its package, with a range or without.
///
/// # Errors
///
/// When it has no name, the kind before it is another one, or the range is invalid.
pub(super) fn requested_operator(text: &str) -> Result<RequestedPackage, String> {
    name::without_kind(text)?.parse()
}

/// Returns the names of the Operators with labels.
///
/// # Errors
///
/// When there are none, or the cluster cannot be read.
pub(super) async fn labelled(client: &Client, selector: &str) -> Result<Vec<String>, Error> {
    let found = operators(client, selector).await?;
    if found.is_empty() {
        bail!("no Operator has labels that match `{selector}`; `operator list` lists all");
    }
    Ok(found.into_keys().collect())
}

/// Returns names without repetitions, in their order.
fn distinct(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut found = Vec::new();
    for name in names {
        if !found.contains(&name) {
            found.push(name);
        }
    }
    found
}

/// An Operator as a file declares it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct DeclaredObject {
    /// The name of the Operator.
    pub(super) name: String,
    /// `spec.version`; empty for any version.
    pub(super) version: String,
    /// The labels, the annotations and the spec.
    pub(super) object: Value,
}

/// Reads the Operators that files and the files of directories declare, in order.
///
/// # Errors
///
/// When a file cannot be read or has a defect, or none declares an Operator.
pub(super) fn declared_operators(paths: &[PathBuf]) -> Result<Vec<DeclaredObject>, Error> {
    let mut files = Vec::new();
    for path in paths {
        files.extend(read_files_or_input(path)?);
    }
    let files = Loadout::read_sound(files).map_err(|error| anyhow!(error))?.files;
    let found = declared_in(&files)?;
    if found.is_empty() {
        let paths: Vec<String> = paths.iter().map(|it| format!("`{}`", it.display())).collect();
        bail!("no Operator is declared in {}", paths.join(", "));
    }
    Ok(found)
}

/// Returns whether a path stands for standard input.
pub(super) fn is_input(path: &Path) -> bool {
    path.as_os_str() == STANDARD_INPUT
}

/// Reads a file, the files of a directory, or standard input.
///
/// # Errors
///
/// When one cannot be read.
pub(super) fn read_files_or_input(path: &Path) -> Result<Vec<LoadoutFile>, Error> {
    if !is_input(path) {
        return read_files(path);
    }
    let text = read_input().context("failed to read standard input")?;
    Ok(vec![LoadoutFile { path: INPUT_NAME.to_owned(), text }])
}

/// Returns the Operators that the texts of files declare, in order.
///
/// # Errors
///
/// When the metadata of one has another form.
fn declared_in(files: &[LoadoutFile]) -> Result<Vec<DeclaredObject>, Error> {
    let mut found = Vec::new();
    for file in files {
        let values = yaml::parse(&file.text).into_iter().filter_map(|it| it.value.ok());
        for object in values.flat_map(objects) {
            let declared = declared(&object).with_context(|| format!("`{}`", file.path))?;
            found.extend(declared);
        }
    }
    Ok(found)
}

/// Returns the Operators in the texts of files as they are there, by name.
pub(super) fn written_in(files: &[LoadoutFile]) -> BTreeMap<String, Value> {
    let values = files.iter().flat_map(|it| yaml::parse(&it.text));
    let objects = values.filter_map(|it| it.value.ok()).flat_map(objects);
    let mut found = BTreeMap::new();
    for object in objects.filter(is_operator) {
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        found.entry(name).or_insert(object);
    }
    found
}

fn is_operator(object: &Value) -> bool {
    object["apiVersion"] == OPERATOR.api_version() && object["kind"] == OPERATOR.kind
}

/// Returns the objects of a list, or the one that is no list.
fn objects(value: Value) -> Vec<Value> {
    let is_list = value["kind"].as_str().is_some_and(|it| it.ends_with("List"));
    let items = value["items"].as_array().filter(|_| is_list).cloned();
    items.unwrap_or_else(|| vec![value])
}

/// Returns an Operator as it is declared; `None` for another kind of object.
fn declared(object: &Value) -> Result<Option<DeclaredObject>, Error> {
    if !is_operator(object) {
        return Ok(None);
    }
    let metadata = ObjectMeta::deserialize(&object["metadata"]).context("metadata")?;
    let name = metadata.name.context("metadata.name is missing: it is the name of the package")?;
    let version = object["spec"]["version"].as_str().unwrap_or_default().to_owned();
    let object = json!({
        "metadata": { "labels": metadata.labels, "annotations": metadata.annotations },
        "spec": object["spec"],
    });
    Ok(Some(DeclaredObject { name, version, object }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_are_read_from_documents_and_lists() {
        let text = "\
apiVersion: v1
kind: Namespace
metadata: {name: quay}
---
apiVersion: olm.io/v1
kind: Operator
metadata: {name: foo, labels: {team: quay}}
spec: {version: ~1.2, channel: stable}
---
apiVersion: v1
kind: List
items:
- {apiVersion: olm.io/v1, kind: Operator, metadata: {name: bar}}
";
        let file = LoadoutFile { path: "a.yaml".to_owned(), text: text.to_owned() };
        let found = declared_in(&[file]).expect("they can be read");
        let names: Vec<(&str, &str)> =
            found.iter().map(|it| (it.name.as_str(), it.version.as_str())).collect();
        assert_eq!(names, [("foo", "~1.2"), ("bar", "")]);
        assert_eq!(found[0].object["metadata"]["labels"], json!({ "team": "quay" }));
        assert_eq!(found[0].object["spec"]["channel"], "stable");
    }

    #[test]
    fn an_operator_that_is_named_twice_is_an_error() {
        let named = |names: &[&str]| {
            let names = names.iter().map(|it| (*it).to_owned()).collect();
            let selection = OperatorSelection { names, ..OperatorSelection::default() };
            selection.named().map_err(|error| error.to_string())
        };
        let both = vec!["foo".to_owned(), "bar".to_owned()];
        assert_eq!(named(&["foo", "bar"]), Ok(Some(both)));
        assert_eq!(named(&[]), Ok(None));
        let twice = "foo is named twice: name it once".to_owned();
        assert_eq!(named(&["foo", "bar", "foo"]), Err(twice));
    }

    #[test]
    fn files_without_operators_are_an_error() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("a.yaml");
        std::fs::write(&path, "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n")
            .expect("a file");
        let error = declared_operators(std::slice::from_ref(&path)).expect_err("no Operator");
        assert_eq!(error.to_string(), format!("no Operator is declared in `{}`", path.display()));
    }
}
