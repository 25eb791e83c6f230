//! Reading of loadouts: the Operators in files, and everything that cannot be read as one.

use plimsoll_api::duration;
use plimsoll_api::olm::{
    CHANGE_SET_ANNOTATION, INSTALLED_AS_DEPENDENCY, INSTALLED_AS_LABEL, INSTALLED_AS_USER,
    OperatorSpec,
};
use plimsoll_content::diagnostic::{Diagnostic, LoadoutCode};
use plimsoll_content::yaml::{self, Lines, YamlDocument};
use serde::Deserialize as _;
use serde_json::{Map, Value};

use super::fields::{FieldDefect, OperatorSchema};
use super::objects::{self, FileObject, classify};
use super::{DeclaredOperator, Loadout, LoadoutFile, ObjectPlace};
use crate::ready_when::{InvalidRule, problems};

/// The names of files that Kustomize reads itself: they need neither apiVersion nor kind.
const KUSTOMIZATIONS: [&str; 2] = ["kustomization.yaml", "kustomization.yml"];

/// The field of the progress deadline.
const DEADLINE: &str = "spec.progressDeadline";

impl Loadout {
    /// Reads files. Objects of other kinds are ignored.
    pub fn read(files: Vec<LoadoutFile>) -> Self {
        let schema = OperatorSchema::new();
        let mut loadout = Self { files, ..Self::default() };
        for (at, file) in loadout.files.iter().enumerate() {
            let (found, operators, defects) = (Vec::new(), Vec::new(), Vec::new());
            let mut reader = FileReader { at, file, schema: &schema, found, operators, defects };
            reader.file();
            loadout.operators.extend(reader.operators);
            loadout.defects.extend(reader.defects);
        }
        loadout
    }
}

/// Reads a file.
struct FileReader<'f> {
    /// The index of the file.
    at: usize,
    file: &'f LoadoutFile,
    schema: &'f OperatorSchema,
    /// The Operators of the document, in order.
    found: Vec<FoundOperator>,
    operators: Vec<DeclaredOperator>,
    defects: Vec<Diagnostic>,
}

/// An Operator of a document, whether or not it can be read.
struct FoundOperator {
    /// Its name; empty if it has no usable one.
    name: String,
    /// The line that it begins in.
    line: usize,
}

