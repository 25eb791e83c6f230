//! Faults are read, or refused with the reason.

use std::collections::BTreeSet;
use std::time::Duration;

use super::{Fault, Faults, PackageFault, PackageFaultKind, ScriptedFault};

fn check(text: &str, expected: Result<&[ScriptedFault], &str>) {
    match (Faults::parse(text), expected) {
        (Ok(faults), Ok(expected)) => assert_eq!(faults.operators, expected, "{text}"),
        (Err(error), Err(expected)) => {
            let mut message = error.to_string();
            if let Some(source) = std::error::Error::source(&error) {
                message = format!("{message}: {source}");
            }
            assert!(message.contains(expected), "{text}: {message}");
        }
        (parsed, _) => panic!("{text}: {parsed:?}"),
    }
}

fn fault(fault: Fault) -> ScriptedFault {
    ScriptedFault { operator: "crane".into(), fault, after: Duration::ZERO, release: None }
}

#[test]
fn faults_are_lists_of_what_goes_wrong() {
    let minutes = Fault::Degraded { lasts: Duration::from_secs(90) };
    let later = ScriptedFault {
        after: Duration::from_secs(30),
        release: Some("1.1.0".into()),
        ..fault(Fault::VersionStuck)
    };
    check("[]", Ok(&[]));
    check("- {operator: crane, fault: NeverAvailable}", Ok(&[fault(Fault::NeverAvailable)]));
    check("- {operator: crane, fault: Degraded, minutes: 1.5}", Ok(&[fault(minutes)]));
    check(
        "- operator: crane\n  fault: VersionStuck\n  after: 30s\n  release: 1.1.0\n",
        Ok(&[later]),
    );
    check(
        r#"[{"operator": "crane", "fault": "NotUpgradeable"}]"#,
        Ok(&[fault(Fault::NotUpgradeable)]),
    );
}

#[test]
fn what_is_no_fault_is_refused_with_the_reason() {
    check("operator: crane", Err("failed to parse the faults"));
    check("- {operator: crane, fault: Sunk}", Err("Sunk"));
    check("- {operator: crane, fault: Degraded}", Err("does not say how many minutes"));
    check("- {operator: crane, fault: Degraded, minutes: -1}", Err("cannot last -1 minutes"));
    check("- {operator: crane, fault: VersionStuck, minutes: 1}", Err("only fault Degraded"));
    check("- {operator: crane, fault: VersionStuck, later: 1s}", Err("later"));
    check("- {operator: crane, fault: VersionStuck, after: soon}", Err("not a duration"));
}

#[test]
fn faults_of_packages_are_their_own() {
    let text = "- {package: lantern, fault: KeepsFinalizers, after: 1s, version: 1.1.1}";
    let expected = PackageFault {
        package: "lantern".into(),
        fault: PackageFaultKind::KeepsFinalizers,
        after: Duration::from_secs(1),
        version: Some("1.1.1".into()),
    };
    assert_eq!(Faults::parse(text).expect("it is in order").packages, [expected]);
    check("- {package: lantern, fault: VersionStuck}", Err("package `lantern` cannot have fault"));
    check("- {package: lantern, fault: NeverAvailable, release: 1.0.0}", Err("cannot have fault"));
    check("- {operator: crane, fault: KeepsFinalizers}", Err("operator `crane` cannot have fault"));
    check("- {operator: crane, fault: NeverAvailable, version: '1'}", Err("cannot have fault"));
    check("- {fault: NeverAvailable}", Err("names nothing"));
    check("- {operator: a, package: b, fault: NeverAvailable}", Err("names both"));
}

#[test]
fn operators_and_releases_must_exist() {
    let faults = |release: Option<&str>| {
        let release = release.map(str::to_owned);
        let operators = vec![ScriptedFault { release, ..fault(Fault::VersionStuck) }];
        Faults { operators, packages: Vec::new() }
    };
    let cases = [
        (&["crane"][..], None, None),
        (&["crane"], Some("1.0.0"), None),
        (
            &["beacon", "pilot"],
            None,
            Some("no release has an operator `crane`; there are beacon, pilot"),
        ),
        (&["crane"], Some("2.0.0"), Some("names release `2.0.0`; there are 1.0.0, 1.1.0")),
    ];
    for (operators, release, expected) in cases {
        let operators: BTreeSet<&str> = operators.iter().copied().collect();
        let result = faults(release).check(&operators, &["1.0.0".into(), "1.1.0".into()]);
        let message = result.err().map(|error| error.to_string()).unwrap_or_default();
        assert_eq!(expected.is_none(), message.is_empty(), "{message}");
        assert!(message.contains(expected.unwrap_or_default()), "{message}");
    }
}
