//! What Go reads differently from Rust.
use super::*;

/// Checks whether each text matches.
#[track_caller]
fn check(pattern: &str, cases: &[(&str, bool)]) {
    let regex = compile(pattern).unwrap_or_else(|| panic!("{pattern} compiles"));
    for (text, expected) in cases {
        assert_eq!(regex.is_match(text), *expected, "{pattern} on {text}");
    }
}

#[test]
fn classes_of_characters_are_those_of_go() {
    check(r"^\d+$", &[("12", true), ("١٢", false)]);
    check(r"^[\w.-]+$", &[("a_b.c-1", true), ("é", false)]);
    check(r"^[^\s]+$", &[("a\u{a0}b", true), ("a b", false)]);
    check(r"^\p{Lu}\pL*$", &[("Été", true), ("été", false)]);
    check(r"^[[:alpha:]_]+$", &[("a_", true), ("1", false)]);
    check(r"^[[a&&b]+$", &[("[&ab", true), ("c", false)]);
    check(r"^[]a]+$", &[("]a", true), ("b", false)]);
    check(r"\bfoo\b", &[("a foo b", true), ("afoo", false)]);
}

#[test]
fn braces_and_quotes_are_those_of_go() {
    check(r"^a{2,3}$", &[("aa", true), ("a", false)]);
    check(r"^{a}$", &[("{a}", true)]);
    check(r"^a{,2}$", &[("a{,2}", true), ("aa", false)]);
    check(r"^\Qa.b\E$", &[("a.b", true), ("axb", false)]);
    check(r"^\<a\>$", &[("<a>", true)]);
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
        assert_eq!(problem(pattern), Some(format!("error parsing regexp: {expected}")));
    }
    for fine in ["^[a-z]+$", "a*?", "(?:a+)+", "[*+]+", r"\**", "a{2}?"] {
        assert_eq!(problem(fine), None, "{fine}");
    }
}
