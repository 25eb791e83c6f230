//! Manifests of Operators: writing new files, and changing fields of existing ones without other
//! changes.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use plimsoll_api::olm::{
    CHANGE_SET_ANNOTATION, INSTALLED_AS_DEPENDENCY, INSTALLED_AS_LABEL, INSTALLED_AS_USER,
};
use plimsoll_content::yaml::EditError;
use plimsoll_operators::loadout::{Loadout, ObjectPlace};
use plimsoll_operators::manifest::{ChangeSetEdit, OperatorManifest};
use plimsoll_source::whole_file;

/// The path of the annotation of a change set.
const CHANGE_SET: [&str; 3] = ["metadata", "annotations", CHANGE_SET_ANNOTATION];
/// The path of the label that says who asked for an Operator.
const INSTALLED_AS: [&str; 3] = ["metadata", "labels", INSTALLED_AS_LABEL];

/// Writes Operators to the files of a loadout that declare them, and the others to new files of a
/// directory, or beside a single file. Returns the files that were written, in order.
///
/// # Errors
///
/// As [`texts`]; nothing is written then. When a file cannot be written.
pub(super) fn write_manifests(
    loadout: &mut Loadout,
    directory: &Path,
    operators: &[OperatorManifest],
    warning: Option<&str>,
) -> Result<Vec<PathBuf>, anyhow::Error> {
    let texts = texts(loadout, directory, operators, warning)?;
    let directory = directory_of(directory);
    fs::create_dir_all(directory)
        .with_context(|| format!("failed to create `{}`", directory.display()))?;
    let mut written = Vec::new();
    for (path, text) in texts {
        whole_file::write(&path, text.as_bytes())
            .with_context(|| format!("failed to write `{}`", path.display()))?;
        written.push(path);
    }
    Ok(written)
}

/// Returns the directory of new files: that of a single file, if one is named.
fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if path.is_file() => parent,
        Some(_) | None => path,
    }
}

/// Returns the files that [`write_manifests`] writes, with their texts.
///
/// # Errors
///
/// When a file has a form that cannot be changed, or declares something else.
pub(super) fn texts(
    loadout: &mut Loadout,
    directory: &Path,
    operators: &[OperatorManifest],
    warning: Option<&str>,
) -> Result<Vec<(PathBuf, String)>, anyhow::Error> {
    let directory = directory_of(directory);
    let mut changed = BTreeSet::new();
    let mut new = Vec::new();
    for it in operators {
        match loadout.operator(&it.name).map(|it| (it.file, it.place.clone())) {
            Some((file, place)) => {
                change(loadout, file, &place, it)?;
                changed.insert(file);
            }
            None => {
                let path = directory.join(format!("{}.yaml", it.name));
                if path.exists() {
                    bail!("`{}` exists and declares no Operator {}", path.display(), it.name);
                }
                new.push((path, text(it, warning)?));
            }
        }
    }
    let changed = changed.into_iter().map(|file| {
        let file = &loadout.files[file];
        (PathBuf::from(&file.path), file.text.clone())
    });
    Ok(changed.chain(new).collect())
}

/// Changes an Operator in the text of its file.
fn change(
    loadout: &mut Loadout,
    file: usize,
    document: &ObjectPlace,
    operator: &OperatorManifest,
) -> Result<(), anyhow::Error> {
    let OperatorManifest { name, version, change_set, .. } = operator;
    let path = loadout.files[file].path.clone();
    let refused = |what: String, error: EditError| {
        anyhow::anyhow!("`{path}` cannot be changed, and nothing was written: {what}: {error}")
    };
    loadout
        .set_field(file, document, &["spec", "version"], version)
        .map_err(|error| refused(format!("set spec.version of {name} to {version}"), error))?;
    for (field, value) in operator.sources() {
        loadout
            .set_field(file, document, &["spec", field], value)
            .map_err(|error| refused(format!("set spec.{field} of {name} to {value}"), error))?;
    }
    if operator.becomes_requested {
        loadout.set_field(file, document, &INSTALLED_AS, INSTALLED_AS_USER).map_err(|error| {
            let label = format!("set the label {INSTALLED_AS_LABEL} of {name}");
            refused(format!("{label} to {INSTALLED_AS_USER}"), error)
        })?;
    }
    let annotation =
        |verb: &str| format!("{verb} the annotation {CHANGE_SET_ANNOTATION} of {name}");
    match change_set {
        ChangeSetEdit::Keep => Ok(()),
        ChangeSetEdit::Set(set) => loadout
            .set_field(file, document, &CHANGE_SET, set)
            .map_err(|error| refused(format!("{} to {set}", annotation("set")), error)),
        ChangeSetEdit::Remove => loadout
            .remove_field(file, document, &CHANGE_SET)
            .map_err(|error| refused(annotation("remove"), error)),
    }
}

/// Returns an Operator as the text of a new file.
fn text(operator: &OperatorManifest, warning: Option<&str>) -> Result<String, anyhow::Error> {
    let quoted = |text: &str| serde_json::Value::String(text.to_owned()).to_string();
    let mut text = String::new();
    if let Some(warning) = warning {
        text.push_str(&format!("# WARNING: {warning}\n"));
    }
    if !operator.declared.is_null() {
        text.push_str(&serde_saphyr::to_string(&operator.object())?);
        if !text.ends_with('\n') {
            text.push('\n');
        }
        return Ok(text);
    }
    text.push_str("apiVersion: olm.io/v1\nkind: Operator\nmetadata:\n");
    text.push_str(&format!("  name: {}\n", operator.name));
    let installed_as = match operator.is_dependency {
        true => INSTALLED_AS_DEPENDENCY,
        false => INSTALLED_AS_USER,
    };
    text.push_str(&format!("  labels:\n    {INSTALLED_AS_LABEL}: {installed_as}\n"));
    if let Some(set) = operator.change_set.value() {
        text.push_str(&format!("  annotations:\n    {CHANGE_SET_ANNOTATION}: {set}\n"));
    }
    text.push_str(&format!("spec:\n  version: {}\n", quoted(&operator.version)));
    for (field, value) in operator.sources() {
        text.push_str(&format!("  {field}: {}\n", quoted(value)));
    }
    Ok(text)
}
