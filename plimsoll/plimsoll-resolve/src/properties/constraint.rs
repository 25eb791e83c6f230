//! `olm.constraint`: compound and arbitrary constraints on one bundle.

use serde_json::{Map, Value};

use crate::bundle::{Api, Constraint, Requirement};
use crate::range::blang;
use crate::version::number_for_text;

/// The longest `olm.constraint` that is read, in bytes, as upstream has it.
pub const CONSTRAINT_BYTES_MAX: usize = 128 * 1024;

const KINDS: [&str; 6] = ["gvk", "package", "all", "any", "not", "cel"];

/// Reads the value of a property `olm.constraint`.
///
/// Keys count in any case, unknown ones are refused. Upstream silently takes the first when
/// several kinds are set; here that is an error, because its author surely meant both.
///
/// # Errors
/// What is wrong, as a clause whose subject is the property.
pub(super) fn parse(value: &Value) -> Result<Requirement, String> {
    let bytes = value.to_string().len();
    if bytes > CONSTRAINT_BYTES_MAX {
        return Err(format!("has {bytes} bytes, at most {CONSTRAINT_BYTES_MAX}"));
    }
    requirement(value).map_err(|cause| format!("is invalid: {cause}"))
}

/// Its depth is bounded by that of the JSON it was read from.
fn requirement(value: &Value) -> Result<Requirement, String> {
    let fields = object(value, &["failureMessage", "gvk", "package", "all", "any", "not", "cel"])?;
    let mut set = KINDS.iter().filter_map(|kind| {
        let value = *fields.iter().find(|(name, _)| name == kind).map(|(_, value)| value)?;
        (!value.is_null()).then_some((*kind, value))
    });
    let Some((kind, value)) = set.next() else {
        return Err("the constraint is empty".to_owned());
    };
    if let Some((other, _)) = set.next() {
        return Err(format!("both `{kind}` and `{other}` are set"));
    }
    let message = fields.iter().find(|(name, _)| *name == "failureMessage");
    Ok(Requirement {
        message: match message.map(|(_, value)| *value) {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) => Some(text.clone()).filter(|text| !text.is_empty()),
            Some(_) => return Err("`failureMessage` is not a string".to_owned()),
        },
        constraint: constraint(kind, value)?,
    })
}

fn constraint(kind: &str, value: &Value) -> Result<Constraint, String> {
    Ok(match kind {
        "gvk" => {
            let fields = object(value, &["group", "version", "kind"])?;
            Constraint::Api(Api {
                group: text(&fields, "group")?,
                version: text(&fields, "version")?,
                kind: text(&fields, "kind")?,
            })
        }
        "package" => {
            let fields = object(value, &["packageName", "versionRange"])?;
            let range = text(&fields, "versionRange")?;
            blang::Range::parse(&range).map_err(|error| error.to_string())?;
            Constraint::Package { name: text(&fields, "packageName")?, range }
        }
        "cel" => {
            let fields = object(value, &["rule"])?;
            Constraint::Cel { rule: text(&fields, "rule")? }
        }
        _ => {
            let fields = object(value, &["constraints"])?;
            let members = match fields.first().map(|(_, value)| *value) {
                None | Some(Value::Null) => Vec::new(),
                Some(Value::Array(items)) => {
                    items.iter().map(requirement).collect::<Result<_, _>>()?
                }
                Some(_) => return Err(format!("`{kind}.constraints` is not a list")),
            };
            match kind {
                "all" => Constraint::All(members),
                "any" => Constraint::Any(members),
                _ => Constraint::Not(members),
            }
        }
    })
}

/// The fields of an object under their proper names, whatever their case.
fn object<'a>(
    value: &'a Value,
    known: &[&'static str],
) -> Result<Vec<(&'static str, &'a Value)>, String> {
    static EMPTY: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);
    let fields = match value {
        Value::Object(fields) => fields,
        Value::Null => &*EMPTY,
        _ => return Err(format!("an object is expected, with {}", known.join(", "))),
    };
    fields
        .iter()
        .map(|(key, value)| {
            let name = known.iter().find(|name| name.eq_ignore_ascii_case(key));
            name.map(|name| (*name, value)).ok_or_else(|| format!("the field `{key}` is unknown"))
        })
        .collect()
}

fn text(fields: &[(&str, &Value)], name: &str) -> Result<String, String> {
    match fields.iter().find(|(field, _)| *field == name).map(|(_, value)| *value) {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(Value::Number(number)) => Err(format!("`{name}` {}", number_for_text(number))),
        Some(_) => Err(format!("`{name}` is not a string")),
    }
}
