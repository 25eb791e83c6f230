//! Edits are tables: a text, a field and its value, and the text after it.

use super::{EditError, remove_field, set_field};

#[track_caller]
fn check(text: &str, path: &str, value: &str, expected: &str) {
    let path: Vec<&str> = path.split('|').collect();
    let changed = set_field(text, 0, &path, value);
    assert_eq!(changed.as_deref(), Ok(expected), "of {text:?}");
    let again = set_field(expected, 0, &path, value);
    assert_eq!(again.as_deref(), Ok(expected), "a second time");
}

#[test]
fn a_value_is_replaced_and_everything_else_stays() {
    check(
        "# ours\nspec:\n  version:   1.2.2  # pinned\n  channel: stable\n",
        "spec|version",
        "1.2.9",
        "# ours\nspec:\n  version:   1.2.9  # pinned\n  channel: stable\n",
    );
    check("spec: {version: \"1.0\"}\n", "spec|version", "~1.2", "spec: {version: \"~1.2\"}\n");
    check("spec:\n  version: '1.0'\n", "spec|version", "2.0.0", "spec:\n  version: '2.0.0'\n");
    check(
        "\u{e9}: \u{fc}\nspec: {version: 1.0.0}\n",
        "spec|version",
        "2.0.0",
        "\u{e9}: \u{fc}\nspec: {version: 2.0.0}\n",
    );
    check(
        r#"{"spec": {"version": "1.0.0"}}"#,
        "spec|version",
        "2.0.0",
        r#"{"spec": {"version": "2.0.0"}}"#,
    );
}

#[test]
fn what_yaml_would_read_otherwise_is_quoted() {
    check(
        "spec:\n  version: 1.0.0\n",
        "spec|version",
        ">=1.2, <2",
        "spec:\n  version: \">=1.2, <2\"\n",
    );
    check("spec:\n  version: 1.0.0\n", "spec|version", "1.2", "spec:\n  version: \"1.2\"\n");
    check(
        "spec: {version: 1.0.0}\n",
        "spec|version",
        "~1.2, ~1.3",
        "spec: {version: \"~1.2, ~1.3\"}\n",
    );
}

#[test]
fn a_field_that_is_missing_is_added() {
    check(
        "metadata:\n  name: foo\nspec:\n  # from stable\n  channel: stable\n",
        "spec|version",
        "1.2.9",
        "metadata:\n  name: foo\nspec:\n  # from stable\n  version: 1.2.9\n  channel: stable\n",
    );
    check("spec: {}\n", "spec|version", "1.2.9", "spec: {version: 1.2.9}\n");
    check("spec: {channel: a}\n", "spec|version", "1.2.9", "spec: {version: 1.2.9, channel: a}\n");
    check("kind: A\nspec:\n", "spec|version", "1.2.9", "kind: A\nspec:\n  version: 1.2.9\n");
    check(
        "metadata:\n  name: foo\n",
        "metadata|annotations|olm.io/change-set",
        "a",
        "metadata:\n  annotations:\n    olm.io/change-set: a\n  name: foo\n",
    );
    check(
        "metadata: {name: foo}\n",
        "metadata|labels|a",
        "b",
        "metadata: {labels: {a: b}, name: foo}\n",
    );
}

#[test]
fn fields_of_items_change() {
    check(
        "kind: List\nitems:\n- a: [b]\n- # ours\n  spec:\n    version: 1.0.0 # pinned\n- spec: {}\n",
        "items|[1]|spec|version",
        "2.0.0",
        "kind: List\nitems:\n- a: [b]\n- # ours\n  spec:\n    version: 2.0.0 # pinned\n- spec: {}\n",
    );
    check(
        "items:\n  - [a]\n  - kind: A\n    b: c\n",
        "items|[1]|spec|version",
        "2.0.0",
        "items:\n  - [a]\n  - spec:\n      version: 2.0.0\n    kind: A\n    b: c\n",
    );
    check(
        r#"{"items": [{"spec": {}}, {"spec": {"version": "1.0.0"}}]}"#,
        "items|[1]|spec|version",
        "2.0.0",
        r#"{"items": [{"spec": {}}, {"spec": {"version": "2.0.0"}}]}"#,
    );
    check("'[0]': a\n", "[0]", "b", "'[0]': b\n");
    let path = ["items", "[1]", "a"];
    assert_eq!(set_field("items: [{}]\n", 0, &path, "b"), Err(EditError::Form));
    let removed = remove_field("items:\n- a: b\n- c: d\n  a: b\n", 0, &path);
    assert_eq!(removed.as_deref(), Ok("items:\n- a: b\n- c: d\n"));
    assert_eq!(remove_field("items:\n- a: b\n- a: b\n", 0, &path), Err(EditError::Form));
}

