//! The rules of `data/validation.txt`, whose header describes the format.
//!
//! What is parsed stays for the life of the process, like the text that it is parsed from; therefore
//! it is leaked, and rules that are written in code and rules that are parsed are of one type.
use std::collections::BTreeMap;

use super::check::{Check, Format, PORT, Rule, Rules};
use super::formats;

/// The rules of all kinds and parts.
pub(super) struct ValidationRules {
    /// Under group and kind.
    kinds: BTreeMap<&'static str, BTreeMap<&'static str, KindRules>>,
    parts: BTreeMap<&'static str, Rules>,
}

/// The rules of one kind.
#[derive(Clone, Copy)]
pub(super) struct KindRules {
    pub(super) fields: Rules,
    /// Dotted paths of the fields that an update may not change.
    pub(super) immutable: &'static [&'static str],
}

/// The lines of a section: path, check and operands.
type Lines = Vec<[&'static str; 3]>;

impl ValidationRules {
    /// Reads the file; `functions` are those that it may call.
    ///
    /// # Errors
    /// When a line is malformed, or names a part, function or format that does not exist.
    pub(super) fn parse(
        data: &'static str,
        functions: &[(&'static str, Rule)],
    ) -> Result<Self, String> {
        let sections = sections(data)?;
        let parser = Parser { sections: &sections, functions };
        let mut rules = Self { kinds: BTreeMap::new(), parts: BTreeMap::new() };
        for (name, lines) in &sections {
            let fields = parser.rules(lines)?;
            if is_part(name) {
                rules.parts.insert(name, fields);
                continue;
            }
            let (group, kind) = name.split_once('/').unwrap_or(("", name));
            let immutable =
                lines.iter().filter(|[_, check, _]| *check == "immutable").map(|[path, ..]| *path);
            let immutable = immutable.collect::<Vec<_>>().leak();
            rules.kinds.entry(group).or_default().insert(kind, KindRules { fields, immutable });
        }
        Ok(rules)
    }

    /// The rules of a kind.
    pub(super) fn kind(&self, group: &str, kind: &str) -> KindRules {
        let found = self.kinds.get(group).and_then(|kinds| kinds.get(kind));
        found.copied().unwrap_or(KindRules { fields: &[], immutable: &[] })
    }

    /// The rules of a part; none if there is no such part.
    pub(super) fn part(&self, name: &str) -> Rules {
        self.parts.get(name).copied().unwrap_or_default()
    }
}

/// Whether a section is a part: their names have no capitals, and no kind's name has none.
fn is_part(name: &str) -> bool {
    !name.contains(|character: char| character.is_ascii_uppercase())
}

fn sections(data: &'static str) -> Result<BTreeMap<&'static str, Lines>, String> {
    let mut sections: BTreeMap<&str, Lines> = BTreeMap::new();
    let mut current = None;
    for line in data.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            if sections.insert(name, Lines::new()).is_some() {
                return Err(format!("{name:?} is there twice"));
            }
            current = Some(name);
            continue;
        }
        let (path, rest) = line.split_once(' ').ok_or(format!("{line:?} is not a rule"))?;
        let end = rest.find([' ', ':']).unwrap_or(rest.len());
        let (check, operands) = rest.split_at(end);
        let lines = current.and_then(|name| sections.get_mut(name));
        let lines = lines.ok_or(format!("{line:?} is before all sections"))?;
        lines.push([path, check, operands.trim_start()]);
    }
    Ok(sections)
}

struct Parser<'a> {
    sections: &'a BTreeMap<&'static str, Lines>,
    functions: &'a [(&'static str, Rule)],
}

impl Parser<'_> {
    fn rules(&self, lines: &Lines) -> Result<Rules, String> {
        let mut rules = Vec::new();
        for [path, check, operands] in lines {
            if *check != "immutable" {
                let leaf = self.check(check, operands)?;
                rules.push(wrap(path, leaf));
            }
        }
        Ok(rules.leak())
    }

    fn check(&self, check: &str, operands: &'static str) -> Result<Check, String> {
        let words =
            || -> &'static [&'static str] { operands.split(' ').collect::<Vec<_>>().leak() };
        Ok(match check {
            "required" if operands.is_empty() => Check::Required,
            "required" => Check::RequiredWith(detail(operands)?),
            "one-of" => Check::OneOf(words()),
            "exactly" => Check::Exactly(words()),
            "non-negative" => Check::NonNegative,
            "between" => between(operands)?,
            "port" => PORT,
            "selector" => Check::Selector,
            "labels" => Check::Labels,
            "format" => Check::Text(format_named(operands)?),
            "use" => {
                let lines = self.sections.get(operands).ok_or(format!("no part {operands:?}"))?;
                Check::Struct(self.rules(lines)?)
            }
            "call" => {
                let found = self.functions.iter().find(|(name, _)| *name == operands);
                Check::With(found.ok_or(format!("no function {operands:?}"))?.1)
            }
            _ => return Err(format!("no check {check:?}")),
        })
    }
}

