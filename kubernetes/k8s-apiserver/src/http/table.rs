//! Tables: the rows and columns that `kubectl get` shows.
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::http::encode;
use crate::json_path;
use crate::request::accept::MetaVersion;
use crate::semantics::convert;
use crate::semantics::registry::{ApiResource, PrinterColumn};
use crate::status::{ApiError, Result};
use crate::storage::ListPage;

mod age;
mod cells;
mod columns;
mod expression;

use columns::{Column, columns_of, name_column};

/// How much of each object a row carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IncludeObject {
    Nothing,
    Metadata,
    Whole,
}

/// What the client requested of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TableForm {
    pub(crate) version: MetaVersion,
    pub(crate) include: IncludeObject,
    /// The time at which ages are computed.
    pub(crate) now: Timestamp,
}

impl IncludeObject {
    /// Reads the `includeObject` parameter.
    ///
    /// # Errors
    /// When it is none of those that tables know.
    ///
    /// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/response.go: doTransformObject
    pub(crate) fn read(text: Option<&str>) -> Result<Self> {
        match text.unwrap_or_default() {
            "None" => Ok(Self::Nothing),
            "Object" => Ok(Self::Whole),
            "" | "Metadata" => Ok(Self::Metadata),
            other => Err(ApiError::bad_request(format!(
                "Unable to convert to Table as requested: includeObject: Invalid value: \
                 {other:?}: must be 'Metadata', 'Object', 'None', or empty"
            ))),
        }
    }
}

/// The table of one object in the version of `resource`.
pub(crate) fn of_object(resource: &ApiResource, object: &Value, form: TableForm) -> Value {
    let metadata = json!({"resourceVersion": object["metadata"]["resourceVersion"]});
    let columns = Columns::of(resource);
    table(&metadata, &columns, &[row(&columns, object, form)], form.version)
}

/// The table of a list.
///
/// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/response.go: asTable
pub(crate) fn of_list(resource: &ApiResource, listing: &ListPage, form: TableForm) -> Value {
    let columns = Columns::of(resource);
    let rows: Vec<Value> = listing
        .items
        .iter()
        .map(|stored| row(&columns, &convert::read(resource, stored), form))
        .collect();
    table(&encode::list_metadata(listing), &columns, &rows, form.version)
}

/// The columns of a kind.
enum Columns<'a> {
    BuiltIn(&'static [Column]),
    /// Those that a definition declares; the name comes before them.
    Custom(&'a [PrinterColumn]),
}

impl<'a> Columns<'a> {
    fn of(resource: &'a ApiResource) -> Self {
        match resource.custom() {
            Some(custom) => Self::Custom(&custom.columns),
            None => Self::BuiltIn(columns_of(resource)),
        }
    }

    fn definitions(&self) -> Vec<Value> {
        match self {
            Self::BuiltIn(columns) => columns.iter().map(built_in_definition).collect(),
            Self::Custom(columns) => std::iter::once(built_in_definition(name_column()))
                .chain(columns.iter().map(custom_definition))
                .collect(),
        }
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        match self {
            Self::BuiltIn(columns) => {
                columns.iter().map(|column| column.cell.evaluate(object, now)).collect()
            }
            Self::Custom(columns) => std::iter::once(object["metadata"]["name"].clone())
                .chain(columns.iter().map(|column| custom_cell(column, object, now)))
                .collect(),
        }
    }
}

fn table(metadata: &Value, columns: &Columns<'_>, rows: &[Value], version: MetaVersion) -> Value {
    json!({
        "kind": "Table",
        "apiVersion": version.api_version(),
        "metadata": metadata,
        "columnDefinitions": columns.definitions(),
        "rows": rows,
    })
}

fn built_in_definition(column: &Column) -> Value {
    json!({
        "name": column.name,
        "type": column.column_type,
        "format": column.format,
        "description": column.description,
        "priority": column.priority,
    })
}

fn custom_definition(column: &PrinterColumn) -> Value {
    json!({
        "name": column.name,
        "type": column.column_type,
        "format": column.format,
        "description": column.description,
        "priority": column.priority,
    })
}

fn row(columns: &Columns<'_>, object: &Value, form: TableForm) -> Value {
    let mut row = json!({"cells": columns.cells(object, form.now)});
    match form.include {
        IncludeObject::Nothing => row["object"] = Value::Null,
        IncludeObject::Metadata => row["object"] = encode::metadata_view(object, form.version),
        IncludeObject::Whole => row["object"] = object.clone(),
    }
    row
}

/// The cell of a column that a definition declares; null where the value is not of its type.
///
/// Upstream: k8s.io/apiextensions-apiserver/pkg/registry/customresource/tableconvertor/tableconvertor.go: cellForJSONValue
fn custom_cell(column: &PrinterColumn, object: &Value, now: Timestamp) -> Value {
    let Some(value) = json_path::first(object, &column.json_path) else {
        return Value::Null;
    };
    match (column.column_type.as_str(), value) {
        ("string", Value::String(text)) => text.clone().into(),
        ("string", Value::Null) => "<no value>".into(),
        ("string", other) => other.to_string().into(),
        ("date", Value::String(text)) if text.is_empty() || text == "null" => "<unknown>".into(),
        ("date", Value::String(text)) if text.parse::<Timestamp>().is_err() => "<invalid>".into(),
        ("date", Value::String(text)) => age::since(Some(text), now).into(),
        ("integer", Value::Number(number)) => number
            .as_i64()
            .or_else(|| number.as_f64().map(|float| float as i64))
            .map_or(Value::Null, Value::from),
        ("number", Value::Number(_)) | ("boolean", Value::Bool(_)) => value.clone(),
        _ => Value::Null,
    }
}

#[cfg(test)]
mod tests;
