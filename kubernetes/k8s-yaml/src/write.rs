//! Writing values as YAML that reads back as the same values, by the rules of YAML 1.1 and 1.2.
//!
//! Collections are written in block style, lists at the column of their key, as kubectl does. Texts
//! are plain where nothing can take them for anything else, blocks where they have several lines,
//! and quoted otherwise.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::resolve::{Scalar, resolve};

/// Characters besides letters and digits that a plain scalar may have anywhere but at its start.
const PLAIN: &str = " ._/+=@:-";

/// Writes a value as a document, which ends with a line break.
pub fn write(value: &Value) -> String {
    let mut text = String::new();
    match value {
        Value::Object(fields) if !fields.is_empty() => write_fields(fields, 0, &mut text),
        Value::Array(items) if !items.is_empty() => write_items(items, 0, &mut text),
        other => {
            text.push_str(&inline(other));
            text.push('\n');
        }
    }
    text
}

fn write_fields(fields: &Map<String, Value>, column: usize, text: &mut String) {
    for (number, (key, value)) in fields.iter().enumerate() {
        // The first key of a mapping in a list follows the dash.
        if number > 0 || text.ends_with('\n') {
            indent(column, text);
        }
        text.push_str(&scalar(key));
        text.push(':');
        match value {
            Value::Object(fields) if !fields.is_empty() => {
                text.push('\n');
                write_fields(fields, column + 2, text);
            }
            Value::Array(items) if !items.is_empty() => {
                text.push('\n');
                write_items(items, column, text);
            }
            other => write_leaf(other, column, text),
        }
    }
}

fn write_items(items: &[Value], column: usize, text: &mut String) {
    for (number, item) in items.iter().enumerate() {
        if number > 0 || text.ends_with('\n') {
            indent(column, text);
        }
        text.push('-');
        match item {
            Value::Object(fields) if !fields.is_empty() => {
                text.push(' ');
                write_fields(fields, column + 2, text);
            }
            Value::Array(items) if !items.is_empty() => {
                text.push(' ');
                write_items(items, column + 2, text);
            }
            other => write_leaf(other, column, text),
        }
    }
}

/// Writes what has no fields or items, behind a key or a dash at a column.
fn write_leaf(value: &Value, column: usize, text: &mut String) {
    match value {
        Value::String(lines) if is_block(lines) => write_block(lines, column + 2, text),
        other => {
            writeln!(text, " {}", inline(other)).expect("writing to a string does not fail");
        }
    }
}

fn indent(column: usize, text: &mut String) {
    text.extend(std::iter::repeat_n(' ', column));
}

fn inline(value: &Value) -> String {
    match value {
        Value::String(text) => scalar(text),
        other => other.to_string(),
    }
}

/// Whether a text has several lines that a block can show as they are.
fn is_block(text: &str) -> bool {
    let begins = text.starts_with(|first: char| !first.is_whitespace());
    begins && text.contains('\n') && !text.contains(|it: char| it != '\n' && needs_escape(it))
}

fn write_block(block: &str, column: usize, text: &mut String) {
    let (indicator, body) = match block.strip_suffix('\n') {
        None => ("|-", block),
        Some(body) if body.ends_with('\n') => ("|+", body),
        Some(body) => ("|", body),
    };
    text.push(' ');
    text.push_str(indicator);
    text.push('\n');
    for line in body.split('\n') {
        if !line.is_empty() {
            indent(column, text);
            text.push_str(line);
        }
        text.push('\n');
    }
}

fn scalar(text: &str) -> String {
    if is_plain(text) { text.to_owned() } else { quoted(text) }
}

/// Whether a text without quotes is read as itself.
fn is_plain(text: &str) -> bool {
    let begins = |first: char| first.is_ascii_alphanumeric() || "_/".contains(first);
    let inside = |it: char| it.is_ascii_alphanumeric() || PLAIN.contains(it);
    text.starts_with(begins)
        && text.chars().all(inside)
        && !text.ends_with([':', ' '])
        && !text.contains(": ")
        && matches!(resolve(text, true, None), Ok(Scalar::Text))
        && !is_timestamp(text)
}