fn detail(text: &'static str) -> Result<&'static str, String> {
    text.strip_prefix(": ").ok_or(format!("{text:?} holds no message"))
}

fn between(text: &'static str) -> Result<Check, String> {
    let malformed = || format!("{text:?} holds no bounds");
    let (bounds, message) = text.split_once(": ").ok_or_else(malformed)?;
    let (least, most) = bounds.split_once(' ').ok_or_else(malformed)?;
    let number = |text: &str| text.parse::<i64>().map_err(|_| malformed());
    Ok(Check::Between(number(least)?, number(most)?, message))
}

fn format_named(name: &str) -> Result<Format, String> {
    let found = formats::FORMATS.iter().find(|(known, _)| *known == name);
    Ok(found.ok_or(format!("no format {name:?}"))?.1)
}

/// The check of a path: that of its last segment, inside of those before it.
fn wrap(path: &'static str, leaf: Check) -> (&'static str, Check) {
    if path == "." {
        return ("", leaf);
    }
    let (rest, last) =
        path.rsplit_once('.').map_or((None, path), |(rest, last)| (Some(rest), last));
    let inner = match (last.strip_suffix("[]"), last.strip_suffix('?')) {
        (Some(name), _) => (name, Check::Items(rules_of(leaf))),
        (None, Some(name)) => (name, Check::Fields(rules_of(leaf))),
        (None, None) => (last, leaf),
    };
    match rest {
        None => inner,
        Some(rest) => wrap(rest, Check::Struct(vec![inner].leak())),
    }
}

/// A check of a whole value as rules.
fn rules_of(check: Check) -> Rules {
    match check {
        Check::Struct(rules) => rules,
        check => vec![("", check)].leak(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::super::{DATA, functions::FUNCTIONS};
    use super::*;
    use crate::builtin;
    use crate::builtin::walk::{below, resolve, root};

    #[test]
    fn every_function_and_format_is_used() {
        let sections = sections(DATA).unwrap();
        let operands = |wanted: &str| -> BTreeSet<&str> {
            let lines = sections.values().flatten();
            lines.filter(|line| line[1] == wanted).map(|line| line[2]).collect()
        };
        let known: BTreeSet<&str> = FUNCTIONS.iter().map(|(name, _)| *name).collect();
        assert_eq!(operands("call"), known);
        let known: BTreeSet<&str> = formats::FORMATS.iter().map(|(name, _)| *name).collect();
        assert_eq!(operands("format"), known);
    }

    #[test]
    fn every_path_is_in_the_schema_and_lists_the_values_of_its_enum() {
        let sections = sections(DATA).unwrap();
        let mut checked = 0;
        for name in sections.keys().filter(|name| !is_part(name)) {
            let (group, kind) = name.split_once('/').unwrap_or(("", name));
            let resource = builtin::resources()
                .iter()
                .find(|resource| resource.group == group && resource.kind == kind)
                .unwrap_or_else(|| panic!("{name} is not built in"));
            let definitions =
                builtin::openapi_definitions(group, &resource.version).unwrap_or_default();
            let schema = root(&definitions, resource).expect("the kind has a schema");
            checked += check_section(&definitions, schema, &sections, name, name);
        }
        assert!(checked > 150, "only {checked} paths were looked up");
    }

    fn check_section(
        definitions: &Value,
        schema: &Value,
        sections: &BTreeMap<&'static str, Lines>,
        name: &str,
        at: &str,
    ) -> usize {
        let mut checked = 0;
        for [path, check, operands] in &sections[name] {
            let segments = path.split('.').filter(|segment| !segment.is_empty());
            let found = segments.fold(schema, |schema, name| below(definitions, schema, name));
            let at = format!("{at}.{path}");
            assert!(!found.is_null(), "{at} is not in the schema");
            checked += 1;
            match *check {
                "use" => checked += check_section(definitions, found, sections, operands, &at),
                "one-of" => {
                    let listed: BTreeSet<&str> = operands.split(' ').collect();
                    let known = resolve(definitions, found)["enum"].as_array();
                    let known: BTreeSet<&str> =
                        known.into_iter().flatten().filter_map(Value::as_str).collect();
                    assert!(known.is_empty() || known == listed, "{at}: {known:?}");
                }
                _ => {}
            }
        }
        checked
    }
}
