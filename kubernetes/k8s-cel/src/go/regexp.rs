//! Regular expressions as Go reads them.
//!
//! Go's and Rust's engines share their ancestry; what they read differently is translated:
//! `\d`, `\w`, `\s` and `\b` are of ASCII in Go, brackets within brackets are plain characters,
//! and so are braces that are no repetition.
#[cfg(test)]
mod tests;

use regex::{Regex, RegexBuilder};

use super::memo::Memo;

/// How large a compiled pattern may grow, in bytes; ten times what the longest patterns of known
/// definitions need.
const COMPILED_LEN_MAX: usize = 10 << 20;

/// Classes with a name.
const POSIX: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct",
    "space", "upper", "word", "xdigit",
];

/// Compiles a pattern.
///
/// # Errors
/// When Go would not compile the pattern, with Go's message; or when it compiles to more than
/// 10 MiB.
pub fn compile(pattern: &str) -> Result<Regex, String> {
    if let Some(why) = repetitions(pattern) {
        return Err(format!("error parsing regexp: {why}"));
    }
    RegexBuilder::new(&translate(pattern))
        .size_limit(COMPILED_LEN_MAX)
        .build()
        .map_err(|_| format!("error parsing regexp: {}", explain(pattern)))
}

/// Checks that a pattern compiles. Results are remembered.
///
/// # Errors
/// As [`compile`].
pub fn check(pattern: &str) -> Result<(), String> {
    static MEMO: Memo = Memo::new();
    MEMO.error_of(pattern, |pattern| compile(pattern).err()).map_or(Ok(()), Err)
}

/// The highest repeat count in Go.
const REPEAT_MAX: u32 = 1000;

/// The error of repetitions that Go rejects and Rust accepts: nested ones, and high counts.
fn repetitions(pattern: &str) -> Option<String> {
    let mut rest = pattern;
    let mut previous: Option<&str> = None;
    while let Some(character) = rest.chars().next() {
        let mut length = character.len_utf8();
        let mut repetition = None;
        match character {
            '\\' => length += rest[1..].chars().next().map_or(0, char::len_utf8),
            '[' => length = class_end(rest).unwrap_or(length),
            '*' | '+' => repetition = Some(&rest[..1]),
            '?' if previous != Some("(") => repetition = Some(&rest[..1]),
            '{' if is_repetition(rest) => {
                length = rest.find('}').map_or(length, |end| end + 1);
                let (least, most) =
                    rest[1..length - 1].split_once(',').unwrap_or((&rest[1..length - 1], ""));
                let number = |text: &str| text.parse().unwrap_or(u32::MAX);
                let is_wrong = number(least) > REPEAT_MAX
                    || !most.is_empty()
                        && (number(most) > REPEAT_MAX || number(most) < number(least));
                if is_wrong {
                    return Some(format!("invalid repeat count: `{}`", &rest[..length]));
                }
                repetition = Some(&rest[..length]);
            }
            _ => {}
        }
        match (repetition, previous) {
            // A question mark after a repetition makes it lazy, once.
            (Some("?"), Some(before)) if is_operator(before) => previous = Some("lazy"),
            (Some(this), Some(before)) if is_operator(before) || before == "lazy" => {
                let before = if before == "lazy" { "?" } else { before };
                return Some(format!("invalid nested repetition operator: `{before}{this}`"));
            }
            (Some(this), _) => previous = Some(this),
            (None, _) => previous = Some(&rest[..length]),
        }
        rest = &rest[length..];
    }
    None
}

fn is_operator(text: &str) -> bool {
    matches!(text, "*" | "+" | "?") || (text.starts_with('{') && text.len() > 1)
}

/// Go's message for the most frequent syntax errors.
fn explain(pattern: &str) -> String {
    let mut open = 0_u32;
    let mut previous = None;
    let mut rest = pattern;
    while let Some(character) = rest.chars().next() {
        match character {
            '\\' => {
                let Some(escaped) = rest[1..].chars().next() else {
                    return "trailing backslash at end of expression: ``".to_owned();
                };
                let known = "AbBCdDEfnQrstvwWpPxz".contains(escaped) && escaped != 'E';
                if escaped.is_ascii_alphanumeric() && !known && !('0'..='7').contains(&escaped) {
                    return format!("invalid escape sequence: `\\{escaped}`");
                }
                rest = &rest[1 + escaped.len_utf8()..];
                previous = Some(character);
                continue;
            }
            '[' => match class_end(rest) {
                Some(end) => {
                    rest = &rest[end..];
                    previous = Some(']');
                    continue;
                }
                None => return format!("missing closing ]: `{rest}`"),
            },
            '(' => {
                open += 1;
                let is_perl = ["(?=", "(?!", "(?>", "(?#"].iter().any(|s| rest.starts_with(s))
                    || ["(?<=", "(?<!"].iter().any(|s| rest.starts_with(s));
                if is_perl {
                    let length = if rest.starts_with("(?<") { 4 } else { 3 };
                    return format!("invalid or unsupported Perl syntax: `{}`", &rest[..length]);
                }
            }
            ')' if open == 0 => return format!("unexpected ): `{pattern}`"),
            ')' => open -= 1,
            '*' | '+' | '?' if matches!(previous, None | Some('(' | '|')) => {
                let is_group = previous == Some('(') && character == '?';
                if !is_group {
                    return format!("missing argument to repetition operator: `{character}`");
                }
            }
            _ => {}
        }
        previous = Some(character);
        rest = &rest[character.len_utf8()..];
    }
    if let Some(start) = pattern.find("[:") {
        let end = pattern[start..].find(":]").map_or(pattern.len(), |end| start + end + 2);
        return format!("invalid character class range: `{}`", &pattern[start..end]);
    }
    if open > 0 {
        return format!("missing closing ): `{pattern}`");
    }
    format!("invalid character class range: `{pattern}`")
}

