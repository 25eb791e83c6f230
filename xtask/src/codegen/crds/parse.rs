//! Reads structs and enums from Rust source that rustfmt has formatted.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail};

/// A struct or an enum.
#[derive(Debug, Clone, Default)]
pub(super) struct Type {
    /// First paragraph of the doc comment.
    pub(super) description: String,
    pub(super) markers: Vec<Marker>,
    /// Whether serde takes absent fields from the type's default.
    pub(super) default: bool,
    pub(super) is_enum: bool,
    /// Fields in their order; empty for an enum.
    pub(super) fields: Vec<Field>,
}

/// A field of a struct.
#[derive(Debug, Clone, Default)]
pub(super) struct Field {
    /// Name in JSON.
    pub(super) name: String,
    /// Rust type, as written.
    pub(super) type_: String,
    pub(super) description: String,
    pub(super) markers: Vec<Marker>,
    /// Whether it may be absent when it is read.
    pub(super) default: bool,
    /// Whether it is not always written.
    pub(super) skipped: bool,
    /// Whether its own fields take its place.
    pub(super) flatten: bool,
}

/// `// +name=value` or `// +name:key=value,…`.
#[derive(Debug, Clone, Default)]
pub(super) struct Marker {
    pub(super) name: String,
    pub(super) value: String,
}

impl Marker {
    fn parse(text: &str) -> Self {
        // Arguments follow the name of these after a colon, values that of others after `=`.
        for name in ["resource", "printcolumn", "metadata", "validation:XValidation"] {
            let name = format!("kubebuilder:{name}");
            if let Some(value) = text.strip_prefix(&format!("{name}:")) {
                return Self { name, value: value.to_owned() };
            }
        }
        let (name, value) = text.split_once('=').unwrap_or((text, ""));
        Self { name: name.to_owned(), value: value.to_owned() }
    }

    /// The arguments `key=value,key="value, too"`; quotes are `"` or backticks.
    pub(super) fn arguments(&self) -> Result<BTreeMap<String, String>> {
        let mut arguments = BTreeMap::new();
        let mut rest = self.value.trim();
        while !rest.is_empty() {
            let (key, after) = rest.split_once('=').context("an argument has no value")?;
            let quote = after.chars().next().filter(|it| matches!(it, '"' | '`'));
            let (value, after) = match quote {
                Some(quote) => {
                    let inner = &after[1..];
                    inner.split_once(quote).context("a quote is not closed")?
                }
                None => after.split_at(after.find(',').unwrap_or(after.len())),
            };
            arguments.insert(key.trim().to_owned(), value.to_owned());
            rest = after.trim_start_matches(',').trim_start();
        }
        Ok(arguments)
    }
}

/// What stands above an item and belongs to it.
#[derive(Debug, Default)]
struct Above {
    description: Vec<String>,
    /// Whether the first paragraph of the description is complete.
    ended: bool,
    markers: Vec<String>,
    serde: Vec<String>,
}

impl Above {
    fn description(&self) -> String {
        self.description.join(" ")
    }

    fn markers(&self) -> Vec<Marker> {
        self.markers.iter().map(|text| Marker::parse(text)).collect()
    }

    /// The value of a serde option; empty for one without a value.
    fn option(&self, name: &str) -> Option<&str> {
        self.serde.iter().find_map(|option| {
            let rest = option.strip_prefix(name)?;
            match rest.strip_prefix(" = ") {
                Some(value) => Some(value.trim_matches('"')),
                None => rest.is_empty().then_some(""),
            }
        })
    }

    /// Takes a comment or an attribute; whether the line was one.
    fn takes(&mut self, line: &str) -> bool {
        if let Some(text) = line.strip_prefix("///") {
            self.ended |= text.trim().is_empty();
            if !self.ended {
                self.description.push(text.trim().to_owned());
            }
        } else if let Some(text) = line.strip_prefix("// +") {
            self.markers.push(text.to_owned());
        } else if let Some(text) = line.strip_prefix("//  ") {
            if let Some(marker) = self.markers.last_mut() {
                let glue = if marker.ends_with([',', ':']) { "" } else { " " };
                marker.push_str(glue);
                marker.push_str(text.trim());
            }
        } else if let Some(text) = line.strip_prefix("#[serde(") {
            let options = text.trim_end_matches(")]").split(", ");
            self.serde.extend(options.map(str::to_owned));
        } else {
            return line.starts_with("#[") || line.starts_with("//");
        }
        true
    }
}

/// The public structs and enums of a source, by name.
pub(super) fn parse(source: &str) -> Result<Vec<(String, Type)>> {
    let mut types = Vec::new();
    let mut above = Above::default();
    let mut lines = source.lines();
    while let Some(line) = lines.next() {
        if above.takes(line) {
            continue;
        }
        let it = std::mem::take(&mut above);
        let Some((keyword, name)) = line.strip_prefix("pub ").and_then(|it| it.split_once(' '))
        else {
            continue;
        };
        if !matches!(keyword, "struct" | "enum") {
            continue;
        }
        let (name, rest) = name.split_once(' ').context("a type without fields")?;
        let mut type_ = Type {
            description: it.description(),
            markers: it.markers(),
            default: it.option("default").is_some(),
            is_enum: keyword == "enum",
            fields: Vec::new(),
        };
        if rest == "{" {
            let body: Vec<&str> =
                lines.by_ref().take_while(|line| *line != "}").map(str::trim).collect();
            if !type_.is_enum {
                let camel_case = it.option("rename_all") == Some("camelCase");
                type_.fields =
                    fields(&body, camel_case).with_context(|| format!("in type `{name}`"))?;
            }
        }
        types.push((name.to_owned(), type_));
    }
    Ok(types)
}

fn fields(body: &[&str], camel_case: bool) -> Result<Vec<Field>> {
    let mut fields = Vec::new();
    let mut above = Above::default();
    for line in body {
        if above.takes(line) {
            continue;
        }
        let it = std::mem::take(&mut above);
        let Some((name, type_)) = line.strip_prefix("pub ").and_then(|it| it.split_once(": "))
        else {
            bail!("`{line}` is not a public field");
        };
        let name = match it.option("rename") {
            Some(name) => name.to_owned(),
            None if camel_case => camel(name),
            None => name.to_owned(),
        };
        fields.push(Field {
            name,
            type_: type_.trim_end_matches(',').to_owned(),
            description: it.description(),
            markers: it.markers(),
            default: it.option("default").is_some(),
            skipped: it.option("skip_serializing_if").is_some(),
            flatten: it.option("flatten").is_some(),
        });
    }
    Ok(fields)
}

fn camel(name: &str) -> String {
    let mut words = name.split('_');
    let mut out = words.next().unwrap_or_default().to_owned();
    for word in words {
        out.push_str(&word[..1].to_uppercase());
        out.push_str(&word[1..]);
    }
    out
}
