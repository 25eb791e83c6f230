//! What Go reads differently from Rust.
use super::*;

/// Checks whether each text matches.
#[track_caller]
fn matches(pattern: &str, cases: &[(&str, bool)]) {
    let regex = compile(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"));
    for (text, expected) in cases {
        assert_eq!(regex.is_match(text), *expected, "{pattern} on {text}");
    }
}

#[test]
fn classes_of_characters_are_those_of_go() {
    matches(r"^\d+$", &[("12", true), ("١٢", false)]);
    matches(r"^[\w.-]+$", &[("a_b.c-1", true), ("é", false)]);
    matches(r"^[^\s]+$", &[("a\u{a0}b", true), ("a b", false)]);
    matches(r"^\p{Lu}\pL*$", &[("Été", true), ("été", false)]);
    matches(r"^[[:alpha:]_]+$", &[("a_", true), ("1", false)]);
    matches(r"^[[a&&b]+$", &[("[&ab", true), ("c", false)]);
    matches(r"^[]a]+$", &[("]a", true), ("b", false)]);
    matches(r"\bfoo\b", &[("a foo b", true), ("afoo", false)]);
}

#[test]
fn braces_and_quotes_are_those_of_go() {
    matches(r"^a{2,3}$", &[("aa", true), ("a", false)]);
    matches(r"^{a}$", &[("{a}", true)]);
    matches(r"^a{,2}$", &[("a{,2}", true), ("aa", false)]);
    matches(r"^\Qa.b\E$", &[("a.b", true), ("axb", false)]);
    matches(r"^\<a\>$", &[("<a>", true)]);
}

#[test]
fn mistakes_are_explained_as_go_explains_them() {
    for (pattern, expected) in [
        ("(", "missing closing ): `(`"),
        ("a)", "unexpected ): `a)`"),
        ("x[a", "missing closing ]: `[a`"),
        ("*a", "missing argument to repetition operator: `*`"),
        ("(?!a)", "invalid or unsupported Perl syntax: `(?!`"),
        ("a{2000}", "invalid repeat count: `{2000}`"),
        ("x{2,1}", "invalid repeat count: `{2,1}`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("[[:foo:]]", "invalid character class range: `[:foo:]`"),
        (r"\y", r"invalid escape sequence: `\y`"),
    ] {
        assert_eq!(check(pattern), Err(format!("error parsing regexp: {expected}")));
    }
    for fine in ["^[a-z]+$", "a*?", "(?:a+)+", "[*+]+", r"\**", "a{2}?"] {
        assert_eq!(check(fine), Ok(()), "{fine}");
    }
}

#[test]
fn brackets_and_escapes_in_classes_are_those_of_go() {
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
        matches(pattern, &[(text, expected)]);
    }
}
