//! Annotations of overrides, and what is reported about them.

use jiff::Timestamp;
use plimsoll_api::config::ComponentOverride;

use super::{CORRECTION, OVERRIDE_TERMS, Overrides, changes};

const BEFORE: &str = "2026-01-01T00:00:00Z";
const EXPIRY: &str = "2026-02-01T00:00:00Z";

fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn spec(names: &[&str]) -> Vec<ComponentOverride> {
    let entry = |name: &&str| ComponentOverride {
        kind: "Deployment".to_owned(),
        group: "apps".to_owned(),
        namespace: "harbour".to_owned(),
        name: (*name).to_owned(),
        unmanaged: true,
    };
    names.iter().map(entry).collect()
}

/// An entry of the annotation for a deployment.
fn terms(name: &str, rest: &str) -> String {
    format!(r#"{{"kind":"Deployment","group":"apps","namespace":"harbour","name":"{name}"{rest}}}"#)
}

/// Which overrides are in force, and how many things are wrong with the annotation.
fn check(overrides: &[&str], annotation: &str, now: &str, expected: (&[&str], usize)) {
    let overrides = Overrides::parse(&spec(overrides), Some(annotation));
    let in_force: Vec<&str> =
        overrides.in_force(time(now)).map(|terms| terms.name.as_str()).collect();
    let problems = &overrides.problems;
    assert_eq!((in_force.as_slice(), problems.len()), expected, "{annotation}: {problems:?}");
}

#[test]
fn an_override_is_in_force_until_it_expires_and_for_ever_if_its_expiry_cannot_be_read() {
    let expiring = format!("[{}]", terms("crane", &format!(r#","expires":"{EXPIRY}""#)));
    let expiring = expiring.as_str();
    check(&["crane", "pier"], expiring, BEFORE, (&["crane", "pier"], 0));
    check(&["crane", "pier"], expiring, "2026-01-31T23:59:59.999Z", (&["crane", "pier"], 0));
    check(&["crane", "pier"], expiring, EXPIRY, (&["pier"], 0));
    check(&["pier"], expiring, EXPIRY, (&["pier"], 1));
    check(&["crane"], "", EXPIRY, (&["crane"], 0));
    check(&["crane"], "soon", EXPIRY, (&["crane"], 1));
    check(&["crane"], "{}", EXPIRY, (&["crane"], 1));
    for wrong in [r#","expires":"soon""#, r#","expire":"2026-02-01T00:00:00Z""#] {
        check(&["crane"], &format!("[{}]", terms("crane", wrong)), EXPIRY, (&["crane"], 1));
    }
    let one = terms("crane", &format!(r#","expires":"{EXPIRY}""#));
    check(&["crane"], &format!("[{one},7]"), EXPIRY, (&[], 1));
    check(&["crane"], &format!("[{one},{one}]"), EXPIRY, (&[], 1));
}

#[test]
fn what_is_wrong_is_reported_with_its_place() {
    let annotation = format!("[{}, {}]", terms("pier", ""), terms("crane", r#","expires":1"#));
    let overrides = Overrides::parse(&spec(&["crane"]), Some(&annotation));
    insta::assert_snapshot!(overrides.problems.join("\n"), @r#"
    metadata.annotations[plimsoll.io/override-terms][1]: invalid type: integer `1`, expected a timestamp string: correct it; until then this override does not expire
    metadata.annotations[plimsoll.io/override-terms][0]: spec.overrides has no override of deployment.apps "harbour/pier": add one that is the same in kind, group, namespace and name, or remove these terms
    "#);
}

#[test]
fn an_annotation_that_is_no_list_is_reported_with_commands_that_mend_it() {
    let overrides = Overrides::parse(&spec(&["crane"]), Some("soon"));
    assert!(CORRECTION.contains(&format!("{OVERRIDE_TERMS}-`")), "{CORRECTION}");
    insta::assert_snapshot!(overrides.problems.join("\n"), @"metadata.annotations[plimsoll.io/override-terms]: not a JSON list: expected value at line 1 column 1: correct it with `kubectl edit clusterversion version`, or remove it with `kubectl annotate clusterversion version plimsoll.io/override-terms-`; until then overrides do not expire");
}

#[test]
fn an_override_that_manages_is_none() {
    let mut managed = spec(&["crane"]);
    managed[0].unmanaged = false;
    let overrides = Overrides::parse(&managed, None);
    assert_eq!(overrides.reported(time(BEFORE)), None);
    assert_eq!(overrides.entries(), &[]);
}

#[test]
fn terms_are_reported_and_the_next_expiry_is_known() {
    let rest = format!(r#","reason":"waits for a gearbox","expires":"{EXPIRY}""#);
    let annotation = format!("[{}]", terms("crane", &rest));
    let overrides = Overrides::parse(&spec(&["crane", "pier"]), Some(&annotation));
    let now = time(BEFORE);
    let reported = " deployment.apps \"harbour/crane\": waits for a gearbox, until \
                2026-02-01T00:00:00Z.";
    assert_eq!(overrides.reported(now).as_deref(), Some(reported));
    assert_eq!(overrides.reported(time(EXPIRY)).as_deref(), Some(""));
    assert_eq!(overrides.next_expiry(now), Some(time(EXPIRY)));
    assert_eq!(overrides.next_expiry(time(EXPIRY)), None);
    let left = overrides.for_inclusion(time(EXPIRY));
    assert_eq!(left.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(), ["pier"]);
}

#[test]
fn what_became_of_overrides_is_reported_once() {
    let rest = format!(r#","reason":"waits for a gearbox","expires":"{EXPIRY}""#);
    let annotation = format!("[{}]", terms("crane", &rest));
    let overrides = Overrides::parse(&spec(&["crane", "pier"]), Some(&annotation));
    let first = overrides.progress(time(BEFORE));
    let second = overrides.progress(time(EXPIRY));
    let steps = [(&[][..], &first[..]), (&first, &first), (&first, &second), (&second, &[])];
    let reported: Vec<String> = steps
        .into_iter()
        .map(|(before, after)| {
            changes(before, after).into_iter().map(|change| change.message + "\n").collect()
        })
        .collect();
    insta::assert_snapshot!(reported.join("--\n"), @r#"
    deployment.apps "harbour/crane" is unmanaged until 2026-02-01T00:00:00Z: waits for a gearbox
    deployment.apps "harbour/pier" is unmanaged
    --
    --
    deployment.apps "harbour/crane" is managed again: its override expired at 2026-02-01T00:00:00Z, which was: waits for a gearbox
    --
    deployment.apps "harbour/pier" is managed again: its override was removed
    "#);
}
