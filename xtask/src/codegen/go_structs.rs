//! What the tags of Go structs say about fields: their names in JSON and in protocol buffers.
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

/// The tags of one field.
pub(super) struct Tag {
    /// The name in JSON; empty for a struct whose fields JSON shows in the outer one.
    pub(super) json_name: String,
    /// Whether JSON shows the field when it is zero: it is a pointer, or says so.
    pub(super) keeps_zero: bool,
}

/// The fields of the structs of a package: by name of the struct and number of the field.
pub(super) fn read(package: &Path) -> Result<BTreeMap<String, BTreeMap<i32, Tag>>> {
    let mut structs: BTreeMap<String, BTreeMap<i32, Tag>> = BTreeMap::new();
    for text in sources(package)? {
        let mut current = None;
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("type ") {
                current = rest.split_once(" struct").map(|(name, _)| name.to_owned());
            } else if line == "}" {
                current = None;
            } else if let (Some(name), Some((number, tag))) = (&current, field(line)) {
                structs.entry(name.clone()).or_default().insert(number, tag);
            }
        }
    }
    Ok(structs)
}

fn sources(package: &Path) -> Result<Vec<String>> {
    let mut texts = Vec::new();
    for entry in fs::read_dir(package)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if name.ends_with(".go") && !name.ends_with("_test.go") {
            texts.push(fs::read_to_string(&path)?);
        }
    }
    Ok(texts)
}

/// The number and the tags that a line declares a field with.
fn field(line: &str) -> Option<(i32, Tag)> {
    let line = line.trim();
    if line.starts_with("//") {
        return None;
    }
    let (declaration, tags) = line.split_once('`')?;
    let number = quoted(tags, "protobuf:")?.split(',').nth(1)?.parse().ok()?;
    let mut json = quoted(tags, "json:")?.split(',');
    let json_name = json.next()?.to_owned();
    let omits_zero = json.any(|option| option == "omitempty");
    let go_type = declaration.split_whitespace().last()?;
    Some((number, Tag { json_name, keeps_zero: go_type.starts_with('*') || !omits_zero }))
}

fn quoted<'a>(tags: &'a str, key: &str) -> Option<&'a str> {
    tags.split_once(key)?.1.strip_prefix('"')?.split('"').next()
}

/// The API group that a package declares.
pub(super) fn group_name(package: &Path) -> Result<String> {
    for text in sources(package)? {
        for line in text.lines().filter(|line| line.contains("GroupName ") && line.contains('=')) {
            if let Some(name) = line.split('"').nth(1).filter(|_| !line.contains("GroupVersion")) {
                return Ok(name.to_owned());
            }
        }
        if text.contains("GroupName = admissionregistration.GroupName") {
            break;
        }
    }
    None.with_context(|| format!("{} declares no group", package.display()))
}
