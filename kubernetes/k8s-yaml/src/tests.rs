//! The behaviour table: what Kubernetes makes of each input.

use std::fmt::Write as _;

use serde_json::Value;

use super::{COPIES_MAX, DOCUMENT_SIZE_MAX, NESTING_MAX, YamlErrorKind, first_document, parse};

/// Each document as compact JSON or its error, notes after `#`, one a line.
fn read(text: &str) -> String {
    let mut lines = Vec::new();
    for document in parse(text) {
        let mut line = match &document.value {
            Ok(value) => value.to_string(),
            Err(error) => format!("{}:{}: {error}", error.line, error.column),
        };
        for note in &document.notes {
            let at = note.line.map_or("?".to_owned(), |line| line.to_string());
            write!(line, " # {at}: {}", note.oddity).unwrap();
        }
        lines.push(line);
    }
    lines.join("\n")
}

fn check(text: &str, expected: &str) {
    assert_eq!(read(text), expected, "input: {text:?}");
}

#[test]
fn plain_scalars_are_read_by_yaml_1_1() {
    let words = "[yes, on, Off, y, TRUE, n, tRuE, null, ~, Null, NULL, nUll, '', \"yes\"]";
    check(words, r#"[true,true,false,true,true,false,"tRuE",null,null,null,null,"nUll","","yes"]"#);
    check("[0777, 0o777, 0b11, 08, 1_000, 0x1F, -0777, +1]", "[511,511,3,8,1000,31,-511,1]");
    check(
        "[190:20:30, 12:30, 2001-01-01, 2001-12-14t21:59:43.10-05:00]",
        r#"["190:20:30","12:30","2001-01-01","2001-12-14t21:59:43.10-05:00"]"#,
    );
    check(
        "[4.22.0, 1.2.3.4, 0xZZ, +, 1e, ., .e1, 1_, _1, =, 1e400, 5m, 25%]",
        r#"["4.22.0","1.2.3.4","0xZZ","+","1e",".",".e1",1,"_1","=","1e400","5m","25%"]"#,
    );
    check("[1.0, 1e3, 1.5, .5, 1., 1E+2, -0.0]", "[1,1000,1.5,0.5,1,100,0]");
}

#[test]
fn integers_beyond_64_bits_become_floats() {
    check("18446744073709551616", "1.8446744073709552e+19");
    check("-9223372036854775808", "-9223372036854775808");
    // The shortest digits of the nearest float are an integer that does not fit either.
    check("-9223372036854775809", "-9.223372036854776e+18");
    check("123456789012345678901234567890", "1.2345678901234568e+29");
}

#[test]
fn what_json_cannot_express_is_an_error() {
    check("a: .inf", "1:4: invalid YAML: .inf cannot be expressed in JSON");
    check("a: .nan", "1:4: invalid YAML: .nan cannot be expressed in JSON");
    check("~: 1", "1:1: invalid YAML: a mapping key must be a string, number or boolean");
    check("? [a]\n: 1", "1:3: invalid YAML: a mapping key must be a string, number or boolean");
}

#[test]
fn keys_are_read_like_values() {
    check("y: 2", r#"{"true":2}"#);
    check("n: 1\n1.0: 2\n1e3: 3\n0777: 4\n=: 5", r#"{"1":2,"1000":3,"511":4,"=":5,"false":1}"#);
    check("1e6: 1\n0.00001: 2\n1.5: 3\n'yes': 4", r#"{"1.5":3,"1e+06":1,"1e-05":2,"yes":4}"#);
    check("<<x: 1\n'<<': 2", r#"{"<<":2,"<<x":1}"#);
}

#[test]
fn the_last_of_equal_keys_wins_with_a_note() {
    let note = r#"key "a" occurs twice, the last one counts"#;
    check("a: 1\na: 2\n", &format!(r#"{{"a":2}} # 2: {note}"#));
    check(
        "x: 1\n---\nb:\n  a: 1\n  a: 2\n",
        &format!("{{\"x\":1}}\n{{\"b\":{{\"a\":2}}}} # 5: {note}"),
    );
    check(r#"{"a":1,"a":2}"#, &format!(r#"{{"a":2}} # ?: {note}"#));
}

#[test]
fn merges_override_what_stands_before_them() {
    let base = "b: &b {x: 1, y_: 2}\nc: &c {x: 3, z: 4}\n";
    let rest = r#""b":{"x":1,"y_":2},"c":{"x":3,"z":4}"#;
    check(&format!("{base}d:\n  <<: *b\n"), &format!(r#"{{{rest},"d":{{"x":1,"y_":2}}}}"#));
    check(
        &format!("{base}d:\n  <<: [*b, *c]\n"),
        &format!(r#"{{{rest},"d":{{"x":1,"y_":2,"z":4}}}}"#),
    );
    check(
        &format!("{base}d:\n  <<: *b\n  x: 9\n").replace("x: 9", "w: 9"),
        &format!(r#"{{{rest},"d":{{"w":9,"x":1,"y_":2}}}}"#),
    );
    check(
        &format!("{base}d:\n  x: 9\n  <<: *b\n"),
        &format!(
            r#"{{{rest},"d":{{"x":1,"y_":2}}}} # 5: key "x" occurs twice, the last one counts"#
        ),
    );
    check("<<: 1", "1:5: invalid YAML: `<<` needs a mapping or a list of mappings");
}

#[test]
fn tags_that_yaml_defines_are_honoured_and_others_ignored() {
    check(
        "[!!str 1, !!int \"7\", !!float 2, !!bool \"yes\", !!null \"\"]",
        r#"["1",7,2,true,null]"#,
    );
    check("[!!binary aGk=, !custom x, !custom 1, ! 1]", r#"["hi","x","1","1"]"#);
    check("!!int abc", "1:7: invalid YAML: \"abc\" is not a !!int");
}

#[test]
fn documents_end_at_lines_that_begin_with_three_dashes() {
    check("a: 1\n---\nb: 2\n", "{\"a\":1}\n{\"b\":2}");
    check("--- # first\na: 1\n---   \r\nb: 2", "null\n{\"a\":1}\n{\"b\":2}");
    check("# only a comment\n---\n# another\n", "null\nnull");
    check("a: |\n  x\n  ---\n  y\nb: 1\n", r#"{"a":"x\n---\ny\n","b":1}"#);
    check("a: ---\nb: x---\n", r#"{"a":"---","b":"x---"}"#);
    check("--- {a: 1}", r#"{"a":1}"#);
    check(
        "a: 1\n--- {b: 2}\n",
        "{\"a\":1} # ?: text after the end of the document is ignored, put `---` on a line of its own",
    );
}

#[test]
fn an_error_leaves_the_other_documents_alone() {
    check(
        "a: [1\n---\nb: 1\n---\nc: {\n",
        "1:4: invalid YAML: unclosed bracket '['\n{\"b\":1}\n5:4: invalid YAML: unclosed bracket '{'",
    );
}

#[test]
fn byte_order_marks_line_ends_and_tabs_are_taken_as_they_come() {
    check("\u{feff}a: 1\r\nb: x\r\n", r#"{"a":1,"b":"x"}"#);
    check("a:\t1", r#"{"a":1}"#);
    check("{\n\t\"a\":\t[1]\n}", r#"{"a":[1]}"#);
    check("a: no final newline", r#"{"a":"no final newline"}"#);
    check("", "null");
    assert!(read("a:\n\tb: 1").contains("invalid YAML"));
}

#[test]
fn json_may_stand_where_yaml_does() {
    check(
        r#"{"a": 1.0, "b": [true, null], "c": "\ud83d\ude00\/"}"#,
        "{\"a\":1.0,\"b\":[true,null],\"c\":\"\u{1f600}/\"}",
    );
    check("{\"a\":1}\n{\"b\":2}", "{\"a\":1}\n{\"b\":2}");
    check("{a: yes, b: [1,],}", r#"{"a":true,"b":[1]}"#);
    check("{\"a\":1}\n---\n{\"y\":2}", "{\"a\":1}\n{\"y\":2}");
}

#[test]
fn numbers_come_back_as_they_were_written() {
    let value = parse("33333333333316666666666666").remove(0).value.unwrap();
    let raw = serde_json::to_vec(&value).unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&raw).unwrap(), value);
}

#[test]
fn keys_come_out_sorted() {
    check("b: 1\na: {d: 1, c: 2}\n", r#"{"a":{"c":2,"d":1},"b":1}"#);
}

#[test]
fn nesting_is_bounded_for_yaml_and_json_alike() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let problem = |text: &str| parse(text)[0].value.clone().err().map(|error| error.problem);
    assert_eq!(problem(&nested(NESTING_MAX)), None);
    assert_eq!(problem(&nested(NESTING_MAX + 1)), Some(YamlErrorKind::Nesting));
    assert!(problem(&format!("{{\"a\":{}}}", nested(5_000))).is_some());
    let indented: String = (0..200).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect();
    assert_eq!(problem(&indented), Some(YamlErrorKind::Nesting));
    let value = parse(&nested(NESTING_MAX)).remove(0).value.unwrap();
    let raw = serde_json::to_vec(&value).unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&raw).unwrap(), value);
    // Each alias adds the depth of what it copies.
    let mut deep = "a0: &a0 [x]\n".to_owned();
    for level in 1..200 {
        writeln!(deep, "a{level}: &a{level} [*a{}]", level - 1).unwrap();
    }
    assert_eq!(problem(&deep), Some(YamlErrorKind::Nesting));
}

#[test]
fn alias_bombs_are_refused() {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let aliases = vec![format!("*a{}", level - 1); 9].join(", ");
        writeln!(bomb, "a{level}: &a{level} [{aliases}]").unwrap();
    }
    let problem = |text: &str| parse(text)[0].value.clone().err().map(|error| error.problem);
    assert_eq!(problem(&bomb), Some(YamlErrorKind::Copies));
    let long = format!("a: &a {}\nb: [{}]", "x".repeat(COPIES_MAX / 4), "*a, ".repeat(5));
    assert_eq!(problem(&long), Some(YamlErrorKind::Copies));
    assert_eq!(problem("a: &a [*a]"), Some(YamlErrorKind::RecursiveAlias));
    assert!(problem("a: *unknown").is_some());
}

#[test]
fn documents_beyond_the_limit_are_refused() {
    let text = format!("a: 1\n---\nb: {}\n", "x".repeat(DOCUMENT_SIZE_MAX));
    let documents = parse(&text);
    assert!(documents[0].value.is_ok());
    let error = documents[1].value.clone().unwrap_err();
    assert!(matches!(error.problem, YamlErrorKind::Size(_)), "{error}");
    assert_eq!(error.line, 3);
}

#[test]
fn quoted_scalars_may_go_on_to_the_left_of_their_block() {
    check("a:\n  b: 'x\n  y\n\n  z'\n  c: 1\n", r#"{"a":{"b":"x y\nz","c":1}}"#);
    check("a:\n  - b: \"x\ny's\nz\"\n", r#"{"a":[{"b":"x y's z"}]}"#);
    check("a:\n  b: 'x\n  y'\n  c: 'u\n  v'\n", r#"{"a":{"b":"x y","c":"u v"}}"#);
    check("a:\n  b: 'x\r  y\r\n  z'\n", r#"{"a":{"b":"x y z"}}"#);
    // Lone carriage returns and what follows a quote in vain once made this go in circles.
    assert!(read("\"s\r\0s\nm:- n\n  i: \0\n---\na}\"").contains("invalid YAML"));
    assert!(read("q: 'u\n\u{c}\u{c} \t\r\t\tq: 'u\n\u{c}\u{c}").contains("invalid YAML"));
    check("a: 'x\nb: 1\n", "3:1: invalid YAML: unclosed quote");
}

#[test]
fn many_quoted_scalars_may_go_on_there() {
    const COUNT: usize = 3000;
    let lines: String = (0..COUNT).map(|at| format!("  k{at}: 'x\n  y'\n")).collect();
    let value = parse(&format!("a:\n{lines}")).remove(0).value.expect("it is YAML");
    assert_eq!(value["a"]["k2999"], "x y");
}

#[test]
fn what_only_looks_like_a_quoted_scalar_stays_as_it_is() {
    let expected = r#"{"a":{"p":"b: \"x\ny\n","q":"u v"}}"#;
    check("a:\n  p: |\n    b: \"x\n    y\n  q: 'u\n  v'\n", expected);
    check("a:\n  p: | # b\n    b: \"x\n    y\n  q: 'u\n  v'\n", expected);
    check("a:\n  # b: \"x\n  p: \"b: \\\"x\\ny\\n\"\n  q: 'u\n  v'\n", expected);
    check("a:\n  p: 'it''s\n  x'\n  q: 'u\n  v'\n", r#"{"a":{"p":"it's x","q":"u v"}}"#);
}

#[test]
fn a_quoted_scalar_of_many_lines_there_is_refused() {
    let document = parse(&format!("a:\n  b: 'x\n{}'\n", "y\n".repeat(50_000))).remove(0);
    assert!(matches!(document.value.unwrap_err().problem, YamlErrorKind::Syntax(_)));
}

/// What go.yaml.in/yaml/v2 2.4.4, by sigs.k8s.io/yaml 1.6.0, made of a text.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Recorded {
    text: String,
    /// The value as JSON; absent if the text was refused.
    json: Option<String>,
    /// What it is that we read otherwise.
    differs: Option<String>,
}

/// A value whose numbers are floats.
fn in_floats(value: Value) -> Value {
    match value {
        Value::Number(number) => number.as_f64().into(),
        Value::Array(items) => items.into_iter().map(in_floats).collect(),
        Value::Object(map) => map.into_iter().map(|(key, value)| (key, in_floats(value))).collect(),
        value => value,
    }
}

#[test]
fn texts_are_read_and_refused_as_kubernetes_does() {
    let table: Vec<Recorded> = serde_json::from_str(include_str!("tests/go_yaml.json")).unwrap();
    let mut wrong = String::new();
    for Recorded { text, json, differs } in table {
        let expected =
            json.map(|json| in_floats(serde_json::from_str(&json).expect("the table has JSON")));
        let ours = first_document(&text).value;
        let is_same = ours.clone().ok().map(in_floats) == expected;
        if is_same != differs.is_none() {
            writeln!(wrong, "{text:?}\n  ours {ours:?}\n  recorded {expected:?}").unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn what_kubernetes_refuses_is_an_error_with_its_line() {
    let tab = "invalid YAML: found a tab character that violates indentation";
    check("a: 1\n\t\nb: 2\n", &format!("2:1: {tab}"));
    check("x: 1\n---\na: 'y'\n\t\nb: 2\n", &format!("{{\"x\":1}}\n4:1: {tab}"));
    check("a: 1\nb: \"c\\/d\"\n", "2:1: invalid YAML: found unknown escape character");
    check("%YAML 1.2\na: 1\n", "1:1: invalid YAML: found incompatible YAML document");
}

#[test]
fn many_lines_of_tabs_take_time_in_proportion() {
    let text = format!("a: [x,\n{}]\n", "\t\n".repeat(100_000));
    let read = first_document(&text).value.map(|value| value.to_string());
    assert_eq!(read.expect("it is YAML"), r#"{"a":["x"]}"#);
}
