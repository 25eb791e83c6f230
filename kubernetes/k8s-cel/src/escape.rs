//! Names of fields as identifiers of expressions.
//!
//! Upstream: k8s.io/apiserver/pkg/cel/escaping.go: Escape

use crate::parse::RESERVED;

/// The identifier that stands for a field; nothing if none does.
pub fn escape_field_name(name: &str) -> Option<String> {
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let is_literal = matches!(name, "true" | "false" | "null" | "in");
    if is_literal || RESERVED.contains(&name) {
        return Some(format!("__{name}__"));
    }
    let mut out = String::with_capacity(name.len());
    let mut characters = name.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '_' if characters.peek() == Some(&'_') => {
                characters.next();
                out.push_str("__underscores__");
            }
            '.' => out.push_str("__dot__"),
            '-' => out.push_str("__dash__"),
            '/' => out.push_str("__slash__"),
            '_' => out.push('_'),
            other if other.is_ascii_alphanumeric() => out.push(other),
            _ => return None,
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::escape_field_name;

    #[test]
    fn names_become_identifiers() {
        let table = [
            ("plain", Some("plain")),
            ("snake_case", Some("snake_case")),
            ("a__b", Some("a__underscores__b")),
            ("a.b", Some("a__dot__b")),
            ("a-b", Some("a__dash__b")),
            ("a/b", Some("a__slash__b")),
            ("namespace", Some("__namespace__")),
            ("$ref", None),
            ("1st", None),
            ("", None),
        ];
        for (name, expected) in table {
            assert_eq!(escape_field_name(name).as_deref(), expected, "{name}");
        }
    }
}