impl FileReader<'_> {
    fn file(&mut self) {
        let lines = yaml::lines(&self.file.text);
        let documents = yaml::parse(&self.file.text).into_iter();
        let documents = documents.filter(|it| it.value != Ok(Value::Null));
        for ((document, read), lines) in documents.enumerate().zip(lines) {
            self.document(document, read, &lines);
        }
    }

    fn document(&mut self, document: usize, read: YamlDocument, lines: &Lines) {
        let place = ObjectPlace { document, path: Vec::new() };
        let value = match read.value {
            Ok(value) => value,
            Err(error) => {
                let message = error.to_string();
                let (line, column) = (Some(error.line), Some(error.column));
                let defect = FieldDefect::unreadable("", message);
                let found = self.diagnostic(&place, lines, "", defect);
                self.defects.push(Diagnostic { line, column, ..found });
                return;
            }
        };
        let file_name = self.file.path.rsplit('/').next().unwrap_or_default();
        let is_bare = value.is_object() && value["apiVersion"].is_null() && value["kind"].is_null();
        if is_bare && KUSTOMIZATIONS.contains(&file_name) {
            return;
        }
        self.found.clear();
        self.object(&value, &place, lines);
        let Some((first, others)) = self.found.split_first() else { return };
        for key in lines.repeated(&read.notes) {
            let operator = others.iter().rev().find(|it| it.line <= key.line).unwrap_or(first);
            let defect = FieldDefect::unreadable("", key.to_string());
            let found = self.diagnostic(&place, lines, &operator.name, defect);
            let (line, column) = (Some(key.line), None);
            self.defects.push(Diagnostic { line, column, ..found });
        }
    }

    /// Returns a defect as a diagnostic of an Operator; its name is empty if it is not known.
    fn diagnostic(
        &self,
        place: &ObjectPlace,
        lines: &Lines,
        operator: &str,
        defect: FieldDefect,
    ) -> Diagnostic {
        let FieldDefect { field, code, severity, message } = defect;
        let found = self.file.diagnostic(place, lines, &field, code, message);
        Diagnostic { package: operator.to_owned(), severity, ..found }
    }

    /// Reads an object: an Operator, or a list that may contain some.
    fn object(&mut self, value: &Value, place: &ObjectPlace, lines: &Lines) {
        match classify(value) {
            Ok(FileObject::Operator) => self.operator(value, place, lines),
            Ok(FileObject::List(items)) => {
                for defect in objects::list_defects(value) {
                    let found = self.diagnostic(place, lines, "", defect);
                    self.defects.push(found);
                }
                for (index, item) in items.iter().enumerate() {
                    let mut place = place.clone();
                    place.path.extend(["items".to_owned(), format!("[{index}]")]);
                    self.object(&objects::item(value, item), &place, lines);
                }
            }
            Ok(FileObject::Other) => {}
            Err(defect) => {
                let is_object = value["apiVersion"].is_string() && value["kind"].is_string();
                let meant = value["metadata"]["name"].as_str().filter(|_| is_object);
                let found = self.diagnostic(place, lines, meant.unwrap_or_default(), defect);
                self.defects.push(found);
            }
        }
    }

    /// Reads an Operator, as far as it can be read. Without a name or with a spec of another form it declares none.
    fn operator(&mut self, value: &Value, place: &ObjectPlace, lines: &Lines) {
        let name = value["metadata"]["name"].as_str().unwrap_or_default();
        let (line, _) = lines.position(&place.field(""));
        self.found.push(FoundOperator { name: name.to_owned(), line });
        let mut defects = self.schema.defects(name, value);
        let empty = Map::new();
        let written = value["spec"].as_object().unwrap_or(&empty);
        let spec = spec(written, &mut defects);
        for defect in defects {
            let found = self.diagnostic(place, lines, name, defect);
            self.defects.push(found);
        }
        if name.is_empty() || !matches!(value["spec"], Value::Null | Value::Object(_)) {
            return;
        }
        let metadata = &value["metadata"];
        let change_set = metadata["annotations"][CHANGE_SET_ANNOTATION].as_str();
        let operator = DeclaredOperator {
            name: name.to_owned(),
            spec,
            is_dependency: metadata["labels"][INSTALLED_AS_LABEL] == INSTALLED_AS_DEPENDENCY,
            is_of_user: metadata["labels"][INSTALLED_AS_LABEL] == INSTALLED_AS_USER,
            change_set: change_set.map(str::to_owned),
            file: self.at,
            place: place.clone(),
            has_unread_version: written.get("version").is_some_and(|it| !it.is_string()),
            lines: lines.clone(),
        };
        self.operators.push(operator);
    }
}

/// Reads a spec without the fields that have defects, and adds those that it finds itself: one defect does not
/// hide others.
fn spec(written: &Map<String, Value>, defects: &mut Vec<FieldDefect>) -> OperatorSpec {
    let mut usable = Map::new();
    for (field, value) in written {
        let path = format!("spec.{field}");
        let is_refused = |it: &FieldDefect| {
            let within = it.field.strip_prefix(&path);
            it.code == LoadoutCode::Unreadable
                && within.is_some_and(|it| it.is_empty() || it.starts_with(['.', '[']))
        };
        let alone = Value::Object(Map::from_iter([(field.clone(), value.clone())]));
        match OperatorSpec::deserialize(&alone) {
            Ok(_) => {
                usable.insert(field.clone(), value.clone());
            }
            Err(_) if defects.iter().any(is_refused) => {}
            Err(error) => defects.push(FieldDefect::unreadable(&path, format!("{path}: {error}"))),
        }
    }
    let spec = OperatorSpec::deserialize(&Value::Object(usable)).unwrap_or_default();
    if !spec.progress_deadline.is_empty()
        && !defects.iter().any(|it| it.field == DEADLINE)
        && let Err(cause) = duration::parse(&spec.progress_deadline)
    {
        defects.push(FieldDefect::unreadable(DEADLINE, format!("{DEADLINE}: {cause}")));
    }
    for InvalidRule { field, cause } in problems(&spec.ready_when) {
        let message = format!("{field}: {cause}");
        defects.push(FieldDefect::unreadable(field, message));
    }
    spec
}
