//! The rules of `data/defaults.txt`, whose header describes the format. They are parsed when the
//! first object is defaulted.
use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::Value;

use super::functions::{FUNCTIONS, Function};
use super::path::Path;

const DATA: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/data/defaults.txt"));

static RULES: LazyLock<Rules> =
    LazyLock::new(|| Rules::parse(DATA).expect("the tests parse the file of defaults"));

/// The rules of all kinds and parts.
#[derive(Debug)]
struct Rules {
    /// Indices of sections, under group and kind.
    kinds: BTreeMap<&'static str, BTreeMap<&'static str, usize>>,
    /// Indices of the sections for one version only, under group, version and kind.
    versions: Vec<([&'static str; 3], usize)>,
    sections: Vec<Vec<Rule>>,
}

#[derive(Debug)]
struct Rule {
    path: Path,
    action: Action,
}

#[derive(Debug)]
enum Action {
    /// Fills in a field of the values at the path.
    Fill { field: &'static str, default: Value, replaces_zero: bool },
    /// Applies a section to them.
    Part(usize),
    /// Calls a function with them.
    Call(Function),
}

/// Applies the rules of a kind; nothing if it has none.
pub(super) fn apply(group: &str, version: &str, kind: &str, value: &mut Value) {
    let rules = &*RULES;
    if let Some(section) = rules.kinds.get(group).and_then(|kinds| kinds.get(kind)) {
        rules.apply(*section, value);
    }
    for (key, section) in &rules.versions {
        if *key == [group, version, kind] {
            rules.apply(*section, value);
        }
    }
}

impl Rules {
    fn parse(data: &'static str) -> Result<Self, String> {
        // Names first, because a part may come after the sections that use it.
        let names: Vec<&str> = lines(data).filter_map(header).collect();
        let mut rules = Self { kinds: BTreeMap::new(), versions: Vec::new(), sections: Vec::new() };
        for line in lines(data) {
            match header(line) {
                Some(name) => {
                    let index = rules.sections.len();
                    rules.sections.push(Vec::new());
                    rules.register(name, index)?;
                }
                None => {
                    let rule = Rule::parse(line, &names)?;
                    rules.sections.last_mut().ok_or("a rule before all sections")?.push(rule);
                }
            }
        }
        Ok(rules)
    }

    fn register(&mut self, name: &'static str, index: usize) -> Result<(), String> {
        let parts: Vec<&str> = name.split('/').collect();
        let previous = match parts[..] {
            [part] if part.starts_with(|first: char| first.is_ascii_lowercase()) => None,
            [kind] => self.kinds.entry("").or_default().insert(kind, index),
            [group, kind] => self.kinds.entry(group).or_default().insert(kind, index),
            [group, version, kind] => {
                self.versions.push(([group, version, kind], index));
                None
            }
            _ => return Err(format!("{name:?} names neither a kind nor a part")),
        };
        if previous.is_some() { Err(format!("{name:?} is there twice")) } else { Ok(()) }
    }

    fn apply(&self, section: usize, value: &mut Value) {
        for Rule { path, action } in &self.sections[section] {
            path.visit(value, &mut |value| match action {
                Action::Fill { field, default, replaces_zero } => {
                    fill(value, field, default, *replaces_zero);
                }
                Action::Part(section) => self.apply(*section, value),
                Action::Call(function) => function(value),
            });
        }
    }
}

/// The lines of the file other than comments and empty lines.
fn lines(data: &'static str) -> impl Iterator<Item = &'static str> {
    data.lines().filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// The name in the first line of a section.
fn header(line: &'static str) -> Option<&'static str> {
    line.strip_prefix('[')?.strip_suffix(']')
}

impl Rule {
    fn parse(line: &'static str, sections: &[&str]) -> Result<Self, String> {
        let mut words = line.splitn(3, ' ');
        let (Some(path), Some(operator), Some(operand)) =
            (words.next(), words.next(), words.next())
        else {
            return Err(format!("{line:?} is not a rule"));
        };
        if operator == ":" {
            let part = sections.iter().position(|section| *section == operand);
            let function = FUNCTIONS.iter().find(|(name, _)| *name == operand);
            let action = match (part, function) {
                (Some(section), None) => Action::Part(section),
                (None, Some((_, function))) => Action::Call(*function),
                _ => return Err(format!("{operand:?} is not one part or function")),
            };
            return Ok(Self { path: Path::parse(path)?, action });
        }
        let replaces_zero = match operator {
            "=" => false,
            "~" => true,
            _ => return Err(format!("{line:?} has no operator")),
        };
        let (path, field) = Path::parse_field(path)?;
        let default =
            serde_json::from_str(operand).map_err(|error| format!("{line:?}: {error}"))?;
        Ok(Self { path, action: Action::Fill { field, default, replaces_zero } })
    }
}

fn fill(value: &mut Value, field: &str, default: &Value, replaces_zero: bool) {
    let Some(map) = value.as_object_mut() else { return };
    let is_unset = match map.get(field) {
        None | Some(Value::Null) => true,
        // Go cannot tell a zero value from none where the field is not a pointer.
        Some(Value::String(text)) => replaces_zero && text.is_empty(),
        Some(Value::Number(number)) => replaces_zero && number.as_i64() == Some(0),
        Some(Value::Bool(_) | Value::Array(_) | Value::Object(_)) => false,
    };
    if is_unset {
        map.insert(field.to_owned(), default.clone());
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::builtin;
    use crate::builtin::walk::{below, root};

    #[test]
    fn every_function_is_used() {
        let used: BTreeSet<&str> =
            lines(DATA).filter_map(|line| Some(line.split_once(" : ")?.1)).collect();
        for (name, _) in FUNCTIONS {
            assert!(used.contains(name), "{name}");
        }
    }

    #[test]
    fn every_path_is_in_the_schema_of_its_kinds() {
        let mut checked = BTreeSet::new();
        for (group, kinds) in &RULES.kinds {
            for (kind, section) in kinds {
                check_section(group, None, kind, *section, &mut checked);
            }
        }
        for ([group, version, kind], section) in &RULES.versions {
            check_section(group, Some(version), kind, *section, &mut checked);
        }
        let all: BTreeSet<usize> = (0..RULES.sections.len()).collect();
        assert_eq!(checked, all, "every section is a kind's or used by one");
    }

    /// Checks a section against the schemas of a kind in its versions.
    fn check_section(
        group: &str,
        version: Option<&str>,
        kind: &str,
        section: usize,
        checked: &mut BTreeSet<usize>,
    ) {
        let resources = builtin::resources().iter().filter(|resource| {
            resource.group == group
                && resource.kind == kind
                && version.is_none_or(|version| version == resource.version)
        });
        let mut versions = 0;
        for resource in resources {
            let found = builtin::openapi_definitions(group, &resource.version).unwrap_or_default();
            let root = root(&found, resource).expect("the kind has a schema");
            check_rules(&found, root, section, &format!("{group}/{kind}"), checked);
            versions += 1;
        }
        assert!(versions > 0, "{group}/{kind} is not built in");
    }

    fn check_rules(
        definitions: &Value,
        schema: &Value,
        section: usize,
        at: &str,
        checked: &mut BTreeSet<usize>,
    ) {
        checked.insert(section);
        for Rule { path, action } in &RULES.sections[section] {
            let names = path.names();
            let at = format!("{at}.{}", names.join("."));
            let found = names.iter().fold(schema, |schema, name| below(definitions, schema, name));
            assert!(!found.is_null(), "{at} is not in the schema");
            match action {
                Action::Fill { field, .. } => {
                    let found = below(definitions, found, field);
                    assert!(!found.is_null(), "{at}.{field} is not in the schema");
                }
                Action::Part(section) => check_rules(definitions, found, *section, &at, checked),
                Action::Call(_) => {}
            }
        }
    }
}
