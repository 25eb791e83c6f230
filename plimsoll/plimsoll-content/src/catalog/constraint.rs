//! `olm.constraint`: a tree of predicates over one bundle (RES-8).

use plimsoll_resolve::version::number_for_text;
use serde_json::{Map, Value};

use super::model::{IndexedApi, IndexedConstraint, IndexedPackageRange, IndexedRule};
use super::record::Text;

/// Most bytes of a constraint.
pub const CONSTRAINT_SIZE_MAX: usize = 131_072;
/// Deepest nesting of constraints.
pub const CONSTRAINT_NESTING_MAX: usize = 32;

/// Reads a constraint.
///
/// # Errors
/// A sentence without a stop when the value is not an object of the form that `olm.constraint` has.
pub(super) fn read<'a>(value: &str) -> Result<IndexedConstraint<'a>, String> {
    if value.len() > CONSTRAINT_SIZE_MAX {
        return Err(format!("{} bytes, at most {CONSTRAINT_SIZE_MAX} are read", value.len()));
    }
    // Deeper values than serde_json reads are deeper than CONSTRAINT_NESTING_MAX, too.
    let value: Value = serde_json::from_str(value).map_err(|error| error.to_string())?;
    constraint(&value, 0)
}

fn constraint<'a>(value: &Value, depth: usize) -> Result<IndexedConstraint<'a>, String> {
    const KEYS: [&str; 7] = ["failureMessage", "gvk", "package", "all", "any", "not", "cel"];
    if depth == CONSTRAINT_NESTING_MAX {
        return Err(format!("nested deeper than {CONSTRAINT_NESTING_MAX}"));
    }
    let fields = Fields::of(value, &KEYS)?;
    let rules = KEYS[1..].iter().filter(|key| fields.get(key).is_some()).count();
    if rules == 0 {
        return Err("the constraint is empty".to_owned());
    }
    if rules > 1 {
        return Err("more than one of gvk, package, all, any, not and cel".to_owned());
    }
    let message = fields.text("failureMessage").unwrap_or_default();
    let rule = if let Some(value) = fields.get("gvk") {
        let fields = Fields::of(value, &["group", "version", "kind"])?;
        IndexedRule::Api(IndexedApi {
            group: fields.required("group")?,
            version: fields.required("version")?,
            kind: fields.required("kind")?,
        })
    } else if let Some(value) = fields.get("package") {
        let fields = Fields::of(value, &["packageName", "versionRange"])?;
        IndexedRule::Package(IndexedPackageRange {
            name: fields.required("packageName")?,
            range: fields.required("versionRange")?,
        })
    } else if let Some(value) = fields.get("all") {
        IndexedRule::All(members(value, depth)?)
    } else if let Some(value) = fields.get("any") {
        IndexedRule::Any(members(value, depth)?)
    } else if let Some(value) = fields.get("not") {
        IndexedRule::Not(members(value, depth)?)
    } else {
        let cel = fields.get("cel").unwrap_or(&Value::Null);
        IndexedRule::Cel(Fields::of(cel, &["rule"])?.required("rule")?)
    };
    Ok(IndexedConstraint { message, rule })
}

fn members<'a>(value: &Value, depth: usize) -> Result<Vec<IndexedConstraint<'a>>, String> {
    let fields = Fields::of(value, &["constraints"])?;
    let Some(list) = fields.get("constraints") else { return Ok(Vec::new()) };
    let list = list.as_array().ok_or("`constraints` is not a list")?;
    list.iter().map(|member| constraint(member, depth + 1)).collect()
}

/// The package ranges in a constraint.
pub(super) fn ranges<'c, 'a>(
    constraint: &'c IndexedConstraint<'a>,
    found: &mut Vec<&'c IndexedPackageRange<'a>>,
) {
    match &constraint.rule {
        IndexedRule::Package(range) => found.push(range),
        IndexedRule::All(members) | IndexedRule::Any(members) | IndexedRule::Not(members) => {
            members.iter().for_each(|member| ranges(member, found));
        }
        IndexedRule::Api(_) | IndexedRule::Cel(_) => {}
    }
}

/// The expressions in a constraint.
pub(super) fn rules<'c>(constraint: &'c IndexedConstraint<'_>, found: &mut Vec<&'c str>) {
    match &constraint.rule {
        IndexedRule::Cel(rule) => found.push(rule),
        IndexedRule::All(members) | IndexedRule::Any(members) | IndexedRule::Not(members) => {
            members.iter().for_each(|member| rules(member, found));
        }
        IndexedRule::Api(_) | IndexedRule::Package(_) => {}
    }
}

/// The fields of an object, found whatever the case of their keys; unknown ones are refused.
struct Fields<'v>(&'v Map<String, Value>);

impl<'v> Fields<'v> {
    fn of(value: &'v Value, known: &[&str]) -> Result<Self, String> {
        let object = match value {
            Value::Object(object) => object,
            Value::Null => return Err("the constraint is empty".to_owned()),
            _ => return Err(format!("{value} is not an object")),
        };
        let is_known = |key: &String| known.iter().any(|name| key.eq_ignore_ascii_case(name));
        match object.keys().find(|key| !is_known(key)) {
            Some(unknown) => Err(format!("unknown field \"{unknown}\"")),
            None => Ok(Self(object)),
        }
    }

    fn get(&self, name: &str) -> Option<&'v Value> {
        let mut entries = self.0.iter();
        let (_, value) = entries.find(|(key, _)| key.eq_ignore_ascii_case(name))?;
        (!value.is_null()).then_some(value)
    }

    fn text<'a>(&self, name: &str) -> Option<Text<'a>> {
        self.get(name)?.as_str().map(|text| Text::from(text.to_owned()))
    }

    fn required<'a>(&self, name: &str) -> Result<Text<'a>, String> {
        if let Some(Value::Number(number)) = self.get(name) {
            return Err(format!("`{name}` {}", number_for_text(number)));
        }
        let text = self.text(name).filter(|text| !text.is_empty());
        text.ok_or_else(|| format!("`{name}` is missing or not a text"))
    }
}
