//! Ranges in both grammars, as the two Go modules read them that catalogs and subscriptions are
//! written for. `tests/golden/range-vectors.go` makes such a file.

use std::collections::BTreeSet;
use std::path::Path;

use plimsoll_resolve::range::{blang, masterminds};
use plimsoll_resolve::version::parse_strict;
use semver::Version;
use serde::Deserialize;
use serde_json::Value;

use super::{committed, full_data, read_json};

#[derive(Deserialize)]
struct RangeVectors {
    /// The versions that each range is tried with.
    versions: Vec<String>,
    blang: Vec<RangeVector>,
    masterminds: Vec<RangeVector>,
}

#[derive(Deserialize)]
struct RangeVector {
    range: String,
    /// The versions that the range matches.
    #[serde(default, rename = "match")]
    matches: BTreeSet<String>,
    /// There when the module refuses the range.
    error: Option<Value>,
}

type Matches = Box<dyn Fn(&Version) -> bool>;

fn parse_blang(range: &str) -> Option<Matches> {
    let range = blang::Range::parse(range).ok()?;
    Some(Box::new(move |version| range.matches(version)))
}

fn parse_masterminds(range: &str) -> Option<Matches> {
    let range = masterminds::Range::parse(range).ok()?;
    Some(Box::new(move |version| range.matches_any_build(version)))
}

fn check(path: &Path) {
    let RangeVectors { versions, blang, masterminds } = read_json(path);
    let versions: Vec<(String, Version)> = versions
        .into_iter()
        .map(|text| (text.clone(), parse_strict(&text).expect("a version of the vectors")))
        .collect();
    let mut wrong = Vec::new();
    let mut compare = |vectors: &[RangeVector], parse: fn(&str) -> Option<Matches>| {
        assert!(!vectors.is_empty(), "no vectors");
        for vector in vectors {
            let expected = vector.error.is_none().then(|| vector.matches.clone());
            let found = parse(&vector.range).map(|matches| {
                let inside = versions.iter().filter(|(_, version)| matches(version));
                inside.map(|(text, _)| text.clone()).collect::<BTreeSet<String>>()
            });
            if found != expected {
                wrong.push(format!("`{}`: {found:?}, not {expected:?}", vector.range));
            }
        }
    };
    compare(&blang, parse_blang);
    compare(&masterminds, parse_masterminds);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn ranges_match_what_the_go_modules_match() {
    check(&committed("range-vectors.json"));
}

#[test]
fn ranges_match_what_the_go_modules_match_on_all_vectors() {
    let Some([path]) = full_data(["PLIMSOLL_RANGE_VECTORS"]) else { return };
    check(&path);
}