/// Whether readers of YAML 1.1 may take a text for a date.
fn is_timestamp(text: &str) -> bool {
    text.as_bytes().get(4) == Some(&b'-') && text.bytes().take(4).all(|it| it.is_ascii_digit())
}

/// Whether a character cannot stand in YAML as it is, or not be seen there.
fn needs_escape(character: char) -> bool {
    character.is_control() || "\u{2028}\u{2029}\u{feff}\u{fffe}\u{ffff}".contains(character)
}

/// A text in double quotes, with the escapes that JSON has, too.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            other if needs_escape(other) => {
                write!(quoted, "\\u{:04x}", u32::from(other))
                    .expect("writing to a string does not fail");
            }
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    //! What is written, and that it reads back.

    use serde_json::{Value, json};

    use super::super::parse;
    use super::write;

    fn read_back(text: &str) -> Value {
        let mut documents = parse(text);
        assert_eq!(documents.len(), 1, "{text}");
        documents.remove(0).value.unwrap_or_else(|error| panic!("{error}\n{text}"))
    }

    #[test]
    fn objects_look_as_people_write_them() {
        let object = json!({
            "kind": "ConfigMap",
            "data": {"a": "one\ntwo\n", "b": "true", "c": "x\n\ny", "d": "end\n\n", "e": ""},
            "list": [{"x": 1, "z": [1, "2", []]}, [["in"], {}], "words of a text", null],
        });
        let expected = "data:\n  a: |\n    one\n    two\n  b: \"true\"\n  c: |-\n    x\n\n    y\n  d: |+\n    end\n\n  e: \"\"\n\
            kind: ConfigMap\nlist:\n- x: 1\n  z:\n  - 1\n  - \"2\"\n  - []\n- - - in\n  - {}\n- words of a text\n- null\n";
        assert_eq!(write(&object), expected);
        assert_eq!(read_back(expected), object);
    }

    /// Texts that would not be read back as themselves everywhere without quotes.
    const TEXTS: [&str; 75] = [
        "yes",
        "On",
        "y",
        "~",
        "null",
        "0777",
        "0o17",
        "0x1f",
        "1_000",
        "1e3",
        ".5",
        "1.0",
        "-1",
        "1:30",
        "2026-01-01",
        "2026-01-01T00:00:00Z",
        "<<",
        "=",
        "a: b",
        "a:",
        "a #b",
        "#a",
        "- a",
        "-",
        "--- a",
        "...",
        "? a",
        "*a",
        "&a",
        "!a",
        "|",
        ">",
        "%a",
        "@a",
        "`a`",
        "{a}",
        "[a]",
        "a,b",
        " a",
        "a ",
        "\ta",
        "a\tb",
        "a\rb",
        "a\nb",
        "\na",
        " a\nb",
        "a\n b\n",
        "a\n  \n",
        "a\n---\nb",
        "a\n\n\n",
        "\n",
        "é",
        "\u{85}",
        "\u{2028}",
        "\u{feff}a",
        "\u{0}",
        "\u{7f}",
        "😀",
        "it's",
        "\"q\"",
        "\\",
        "a\\n",
        "a\u{85}\nb",
        "a\n\u{2029}",
        ".nan",
        "-.inf",
        "+1",
        "1.",
        "0b1",
        "0.0.0.0",
        "a\n#b\n",
        "NO",
        "off",
        "nAn",
        "=1",
    ];

    #[test]
    fn every_text_reads_back_as_itself() {
        for text in TEXTS {
            let value = json!({"key": text, text: [text, {text: text}]});
            assert_eq!(read_back(&write(&value)), value, "{text:?}\n{}", write(&value));
        }
        for number in [json!(0), json!(-1), json!(u64::MAX), json!(1.5), json!(1e300)] {
            let value = json!({ "n": number });
            assert_eq!(read_back(&write(&value)), value, "{}", write(&value));
        }
    }
}
