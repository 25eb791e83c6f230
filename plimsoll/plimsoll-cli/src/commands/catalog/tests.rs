//! The commands on the catalog of the repository.

use std::process::ExitCode;

use clap::Parser;

use super::{CatalogCommand, run};

#[derive(Parser)]
struct Line {
    #[command(subcommand)]
    command: CatalogCommand,
}

/// Returns what a command prints about the catalog `examples/catalog`, or another one.
fn printed(words: &[&str]) -> (ExitCode, String) {
    let root = std::path::absolute("../../examples").expect("a working directory");
    let words = words.iter().map(|word| match word.strip_prefix("examples/") {
        Some(name) => root.join(name).to_string_lossy().into_owned(),
        None => (*word).to_owned(),
    });
    let line = Line::try_parse_from(std::iter::once("catalog".to_owned()).chain(words));
    let mut out = Vec::new();
    let line = line.unwrap_or_else(|error| panic!("{error}"));
    let code = run(line.command, &mut out).unwrap_or_else(|error| panic!("{error:#}"));
    (code, String::from_utf8(out).expect("the output is text"))
}

#[test]
fn the_catalog_of_the_repository_is_in_order() {
    let (code, text) = printed(&["lint", "examples/catalog"]);
    assert_eq!(text, "0 errors, 0 warnings\n");
    assert_eq!(code, ExitCode::SUCCESS);
    // All commands on catalogs accept it.
    assert_eq!(printed(&["lint", "examples/catalog", "--no-cache"]), (code, text));
    let converted = printed(&["convert", "examples/catalog"]);
    assert_eq!(printed(&["convert", "examples/catalog", "--no-cache"]), converted);
    let (_, text) = printed(&["info", "examples/catalog", "--no-cache"]);
    let first = "Packages:  3\nChannels:  5 with 13 entries\nBundles:   10\n";
    assert!(text.starts_with(first), "{text}");
}

#[test]
fn packages_are_found_by_what_they_are_and_provide() {
    let check = |words: &[&str], expected: &[&str]| {
        let mut line = vec!["search", "examples/catalog", "--no-cache"];
        line.extend(words);
        let (_, text) = printed(&line);
        let found: Vec<&str> =
            text.lines().skip(1).filter_map(|it| it.split_whitespace().next()).collect();
        assert_eq!(found, expected, "{words:?}: {text}");
    };
    check(&[], &["lantern", "ledger", "tide"]);
    check(&["traffic", "LIGHTS"], &["lantern"]);
    check(&["queue"], &["tide"]);
    check(&["ledger.example.com"], &["ledger"]);
    check(&["nothing like it"], &[]);
}

#[test]
fn a_package_is_shown_with_channels_versions_and_requirements() {
    let (_, text) = printed(&["show", "examples/catalog", "lantern", "--no-cache"]);
    for expected in [
        "Default channel: stable",
        "candidate   v2.1.0-rc.1",
        "stable      v2.0.0",
        "package ledger >=2.0.0 <3.0.0",
        "deprecated: 1.0.0 loses lights at midnight",
        "lantern.v2.0.0 provides\n  lantern.example.com/v1 Beacon",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    let (_, text) = printed(&["show", "examples/catalog", "lantern@~1", "--no-cache"]);
    assert!(text.contains("\nlantern.v1.1.1 provides\n"), "{text}");
    let (_, json) = printed(&["show", "examples/catalog", "lantern", "--no-cache", "-o", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json).expect("it is JSON");
    assert_eq!(json["channels"][1]["head"], "lantern.v2.0.0");
    let (_, yaml) = printed(&["show", "examples/catalog", "lantern", "--no-cache", "-o", "yaml"]);
    assert!(yaml.contains("defaultChannel: stable"), "{yaml}");
}

#[test]
fn an_update_graph_is_drawn() {
    let drawn = |picture: &str| {
        let line = ["show", "examples/catalog", "lantern", "--no-cache", "--channel", "stable"];
        printed(&[line.as_slice(), &["-o", picture]].concat()).1
    };
    let dot = drawn("dot");
    assert!(dot.contains("lantern.v2.0.0\\nstable\\nfrom >=1.1.0 <2.0.0"), "{dot}");
    assert_eq!(dot.matches(" -> ").count(), 4, "{dot}");
    assert!(drawn("mermaid").contains("skips"));
    assert!(drawn("svg").starts_with("<svg"));
}

#[test]
fn converted_bundles_are_a_catalog_in_order() {
    for format in ["json", "yaml"] {
        let (code, text) = printed(&["convert", "examples/bundles", "-o", format]);
        assert_eq!(code, ExitCode::SUCCESS);
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("catalog");
        std::fs::write(&path, text).expect("a file");
        let (_, text) = printed(&["lint", &path.to_string_lossy()]);
        assert_eq!(text, "0 errors, 0 warnings\n", "{format}");
    }
}