/// Where the class that `text` begins with ends.
fn class_end(text: &str) -> Option<usize> {
    let start = if text.starts_with("[^") { 2 } else { 1 };
    // A bracket in the first place is a plain character.
    let mut index = if text[start..].starts_with(']') { start + 1 } else { start };
    while let Some(character) = text[index..].chars().next() {
        match character {
            ']' => return Some(index + 1),
            '\\' => index += 1 + text[index + 1..].chars().next().map_or(0, char::len_utf8),
            '[' if text[index..].starts_with("[:") => {
                index += text[index..].find(":]").map_or(1, |end| end + 2);
            }
            other => index += other.len_utf8(),
        }
    }
    None
}

fn translate(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut rest = pattern;
    while let Some(character) = rest.chars().next() {
        let length = match character {
            '\\' => escape(rest, &mut out),
            '[' => match class_end(rest) {
                Some(end) => {
                    class(&rest[..end], &mut out);
                    end
                }
                None => plain(rest, &mut out),
            },
            '{' if !is_repetition(rest) => {
                out.push_str("\\{");
                1
            }
            _ => plain(rest, &mut out),
        };
        rest = &rest[length..];
    }
    out
}

fn plain(rest: &str, out: &mut String) -> usize {
    let character = rest.chars().next().unwrap_or_default();
    out.push(character);
    character.len_utf8()
}

/// `{2}`, `{2,}`, `{2,3}`.
fn is_repetition(text: &str) -> bool {
    let Some((inside, _)) = text[1..].split_once('}') else { return false };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match inside.split_once(',') {
        None => is_number(inside),
        Some((least, most)) => is_number(least) && (most.is_empty() || is_number(most)),
    }
}

/// Translates the escape at the beginning; returns its length.
fn escape(rest: &str, out: &mut String) -> usize {
    let Some(escaped) = rest[1..].chars().next() else { return plain(rest, out) };
    match escaped {
        'd' => out.push_str("[0-9]"),
        'D' => out.push_str("[^0-9]"),
        'w' => out.push_str("[0-9A-Za-z_]"),
        'W' => out.push_str("[^0-9A-Za-z_]"),
        's' => out.push_str("[\\t\\n\\f\\r ]"),
        'S' => out.push_str("[^\\t\\n\\f\\r ]"),
        'b' => out.push_str("(?-u:\\b)"),
        '<' | '>' => out.push(escaped),
        'Q' => {
            let quoted = rest[2..].split("\\E").next().unwrap_or_default();
            out.push_str(&regex::escape(quoted));
            let end = 2 + quoted.len();
            return if rest[end..].starts_with("\\E") { end + 2 } else { end };
        }
        'p' | 'P' | 'x' if rest[2..].starts_with('{') => {
            let length = rest.find('}').map_or(rest.len(), |end| end + 1);
            out.push_str(&rest[..length]);
            return length;
        }
        _ => {
            out.push('\\');
            out.push(escaped);
        }
    }
    1 + escaped.len_utf8()
}

/// Translates a class in brackets.
fn class(text: &str, out: &mut String) {
    let inner_start = if text.starts_with("[^") { 2 } else { 1 };
    out.push_str(&text[..inner_start]);
    let mut rest = &text[inner_start..text.len() - 1];
    if let Some(after) = rest.strip_prefix(']') {
        out.push_str("\\]");
        rest = after;
    }
    while let Some(character) = rest.chars().next() {
        let named = rest.starts_with("[:").then(|| rest.find(":]")).flatten();
        if let Some(end) = named
            && !POSIX.contains(&rest[2..end].trim_start_matches('^'))
        {
            // Not a class in Go either: left to be rejected.
            out.push_str("[:");
            rest = "";
            continue;
        }
        let length = match (character, named) {
            ('[', Some(end)) => {
                out.push_str(&rest[..end + 2]);
                end + 2
            }
            ('\\', _) => escape(rest, out),
            ('[' | '&' | '~', _) => {
                out.push('\\');
                out.push(character);
                1
            }
            ('-', _) if rest.starts_with("--") => {
                out.push_str("\\-");
                1
            }
            _ => plain(rest, out),
        };
        rest = &rest[length..];
    }
    out.push(']');
}