#[test]
fn the_numbered_document_changes() {
    let text = "a: {b: 1.0.0}\n---\n# nothing\n---\na: {b: 1.0.0}\n";
    let changed = set_field(text, 1, &["a", "b"], "2.0.0").expect("it is there");
    assert_eq!(changed, "a: {b: 1.0.0}\n---\n# nothing\n---\na: {b: 2.0.0}\n");
}

#[test]
fn what_cannot_be_changed_is_not() {
    let form = "its form does not allow that: write the field as `KEY: VALUE` on a line of its own";
    let meaning = "something else would change with it, such as the value of an alias: write the \
                   field as `KEY: VALUE` on a line of its own";
    for (text, expected) in [
        ("spec: [a]\n", form),
        ("spec: a\n", form),
        ("- a\n", form),
        ("x: &x {version: 1.0.0}\nspec: *x\n", meaning),
        ("spec: &x {a: b}\nspec2: *x\n", meaning),
        ("spec: {version: &v 1.0.0}\nother: *v\n", meaning),
        ("v: &v 1.0.0\nspec: {version: *v}\n", meaning),
        (
            "spec:\n  version: 1.0.0\n  channel: a\n  version: 1.1.0\n",
            "key \"version\" stands on line 2 and again on line 4: keep one of them",
        ),
        (
            "{\"spec\": {\"version\": \"1.0.0\",\n\"version\": \"1.1.0\"}}",
            "key \"version\" stands on line 1 and again on line 2: keep one of them",
        ),
    ] {
        let error = set_field(text, 0, &["spec", "version"], "2.0.0").expect_err(text);
        assert_eq!(error.to_string(), expected, "{text}");
    }
    assert_eq!(set_field("a: b\n", 1, &["a"], "c"), Err(EditError::NoDocument));
    let error = set_field("a: [\n", 0, &["a"], "c").expect_err("no YAML").to_string();
    assert!(error.starts_with("line "), "{error}");
}

#[test]
fn texts_in_any_style_are_replaced() {
    for (written, expected) in [
        (">-\n    1.0.0\n", "2.0.0\n"),
        (">-  # pinned\n    1.0.0\n", "2.0.0 # pinned\n"),
        ("|\n    1.0.0\n", "2.0.0\n"),
        ("|2-\n    1.0.0\n", "2.0.0\n"),
        (">+\n    1.0.0\n\n", "2.0.0\n\n"),
        (">\n    1.0.0\n    or\n\n    later\n", "2.0.0\n"),
        ("\"1.0\n    .0\" # pinned\n", "\"2.0.0\" # pinned\n"),
        ("'1.0\n    .0'\n", "'2.0.0'\n"),
        ("1.0\n    .0 # pinned\n", "2.0.0 # pinned\n"),
        ("!!str 1.0\n", "!!str 2.0.0\n"),
        ("&v 1.0.0\n", "&v 2.0.0\n"),
        ("\"\"\n", "\"2.0.0\"\n"),
        ("~\n", "2.0.0\n"),
    ] {
        for rest in ["", "  channel: stable\n", "  # from stable\n  channel: stable\n"] {
            let text = format!("spec:\n  version: {written}{rest}");
            let changed = set_field(&text, 0, &["spec", "version"], "2.0.0");
            let expected = format!("spec:\n  version: {expected}{rest}");
            assert_eq!(changed, Ok(expected), "{text:?}");
        }
    }
}

#[test]
fn a_field_is_removed_with_its_line() {
    let path = ["metadata", "annotations", "olm.io/change-set"];
    let check = |text: &str, expected: Option<&str>| {
        assert_eq!(remove_field(text, 0, &path).ok().as_deref(), expected, "of {text:?}");
    };
    check(
        "metadata:\n  annotations:\n    olm.io/change-set: >-\n      x/2\n    a: b\n",
        Some("metadata:\n  annotations:\n    a: b\n"),
    );
    check(
        "metadata:\n  annotations:\n    a: b # kept\n    olm.io/change-set: x/2 # goes\n  name: foo\n",
        Some("metadata:\n  annotations:\n    a: b # kept\n  name: foo\n"),
    );
    check(
        "metadata:\n  annotations:\n    \"olm.io/change-set\": 'x/2'",
        Some("metadata:\n  annotations:\n"),
    );
    check("metadata: {annotations: {olm.io/change-set: x/2}}\n", None);
    check("metadata:\n  annotations: {}\n", None);
}

#[test]
fn lines_that_are_added_end_as_the_others_do() {
    let path = ["spec", "version"];
    let expected = "spec:\r\n  version: 1.2.3\r\n  channel: a\r\n";
    let changed = set_field("spec:\r\n  channel: a\r\n", 0, &path, "1.2.3").expect("a place");
    let lines =
        |text: &str| text.lines().map(str::to_owned).collect::<std::collections::BTreeSet<_>>();
    assert_eq!(lines(&changed), lines(expected));
    assert_eq!(changed.matches('\n').count(), changed.matches("\r\n").count(), "{changed:?}");
}
