//! Where images are looked for.

use std::fs;

use super::*;

const CONFIGURATION: &str = r#"
unqualified-search-registries = ["docker.io"]

[[registry]]
prefix = "quay.io/ocp"
location = "near.example/copies"
insecure = true

[[registry.mirror]]
location = "first.example:5000/all"

[[registry.mirror]]
location = "second.example/digests"
insecure = true
pull-from-mirror = "digest-only"

[[registry.mirror]]
location = "third.example/tags"
pull-from-mirror = "tag-only"

[[registry]]
location = "quay.io"
mirror-by-digest-only = true

[[registry.mirror]]
location = "fourth.example"

[[registry]]
prefix = "*.lake.example"
location = "pond.example"

[[registry]]
location = "bad.example"
blocked = true
"#;

const DIGEST: &str = "sha256:0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a";

/// The places of a reference, one a line; `!` stands for insecure ones.
#[track_caller]
fn check(configuration: &str, reference: &str, expected: &[&str]) {
    let here = tempfile::tempdir().expect("a directory");
    let path = here.path().join("registries.conf");
    fs::write(&path, configuration).expect("a file");
    let reference: ImageReference = reference.parse().expect("a reference");
    let found = match places(&reference, Some(&path), &|_| None) {
        Ok(places) => places
            .iter()
            .map(|it| format!("{}{}", if it.insecure { "!" } else { "" }, it.reference))
            .collect(),
        Err(error) => vec![error.to_string().replace(&path.display().to_string(), "FILE")],
    };
    assert_eq!(found, expected, "{reference}");
}

#[test]
fn mirrors_come_before_the_location_and_the_longest_prefix_counts() {
    check(
        CONFIGURATION,
        "quay.io/ocp/release:1",
        &[
            "first.example:5000/all/release:1",
            "third.example/tags/release:1",
            "!near.example/copies/release:1",
        ],
    );
    check(
        CONFIGURATION,
        &format!("quay.io/ocp/release@{DIGEST}"),
        &[
            &format!("first.example:5000/all/release@{DIGEST}"),
            &format!("!second.example/digests/release@{DIGEST}"),
            &format!("!near.example/copies/release@{DIGEST}"),
        ],
    );
    check(CONFIGURATION, "quay.io/ocpx/release:1", &["quay.io/ocpx/release:1"]);
    check(
        CONFIGURATION,
        &format!("quay.io/x@{DIGEST}"),
        &[&format!("fourth.example/x@{DIGEST}"), &format!("quay.io/x@{DIGEST}")],
    );
    check(CONFIGURATION, "a.lake.example/x:1", &["pond.example/x:1"]);
    check(CONFIGURATION, "lake.example/x:1", &["lake.example/x:1"]);
    check(CONFIGURATION, "other.example/x", &["other.example/x"]);
    check("", "other.example/x", &["other.example/x"]);
}

#[test]
fn what_cannot_be_used_is_said() {
    check(
        CONFIGURATION,
        "bad.example/x:1",
        &[
            "cannot use the settings of registries in FILE: it blocks the registry of `bad.example/x:1`",
        ],
    );
    check(
        "\n[[registry]]\nlocation = 1\n",
        "a.example/x",
        &[
            "cannot use the settings of registries in FILE: line 3: invalid type: integer `1`, expected a string",
        ],
    );
    check(
        "[[registry]]\nprefix = \"a.example\"\nlocation = \"Nowhere\"\n",
        "a.example/x:1",
        &[
            "cannot use the settings of registries in FILE: location: \"Nowhere/x\" names no registry: write HOST/REPOSITORY, with :TAG or \
           @DIGEST",
        ],
    );
}

#[test]
fn the_file_of_the_user_is_read_unless_another_is_named() {
    let here = tempfile::tempdir().expect("a directory");
    let write = |name: &str, location: &str| {
        let path = here.path().join(name);
        fs::create_dir_all(path.parent().expect("it lies in a directory")).expect("a directory");
        let text = format!("[[registry]]\nprefix = \"a.example\"\nlocation = \"{location}\"\n");
        fs::write(path, text).expect("a file");
    };
    write(".config/containers/registries.conf", "home.example");
    write("named.conf", "named.example");
    let reference: ImageReference = "a.example/x".parse().expect("a reference");
    let host = |variables: &[(&str, &str)]| {
        let environment = |name: &str| {
            let (_, value) = variables.iter().find(|(variable, _)| *variable == name)?;
            Some(here.path().join(value).into_os_string())
        };
        let places = places(&reference, None, &environment).map_err(|error| error.to_string());
        places.map(|it| it[0].reference.host().to_owned())
    };
    assert_eq!(host(&[("HOME", "")]).as_deref(), Ok("home.example"));
    let named = ("CONTAINERS_REGISTRIES_CONF", "named.conf");
    assert_eq!(host(&[("HOME", ""), named]).as_deref(), Ok("named.example"));
    let error = host(&[("CONTAINERS_REGISTRIES_CONF", "none.conf")]).expect_err("no file");
    assert!(error.ends_with("none.conf: No such file or directory (os error 2)"), "{error}");
}
