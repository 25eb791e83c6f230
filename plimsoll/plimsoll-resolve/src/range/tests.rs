//! Both grammars, on texts of our own; `plimsoll-source` holds them against the Go modules.

use semver::Version;

use super::{RangeError, blang, masterminds};
use crate::version::parse_strict;

fn versions(text: &str) -> Vec<Version> {
    text.split(' ').map(|it| parse_strict(it).expect("a version of the test")).collect()
}

/// A test of versions.
type Matches = Box<dyn Fn(&Version) -> bool>;

fn read(grammar: &str, range: &str) -> Result<Matches, RangeError> {
    if grammar == "blang" {
        let range = blang::Range::parse(range)?;
        return Ok(Box::new(move |version| range.matches(version)));
    }
    let range = masterminds::Range::parse(range)?;
    Ok(Box::new(move |version| range.matches(version)))
}

/// `range` accepts all of `inside` and none of `outside`; `None` means that it is no range.
fn check(grammar: &str, range: &str, inside: Option<&str>, outside: &str) {
    match (read(grammar, range), inside) {
        (Ok(matches), Some(inside)) => {
            for version in versions(inside) {
                assert!(matches(&version), "{grammar} `{range}` should match {version}");
            }
            for version in versions(outside) {
                assert!(!matches(&version), "{grammar} `{range}` should not match {version}");
            }
        }
        (Err(_), None) => {}
        (Ok(_), None) => panic!("{grammar} `{range}` should be refused"),
        (Err(error), Some(_)) => panic!("{grammar} `{range}`: {error}"),
    }
}

#[test]
fn dependencies_are_read_as_blang_reads_them() {
    let check = |range, inside, outside| check("blang", range, inside, outside);
    check(">=1.0.0 <2.0.0", Some("1.0.0 1.9.9 2.0.0-0"), "0.9.9 2.0.0");
    check(">=1.0.0 <2.0.0-0", Some("1.9.9"), "2.0.0-0");
    check("1.0.0 || >= 3.0.0", Some("1.0.0 3.0.0 4.0.0"), "2.0.0");
    check("1.x", Some("1.0.0 1.9.9"), "2.0.0 0.9.9");
    check(">1.2.x", Some("1.3.0"), "1.2.9");
    check("<=1.2.x", Some("1.2.9 0.1.0"), "1.3.0");
    check("!=1.2.3", Some("1.2.4"), "1.2.3");
    for refused in ["", "1", "^1.2.3", "1.2", ">=v1.0.0", "|| 1.0.0", "1.0.0 ||", "1.0.0||2.0.0"] {
        check(refused, None, "1.0.0");
    }
}

#[test]
fn ranges_that_mean_something_else_are_reported() {
    for surprising in
        ["1.0.0 - 2.0.0", "! 1.2.3", "^1.x", "~1.2.x", "!=1.x", "1.x.x", ">1.0.0 , <2.0.0"]
    {
        assert!(blang::Range::parse(surprising).is_ok(), "{surprising}");
        assert!(blang::Range::misreading(surprising).is_some(), "{surprising}");
    }
    for plain in [">=1.0.0 <2.0.0", "1.x || 3.0.0", "!=1.2.3", "> 1.0.0"] {
        assert_eq!(blang::Range::misreading(plain), None, "{plain}");
    }
}

#[test]
fn requests_are_read_as_masterminds_reads_them() {
    let check = |range, inside, outside| check("masterminds", range, inside, outside);
    check("1.2.3", Some("1.2.3"), "1.2.4");
    check("1.2", Some("1.2.0 1.2.9"), "1.3.0");
    check("^0.2.3", Some("0.2.3 0.2.9"), "0.3.0 0.2.2");
    check("^0.0.3", Some("0.0.3"), "0.0.4");
    check("~1.2.3, !=1.2.5", Some("1.2.3 1.2.4"), "1.2.5 1.3.0");
    check("1.0.0 - 2.0.0", Some("1.0.0 2.0.0"), "2.0.1");
    check(">=1.0.0-0", Some("1.1.0-rc.1 1.0.0"), "0.9.0");
    check(">=1.0.0", Some("1.0.0"), "1.1.0-rc.1");
    check("2.7.0+1", Some("2.7.0+1"), "2.7.0 2.7.0+2 2.7.0+1.1");
    check("=v2.7.0+1 || 3.0.0", Some("2.7.0+1 3.0.0 3.0.0+2"), "2.7.0+2");
    check("2.7.0", Some("2.7.0 2.7.0+1"), "2.7.1+1");
    check("!=2.7.0+2", Some("2.7.0 2.7.0+1 2.8.0"), "2.7.0+2");
    check("!=2.7.0", Some("2.8.0+1"), "2.7.0 2.7.0+1");
    check(">=2.7.0+1, <3.0.0+5", Some("2.7.0 2.7.0+2"), "3.0.0+1");
    check("v1.x||=>3", Some("1.5.0 3.0.0 4.0.0"), "2.0.0");
    for refused in ["", "==1.0.0", "!1.0.0", "1.0.0 &&", "and"] {
        check(refused, None, "1.0.0");
    }
}
