//! Loadouts: Operators as files declare them, and the result of applying them to a cluster (OPR-15, OPR-21).

mod converge;

use std::collections::BTreeMap;

use plimsoll_api::olm::{
    CHANGE_SET_ANNOTATION, INSTALLED_AS_DEPENDENCY, INSTALLED_AS_LABEL, OperatorSpec,
};
use plimsoll_content::diagnostic::{Diagnostic, LoadoutCode};
use plimsoll_content::yaml::{self, EditError, Lines};
use serde::Deserialize;
use serde_json::{Map, Value};

pub use self::converge::{ConvergedOperators, converge};
use super::installed::kinds;
use super::ready_when::{InvalidRule, problems};
use super::{InstalledOperator, RequestedOperator};

/// A file of a loadout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadoutFile {
    /// The path, as findings show it.
    pub path: String,
    /// The content.
    pub text: String,
}

impl LoadoutFile {
    /// Returns a diagnostic of a field of a document.
    pub(super) fn diagnostic(
        &self,
        document: usize,
        lines: &Lines,
        field: &str,
        code: LoadoutCode,
        message: String,
    ) -> Diagnostic {
        let (line, column) = lines.position(field);
        Diagnostic {
            document: Some(document),
            line: Some(line),
            column: Some(column),
            ..code.diagnostic(&self.path, message)
        }
    }
}

/// An Operator that a file declares.
#[derive(Debug, Clone, PartialEq)]
pub struct DeclaredOperator {
    /// The name of the Operator, which is that of its package.
    pub name: String,
    /// The requested spec.
    pub spec: OperatorSpec,
    /// Whether its label says that it was installed as a dependency.
    pub is_dependency: bool,
    /// The annotation of its change set; `None` without one.
    pub change_set: Option<String>,
    /// The index of its file in [`Loadout::files`].
    pub file: usize,
    /// The index of its document in the file, from 0, not counting empty ones.
    pub document: usize,
    /// The positions of its fields.
    pub(super) lines: Lines,
}

/// The Operators of a directory.
#[derive(Debug, Clone, Default)]
pub struct Loadout {
    /// The files, in order.
    pub files: Vec<LoadoutFile>,
    /// The Operators in them, in order; a name may occur twice.
    pub operators: Vec<DeclaredOperator>,
    /// The parts that cannot be read.
    pub defects: Vec<Diagnostic>,
}

impl Loadout {
    /// Reads files. Documents of other kinds are ignored.
    pub fn read(files: Vec<LoadoutFile>) -> Self {
        let mut loadout = Self { files, ..Self::default() };
        let known = spec_fields();
        for (at, file) in loadout.files.iter().enumerate() {
            let lines = yaml::lines(&file.text);
            let documents = yaml::parse(&file.text).into_iter();
            let documents = documents.filter(|it| it.value != Ok(Value::Null));
            for ((document, read), lines) in documents.enumerate().zip(lines) {
                let found = |field: &str, code: LoadoutCode, message: String| {
                    file.diagnostic(document, &lines, field, code, message)
                };
                let value = match read.value {
                    Ok(value) => value,
                    Err(error) => {
                        let (line, column) = (Some(error.line), Some(error.column));
                        let defect = found("", LoadoutCode::Unreadable, error.to_string());
                        loadout.defects.push(Diagnostic { line, column, ..defect });
                        continue;
                    }
                };
                match operator(&value, at, document, &lines, &known) {
                    Ok(Some((operator, defects))) => {
                        for key in lines.repeated(&read.notes) {
                            let defect = found("", LoadoutCode::Unreadable, key.to_string());
                            let package = operator.name.clone();
                            let (line, column) = (Some(key.line), None);
                            loadout.defects.push(Diagnostic { package, line, column, ..defect });
                        }
                        for FieldDefect { field, code, message } in defects {
                            let package = operator.name.clone();
                            let defect = found(&field, code, message);
                            loadout.defects.push(Diagnostic { package, ..defect });
                        }
                        loadout.operators.push(operator);
                    }
                    Ok(None) => {}
                    Err((field, message)) => {
                        loadout.defects.push(found(field, LoadoutCode::Unreadable, message));
                    }
                }
            }
        }
        loadout
    }

    /// Reads files that must be without defects.
    ///
    /// # Errors
    ///
    /// The first defect, with its position.
    pub fn read_sound(files: Vec<LoadoutFile>) -> Result<Self, String> {
        let loadout = Self::read(files);
        match loadout.defects.first() {
            None => Ok(loadout),
            Some(defect) => Err(format!(
                "{}: {}; `operator lint` finds everything that is wrong",
                defect.place(),
                defect.message
            )),
        }
    }

    /// Returns the Operators as a cluster without Operators has them after they are applied; of several with
    /// the same name, the first.
    pub fn requested(&self) -> BTreeMap<String, RequestedOperator> {
        let operators = self.operators.iter().rev();
        operators.map(|it| (it.name.clone(), it.requested())).collect()
    }

    /// Returns the first Operator with a name.
    pub fn operator(&self, name: &str) -> Option<&DeclaredOperator> {
        self.operators.iter().find(|it| it.name == name)
    }

    /// Sets a field of an Operator in the text of its file; all other text is unchanged.
    ///
    /// # Errors
    ///
    /// When the form of the document does not allow that.
    pub fn set_field(
        &mut self,
        file: usize,
        document: usize,
        path: &[&str],
        value: &str,
    ) -> Result<(), EditError> {
        let file = self.files.get_mut(file).ok_or(EditError::NoDocument)?;
        file.text = yaml::set_field(&file.text, document, path, value)?;
        Ok(())
    }

