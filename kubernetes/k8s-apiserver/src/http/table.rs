//! Tables: the rows and columns that `kubectl get` shows.
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::http::encode;
use crate::semantics::convert;
use crate::semantics::registry::ApiResource;
use crate::semantics::registry::custom::PrinterColumn;
use crate::status::{ApiError, Result};
use crate::storage::Stored;
use crate::verbs::list::Listing;

mod age;
mod built_in;
mod cells;
mod descriptions;
pub(crate) mod json_path;

use built_in::{Column, columns_of};

/// How much of each object a row carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IncludeObject {
    Nothing,
    Metadata,
    Whole,
}

impl IncludeObject {
    /// Reads the `includeObject` parameter.
    ///
    /// # Errors
    /// When it is none of those that tables know.
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

/// The table of one object.
pub(crate) fn of_one(
    resource: &ApiResource,
    stored: &Arc<Stored>,
    include: IncludeObject,
    now: Timestamp,
) -> Value {
    of_object(resource, &convert::read(resource, stored), include, now)
}

/// The table of one object in the version of `resource`.
pub(crate) fn of_object(
    resource: &ApiResource,
    object: &Value,
    include: IncludeObject,
    now: Timestamp,
) -> Value {
    let metadata = json!({"resourceVersion": object["metadata"]["resourceVersion"]});
    table(resource, &metadata, &[row(resource, object, include, now)])
}

/// The table of a list.
pub(crate) fn of_list(
    resource: &ApiResource,
    listing: &Listing,
    include: IncludeObject,
    now: Timestamp,
) -> Value {
    let rows: Vec<Value> = listing
        .items
        .iter()
        .map(|stored| row(resource, &convert::read(resource, stored), include, now))
        .collect();
    table(resource, &encode::list_metadata(listing), &rows)
}

/// A table without rows, for bookmarks.
pub(crate) fn bookmark(metadata: &Value) -> Value {
    json!({
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": [],
        "rows": [],
    })
}

fn table(resource: &ApiResource, metadata: &Value, rows: &[Value]) -> Value {
    let columns = match resource.custom() {
        Some(custom) => std::iter::once(definition(
            "Name",
            "string",
            "name",
            0,
            descriptions::of("", "", "Name"),
        ))
        .chain(custom.columns.iter().map(|column| {
            definition(
                &column.name,
                &column.column_type,
                &column.format,
                column.priority,
                &column.description,
            )
        }))
        .collect::<Vec<_>>(),
        None => columns_of(resource)
            .iter()
            .map(|column| {
                let told = descriptions::of(&resource.group, &resource.kind, column.name);
                definition(column.name, column.column_type, column.format, column.priority, told)
            })
            .collect(),
    };
    json!({
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": columns,
        "rows": rows,
    })
}

fn definition(
    name: &str,
    column_type: &str,
    format: &str,
    priority: i64,
    description: &str,
) -> Value {
    json!({
        "name": name,
        "type": column_type,
        "format": format,
        "description": description,
        "priority": priority,
    })
}

fn row(resource: &ApiResource, object: &Value, include: IncludeObject, now: Timestamp) -> Value {
    let cells: Vec<Value> = match resource.custom() {
        Some(custom) => std::iter::once(object["metadata"]["name"].clone())
            .chain(custom.columns.iter().map(|column| custom_cell(column, object, now)))
            .collect(),
        None => columns_of(resource).iter().map(|column| cell(column, object, now)).collect(),
    };
    let mut row = json!({"cells": cells});
    match include {
        IncludeObject::Nothing => row["object"] = Value::Null,
        IncludeObject::Metadata => row["object"] = encode::metadata_view(object),
        IncludeObject::Whole => row["object"] = object.clone(),
    }
    row
}

fn cell(column: &Column, object: &Value, now: Timestamp) -> Value {
    match column.cell {
        built_in::Cell::At(path, missing) => {
            let found = at(object, path);
            if found.is_null() || found == "" { missing.into() } else { found.clone() }
        }
        built_in::Cell::Age(path) => age::since(at(object, path).as_str(), now).into(),
        built_in::Cell::Of(read) => read(object),
        built_in::Cell::Timed(read) => read(object, now),
    }
}

/// The value at a dotted path; null if there is none.
fn at<'a>(object: &'a Value, path: &str) -> &'a Value {
    path.split('.').fold(object, |value, segment| &value[segment])
}

fn custom_cell(column: &PrinterColumn, object: &Value, now: Timestamp) -> Value {
    let Some(value) = json_path::first(object, &column.json_path) else {
        return Value::Null;
    };
    match (column.column_type.as_str(), value) {
        ("string", Value::String(text)) => text.clone().into(),
        ("string", other) => other.to_string().into(),
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
