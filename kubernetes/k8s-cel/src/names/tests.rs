//! Each rule against texts that fit and texts that do not.
use super::*;

/// Checks how many problems each text has.
#[track_caller]
fn check(rule: fn(&str) -> Vec<String>, cases: &[(&str, usize)]) {
    for (text, problems) in cases {
        assert_eq!(rule(text).len(), *problems, "{text}: {:?}", rule(text));
    }
}

#[test]
fn names_of_objects_are_domains_or_labels() {
    let long = "a".repeat(64);
    check(label, &[("0a", 0), ("a-b", 0), ("a.b", 1), ("A", 1), ("", 1), (&long, 1)]);
    check(subdomain, &[("a.b-c.d", 0), ("a..b", 1), ("A", 1), ("", 1), (&long, 0)]);
    check(label_1035, &[("a0", 0), ("0a", 1), ("a.b", 1), ("a-", 1)]);
    check(wildcard_subdomain, &[("*.a.b", 0), ("a.b", 1), ("*", 1)]);
    check(path_segment, &[("system:node", 0), ("a/b%c", 2), ("..", 1)]);
}

#[test]
fn keys_are_qualified_names() {
    let long = "a".repeat(64);
    check(
        qualified,
        &[
            ("a", 0),
            ("example.com/A_b.c", 0),
            ("/a", 1),
            ("a/", 2),
            ("", 2),
            ("a/b/c", 1),
            ("-a", 1),
            ("A/b", 1),
            (&long, 1),
        ],
    );
    check(label_value, &[("", 0), ("A_b.c", 0), ("a b", 1), (&long, 1)]);
    check(config_key, &[("A_b-c.d", 0), ("a/b", 1), ("", 1), (".", 1), ("..", 1), ("..a", 1)]);
}

#[test]
fn variables_and_ports_have_names() {
    check(variable, &[("A.b-1", 0), ("1 a", 0), ("a=", 1), ("é", 1), ("", 1)]);
    check(port, &[("http", 0), ("8-a", 0), ("123", 1), ("a--b", 1), ("-a", 1), ("Http", 1)]);
}

#[test]
fn messages_are_those_that_clients_know() {
    let long = "a".repeat(64);
    assert_eq!(label(&long), ["must be no more than 63 characters"]);
    assert_eq!(label_value(&long), ["must be no more than 63 bytes"]);
    assert_eq!(label("a.b"), ["must not contain dots"]);
    assert_eq!(qualified("a/")[0], "name part must be non-empty");
}