    /// Removes a field of an Operator from the text of its file; all other text is unchanged.
    ///
    /// # Errors
    ///
    /// When the form of the document does not allow that.
    pub fn remove_field(
        &mut self,
        file: usize,
        document: usize,
        path: &[&str],
    ) -> Result<(), EditError> {
        let file = self.files.get_mut(file).ok_or(EditError::NoDocument)?;
        file.text = yaml::remove_field(&file.text, document, path)?;
        Ok(())
    }
}

impl DeclaredOperator {
    /// Returns the Operator as a cluster without it has it after it is applied.
    pub fn requested(&self) -> RequestedOperator {
        RequestedOperator {
            change_set: self.change_set.clone(),
            ..RequestedOperator::new(self.spec.clone(), self.is_dependency)
        }
    }
}

impl RequestedOperator {
    /// Returns the Operator with an installed bundle; it owns the kinds that the bundle provides.
    #[must_use]
    pub fn with_installed(mut self, installed: InstalledOperator) -> Self {
        self.owned.extend(kinds(&installed.bundle));
        self.installed = Some(installed);
        self
    }
}

/// A defect of a field.
struct FieldDefect {
    /// The path of the field.
    field: String,
    code: LoadoutCode,
    message: String,
}

/// An Operator, and the defects of its fields.
type OperatorWithDefects = (DeclaredOperator, Vec<FieldDefect>);

/// Reads an Operator and the defects of its fields; `None` for another kind of object.
fn operator(
    value: &Value,
    file: usize,
    document: usize,
    lines: &Lines,
    known: &[String],
) -> Result<Option<OperatorWithDefects>, (&'static str, String)> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let Some(object) = value.as_object() else {
        return Err(("", "a manifest is a mapping with apiVersion, kind and metadata".to_owned()));
    };
    let (Some(version), Some(kind)) = (text(&value["apiVersion"]), text(&value["kind"])) else {
        return Err(("", "apiVersion and kind are missing: no manifest".to_owned()));
    };
    let Some((group, version)) = version.split_once('/') else { return Ok(None) };
    if group != "olm.io" || kind != "Operator" {
        return Ok(None);
    }
    if version != "v1" {
        return Err(("apiVersion", format!("olm.io has no version {version}: write olm.io/v1")));
    }
    let Some(name) = text(&value["metadata"]["name"]) else {
        return Err((
            "metadata",
            "metadata.name is missing: it is the name of the package".to_owned(),
        ));
    };
    let empty = Map::new();
    let written = match object.get("spec") {
        None | Some(Value::Null) => &empty,
        Some(Value::Object(spec)) => spec,
        Some(_) => return Err(("spec", "spec is not a mapping".to_owned())),
    };
    let (spec, defects) = spec(&name, written, known);
    let metadata = &value["metadata"];
    let change_set = text(&metadata["annotations"][CHANGE_SET_ANNOTATION]);
    let is_dependency = metadata["labels"][INSTALLED_AS_LABEL] == INSTALLED_AS_DEPENDENCY;
    let lines = lines.clone();
    let operator =
        DeclaredOperator { name, spec, is_dependency, change_set, file, document, lines };
    Ok(Some((operator, defects)))
}

/// Reads a spec field by field, so that one defect does not hide others.
fn spec(
    name: &str,
    written: &Map<String, Value>,
    known: &[String],
) -> (OperatorSpec, Vec<FieldDefect>) {
    let mut defects = Vec::new();
    let mut usable = Map::new();
    for (field, value) in written {
        let path = format!("spec.{field}");
        if !known.contains(field) {
            let (code, message) = match (field.as_str(), value.as_str()) {
                ("package", Some(package)) if package != name => (
                    LoadoutCode::Duplicate,
                    format!(
                        "the name of an Operator is that of its package: name it {package} instead of \
                         {name}, and remove spec.package"
                    ),
                ),
                _ => (
                    LoadoutCode::Unreadable,
                    format!("an Operator has no field {path}; there is {}", known.join(", ")),
                ),
            };
            defects.push(FieldDefect { field: path, code, message });
            continue;
        }
        let alone = Value::Object(Map::from_iter([(field.clone(), value.clone())]));
        match OperatorSpec::deserialize(&alone) {
            Ok(_) => {
                usable.insert(field.clone(), value.clone());
            }
            Err(error) => {
                let message = format!("{path}: {error}");
                let code = LoadoutCode::Unreadable;
                defects.push(FieldDefect { field: path, code, message });
            }
        }
    }
    let spec = OperatorSpec::deserialize(&Value::Object(usable)).unwrap_or_default();
    for InvalidRule { field, cause } in problems(&spec.ready_when) {
        let message = format!("{field}: {cause}");
        defects.push(FieldDefect { field, code: LoadoutCode::Unreadable, message });
    }
    (spec, defects)
}

/// Returns the fields of a spec in the CustomResourceDefinition of Operator.
fn spec_fields() -> Vec<String> {
    let definitions = plimsoll_api::crd::operator_manifests();
    let definition = definitions.iter().find(|it| it["spec"]["names"]["kind"] == "Operator");
    let fields = definition.and_then(|it| {
        it["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
            .as_object()
    });
    fields.into_iter().flat_map(|it| it.keys().cloned()).collect()
}
