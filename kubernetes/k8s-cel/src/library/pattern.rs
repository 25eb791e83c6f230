//! Regular expressions: RE2's notation, for a library whose notation differs in places.
use std::sync::{Arc, OnceLock};

use regex::Regex;

use super::{Outcome, failed};
use crate::Value;
use crate::verdicts::Verdicts;

/// Largest compiled pattern, in octets: what is larger is refused as too large.
const SIZE_MAX: usize = 10 << 20;

pub(super) fn call(
    function: &str,
    arguments: &[Value],
    compiled: Option<&Regex>,
) -> Option<Outcome> {
    let [Value::String(text), Value::String(source), rest @ ..] = arguments else { return None };
    if !matches!(function, "matches" | "find" | "findAll") {
        return None;
    }
    let own;
    let pattern = match compiled {
        Some(pattern) => pattern,
        None => match compile(source) {
            Ok(pattern) => {
                own = pattern;
                &own
            }
            Err(message) if function == "matches" => return failed(message),
            Err(message) => return failed(format!("Illegal regex: {message}")),
        },
    };
    match (function, rest) {
        ("matches", []) => Some(Ok(Value::Bool(pattern.is_match(text)))),
        ("find", []) => {
            Some(Ok(Value::from(pattern.find(text).map_or("", |found| found.as_str()))))
        }
        ("findAll", [] | [Value::Int(_)]) => {
            let limit = match rest {
                [Value::Int(count)] => usize::try_from(*count).unwrap_or(usize::MAX),
                _ => usize::MAX,
            };
            let found = pattern.find_iter(text).take(limit);
            Some(Ok(Value::list(found.map(|found| Value::from(found.as_str())).collect())))
        }
        _ => None,
    }
}

/// A constant pattern, compiled when it is first used: most rules are only ever checked.
#[derive(Clone, Debug)]
pub(crate) struct Constant {
    text: Arc<str>,
    compiled: OnceLock<Option<Regex>>,
}

impl Constant {
    /// A pattern that compiles.
    ///
    /// # Errors
    /// What [`compile`] says of it.
    pub(crate) fn new(text: &Arc<str>) -> Result<Self, String> {
        check(text).map(|()| Self { text: Arc::clone(text), compiled: OnceLock::new() })
    }

    /// The compiled pattern.
    pub(crate) fn regex(&self) -> Option<&Regex> {
        self.compiled.get_or_init(|| compile(&self.text).ok()).as_ref()
    }
}

/// What is wrong with a pattern.
///
/// # Errors
/// What [`compile`] would say.
pub(crate) fn check(pattern: &str) -> Result<(), String> {
    static KNOWN: Verdicts = Verdicts::new();
    KNOWN.of(pattern, |pattern| compile(pattern).err()).map_or(Ok(()), Err)
}

/// Compiles a pattern.
///
/// # Errors
/// What Go says of the pattern, where we know it.
pub(crate) fn compile(pattern: &str) -> Result<Regex, String> {
    regex::RegexBuilder::new(&translate(pattern)).size_limit(SIZE_MAX).build().map_err(|error| {
        let text = error.to_string();
        let last = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
        let reason = match last {
            "unclosed group" => format!("missing closing ): `{pattern}`"),
            "unopened group" => format!("unexpected ): `{pattern}`"),
            "unclosed character class" => {
                let start = pattern.find('[').unwrap_or_default();
                format!("missing closing ]: `{}`", &pattern[start..])
            }
            "repetition operator missing expression" => {
                let operator = pattern.chars().find(|c| "*+?".contains(*c)).unwrap_or('*');
                format!("missing argument to repetition operator: `{operator}`")
            }
            "look-around, including look-ahead and look-behind, is not supported" => {
                let start = pattern.find("(?").unwrap_or_default();
                let end = (start + 3).min(pattern.len());
                let operator = pattern.get(start..end).unwrap_or("(?");
                format!("invalid or unsupported Perl syntax: `{operator}`")
            }
            other => format!("{other}: `{pattern}`"),
        };
        format!("error parsing regexp: {reason}")
    })
}

/// RE2's classes know ASCII only, and brackets within classes stand for themselves.
fn translate(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut characters = pattern.chars().peekable();
    let mut in_class = false;
    let mut class_start = false;
    while let Some(character) = characters.next() {
        let at_start = std::mem::take(&mut class_start);
        match character {
            '\\' => {
                let Some(escaped) = characters.next() else {
                    out.push('\\');
                    break;
                };
                escape(escaped, in_class, &mut characters, &mut out);
            }
            '[' if !in_class => {
                in_class = true;
                class_start = true;
                out.push('[');
            }
            '^' if at_start => {
                class_start = true;
                out.push('^');
            }
            ']' if in_class && at_start => out.push_str("\\]"),
            ']' if in_class => {
                in_class = false;
                out.push(']');
            }
            '[' if characters.peek() == Some(&':') => {
                out.push('[');
                for inner in characters.by_ref() {
                    out.push(inner);
                    if inner == ']' {
                        break;
                    }
                }
            }
            '[' => out.push_str("\\["),
            '&' | '~' if in_class => {
                out.push('\\');
                out.push(character);
            }
            '-' if in_class && characters.peek() == Some(&'-') => out.push_str("\\-"),
            other => out.push(other),
        }
    }
    out
}

fn escape(
    escaped: char,
    in_class: bool,
    characters: &mut std::iter::Peekable<std::str::Chars<'_>>,
    out: &mut String,
) {
    let (inside, negated) = match escaped {
        'd' => ("0-9", false),
        'D' => ("0-9", true),
        'w' => ("0-9A-Za-z_", false),
        'W' => ("0-9A-Za-z_", true),
        's' => ("\\t\\n\\x0C\\r ", false),
        'S' => ("\\t\\n\\x0C\\r ", true),
        'b' | 'B' if !in_class => {
            out.push_str(if escaped == 'b' { "(?-u:\\b)" } else { "\\B" });
            return;
        }
        'Q' if !in_class => {
            let mut quoted = String::new();
            for character in characters.by_ref() {
                quoted.push(character);
                if quoted.ends_with("\\E") {
                    quoted.truncate(quoted.len() - 2);
                    break;
                }
            }
            out.push_str(&regex::escape(&quoted));
            return;
        }
        // RE2 takes any escaped punctuation for itself.
        other if other.is_ascii_punctuation() => {
            out.push_str(&regex::escape(&other.to_string()));
            if in_class && "&~-^]".contains(other) && !out.ends_with(&format!("\\{other}")) {
                out.pop();
                out.push('\\');
                out.push(other);
            }
            return;
        }
        other => {
            out.push('\\');
            out.push(other);
            return;
        }
    };
    match (in_class, negated) {
        (true, false) => out.push_str(inside),
        (_, true) => out.push_str(&format!("[^{inside}]")),
        (false, false) => out.push_str(&format!("[{inside}]")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_mean_what_they_mean_in_re2() {
        let table = [
            (r"^\d+$", "123", true),
            (r"^\d+$", "\u{661}", false),
            (r"^[\w-]+$", "a-b_c", true),
            (r"^[[a]+$", "[a", true),
            (r"^[]a]+$", "]a", true),
            (r"^[^]]+$", "abc", true),
            (r"^[[:alpha:]]+$", "abc", true),
            (r"^[a-z&&b]+$", "a&b", true),
            (r"^\Qa.b\E$", "a.b", true),
            (r"^\Qa.b\E$", "axb", false),
            (r"^[\.\-/]+$", "-./", true),
            (r"\bfoo\b", "a foo b", true),
            (r"^[^\s]+$", "a b", false),
            (r"^\/a\_b$", "/a_b", true),
        ];
        for (pattern, text, expected) in table {
            let compiled = compile(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"));
            assert_eq!(compiled.is_match(text), expected, "{pattern} on {text}");
        }
    }
}
