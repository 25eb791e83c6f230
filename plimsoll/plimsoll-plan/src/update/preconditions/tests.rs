//! CVS-43 to CVS-46, the digests of CVS-38, and CO-15.

use jiff::Timestamp;
use plimsoll_api::ObjectKey;
use plimsoll_api::config::{Release, UpdateHistory, UpdateState};
use plimsoll_api::olm::window::{MaintenanceWindowSpec, WindowTimes};
use plimsoll_api::progress::Deletion;
use plimsoll_content::payload::ReleaseInfo;

use super::{
    BrokenOperator, Facts, Objecting, PreconditionVerdict, REPEATED_DELETIONS, UpdateWindow, check,
    digest, is_declared, judge,
};
use crate::windows::{MaintenanceWindows, NamedWindow};

fn release(version: &str) -> Release {
    Release {
        version: version.to_owned(),
        image: format!("registry/release@sha256:{version}"),
        ..Release::default()
    }
}

/// History from text, newest first: `4.4.0*` is partial.
fn history(text: &str) -> Vec<UpdateHistory> {
    let entry = |text: &str| {
        let partial = text.ends_with('*');
        let Release { version, image, .. } = release(text.trim_end_matches('*'));
        UpdateHistory {
            state: if partial { UpdateState::Partial } else { UpdateState::Completed },
            started_time: Timestamp::UNIX_EPOCH,
            completion_time: None,
            version,
            image,
            verified: false,
            accepted_risks: String::new(),
        }
    };
    text.split_whitespace().map(entry).collect()
}

/// History, objection, overrides, target: the reasons found, those that block with a `!`.
#[track_caller]
fn finds(history_text: &str, objection: &str, overrides: bool, target: &str, expected: &str) {
    let history = history(history_text);
    let current = Release {
        version: history[0].version.clone(),
        image: history[0].image.clone(),
        ..Release::default()
    };
    let objecting = Objecting { reason: objection, message: "WHY" };
    let facts = Facts {
        history: &history,
        objection: (!objection.is_empty()).then_some(&objecting),
        overrides_set: overrides,
        ..Facts::of(&current)
    };
    let found: Vec<String> = check(&facts, &release(target))
        .into_iter()
        .map(|it| format!("{}{}", it.reason, if it.blocking { "!" } else { "" }))
        .collect();
    assert_eq!(found.join(" "), expected, "{history_text} to {target}");
}

#[test]
fn no_update_skips_a_minor_version() {
    finds("4.3.2", "", false, "4.3.3", "");
    finds("4.3.2", "", false, "4.4.0", "");
    finds("4.3.2", "", false, "4.5.0", "MultipleMinorVersionsUpdate!");
    finds("4.3.2", "", false, "5.0.0", "");
    finds("4.3.2", "", false, "5.1.0", "MajorVersionUpdate!");
    finds("5.3.2", "", false, "6.0.0", "MajorVersionUpdate!");
    finds("4.3.2", "", false, "four", "InvalidDesiredVersion!");
    finds("four", "", false, "4.3.2", "InvalidCurrentVersion");
}

#[test]
fn an_update_that_the_graph_declares_leads_to_any_later_version() {
    let finds = |target: &str, declared: bool, listed: bool, objection: &str, expected: &str| {
        let (target, available) = (release(target), [release(target)]);
        let history = history("1.9.2* 1.8.0");
        let objecting = Objecting { reason: objection, message: "WHY" };
        let current = release("1.9.2");
        let facts = Facts {
            history: &history,
            objection: (!objection.is_empty()).then_some(&objecting),
            available: Some(if listed { &available[..] } else { &[] }),
            is_declared: declared,
            ..Facts::of(&current)
        };
        let found = check(&facts, &target);
        let found = found.iter().filter(|it| it.blocking || it.reason.contains("Progress"));
        let found: Vec<&str> = found.map(|it| it.reason.as_str()).collect();
        assert_eq!(found.join(" "), expected, "{}", target.version);
    };
    let warning = "MinorVersionClusterUpdateInProgress";
    for version in ["2.0.0", "1.12.0", "4.0.0"] {
        finds(version, false, true, "", "");
        finds(version, true, false, "", warning);
    }
    finds("2.0.0", false, false, "", "MajorVersionUpdate");
    finds("2.0.0", true, true, "OldNodes", "OldNodes");
    finds("1.0.0", true, true, "", "LowDesiredVersion MinorVersionClusterUpdateInProgress");
}

#[test]
fn a_fix_names_the_broken_release_or_the_one_before() {
    let check = |previous: &str, history_text: &str, expected: bool| {
        let next = ReleaseInfo { previous: vec![previous.to_owned()], ..ReleaseInfo::default() };
        let history = history(history_text);
        assert_eq!(is_declared(&next, &release("1.1.0"), &history), expected, "{previous}");
    };
    check("1.1.0", "1.1.0* 1.0.0", true);
    check("1.0.0", "1.1.0* 1.0.0", true);
    check("0.9.0", "1.1.0* 1.0.0 0.9.0", false);
    check("1.1.0", "1.1.0 1.0.0", true);
    check("1.0.0", "1.1.0 1.0.0", false);
}

#[test]
fn an_objection_holds_up_minor_updates_and_lets_patches_pass() {
    finds("4.3.2", "OldNodes", false, "4.3.3", "");
    finds("4.3.2", "OldNodes", false, "4.4.0", "OldNodes!");
    finds("4.3.2", "OldNodes", false, "5.0.0", "OldNodes!");
    finds("4.3.2", "ClusterVersionOverridesSet", true, "4.3.3", "ClusterVersionOverridesSet");
    finds("4.3.2", "ClusterVersionOverridesSet", true, "4.4.0", "ClusterVersionOverridesSet!");
}

#[test]
fn another_patch_may_be_chosen_on_the_way_to_a_minor_version() {
    let warning = "MinorVersionClusterUpdateInProgress";
    finds("4.4.0* 4.3.2", "UpdateInProgress", false, "4.4.1", warning);
    finds("4.4.0* 4.3.2", "UpdateInProgress", false, "4.5.0", "UpdateInProgress!");
    finds(
        "5.0.0* 4.3.2",
        "UpdateInProgress",
        false,
        "5.0.1",
        "MajorVersionClusterUpdateInProgress",
    );
    finds("4.3.3* 4.3.2", "UpdateInProgress", false, "4.3.4", "");
}

#[test]
fn the_way_back_leads_to_the_previous_patch_only() {
    finds("4.4.2 4.4.1 4.4.0", "", false, "4.4.1", "");
    finds("4.4.2 4.4.1 4.4.0", "", false, "4.4.0", "LowDesiredVersion!");
    finds("4.5.0 4.4.9", "", false, "4.4.9", "LowDesiredVersion!");
    finds("4.4.2", "", false, "4.4.1", "LowDesiredVersion!");
    finds("4.4.2* 4.4.1", "UpdateInProgress", false, "4.4.1", "");
}

#[test]
fn another_minor_version_does_not_delete_what_is_gone_already() {
    let check = |current: &str, target: &str, expected: bool| {
        let key = ObjectKey {
            group: String::new(),
            kind: "ConfigMap".to_owned(),
            namespace: "pier".to_owned(),
            name: "tides".to_owned(),
        };
        let gone = [Deletion::new(&key, "f.yaml", "4.2.0", Timestamp::UNIX_EPOCH)];
        let from = release(current);
        let facts = Facts { repeated: &gone, ..Facts::of(&from) };
        let findings = check(&facts, &release(target));
        let found = findings.iter().find(|it| it.precondition == REPEATED_DELETIONS);
        assert_eq!(found.is_some(), expected, "{current} to {target}");
        let Some(found) = found else { return };
        assert!(found.blocking && found.reason == "ResourceAlreadyDeleted", "{found:?}");
        // What was deleted may be there again by then, so the text does not say that it is not.
        let message = format!(
            "{target} deletes what has been deleted already: configmap \"pier/tides\" (by 4.2.0); \
             patch releases may do so, another minor version is to have dropped these manifests. \
             Go to a release without them, or force this one, which deletes them again if they \
             have come back"
        );
        assert_eq!(found.message, message);
        let PreconditionVerdict::Accepted(risks) = judge(&findings, true) else {
            unreachable!("what is forced is accepted")
        };
        assert!(risks.contains(REPEATED_DELETIONS), "{risks}");
    };
    check("4.3.2", "4.3.3", false);
    check("4.3.2", "4.4.0", true);
    check("4.3.2", "5.0.0", true);
    check("4.3.2", "4.2.9", false);
}

#[test]
fn what_an_operator_requires_is_not_removed_by_any_update() {
    let broken = [BrokenOperator { name: "lamp".to_owned(), message: "WHY".to_owned() }];
    let check = |broken: Result<&[BrokenOperator], &str>, target: &str, expected: (&str, &str)| {
        let current = release("4.3.2");
        let facts = Facts { broken, ..Facts::of(&current) };
        let findings = check(&facts, &release(target));
        let [found] = &findings[..] else { panic!("one finding, not {findings:?}") };
        assert_eq!((found.reason.as_str(), found.message.as_str()), expected);
        assert!(found.blocking, "{found:?}");
    };
    let installed = (
        "IncompatibleOperatorsInstalled",
        "Installed Operators would be broken; update or delete them first. WHY",
    );
    let unknown = (
        "IncompatibleOperatorsUnknown",
        "What installed Operators require of the platform is unknown: WHY; grant get, list and watch on \
         operators.olm.io",
    );
    for target in ["4.3.3", "4.4.0"] {
        check(Ok(&broken), target, installed);
        check(Err("WHY"), target, unknown);
    }
}

#[test]
fn no_update_begins_while_the_maintenance_window_is_closed() {
    let window = |schedule: &str| NamedWindow {
        name: schedule.replace([' ', '*'], ""),
        spec: MaintenanceWindowSpec {
            windows: vec![WindowTimes {
                schedule: schedule.to_owned(),
                duration: "4h".to_owned(),
                ..WindowTimes::default()
            }],
            exclusions: Vec::new(),
        },
    };
    let known: MaintenanceWindows =
        ["0 12 * * *", "0 22 * * *", "often"].map(window).into_iter().collect();
    let check = |windows: &MaintenanceWindows, name: &str, expected: Option<(&str, &str)>| {
        let current = release("4.3.2");
        let facts = Facts {
            window: UpdateWindow::of(name, windows, Timestamp::constant(131_400, 0)),
            ..Facts::of(&current)
        };
        for target in ["4.3.3", "4.4.0"] {
            let findings = check(&facts, &release(target));
            let found = findings.first().map(|it| (it.reason.as_str(), it.message.as_str()));
            assert_eq!(found, expected, "{name}");
            assert!(findings.iter().all(|it| it.blocking && findings.len() == 1), "{findings:?}");
        }
    };
    check(&known, "", None);
    check(&known, "012", None);
    let closed = "MaintenanceWindow 022 is not open, it opens 1970-01-02T22:00:00Z";
    check(&known, "022", Some(("MaintenanceWindowClosed", closed)));
    let missing = "there is no MaintenanceWindow days: create it, or name another one";
    check(&known, "days", Some(("InvalidMaintenanceWindow", missing)));
    let invalid = "MaintenanceWindow often is not accepted: spec.windows[0].schedule: `often` is no schedule: \
                   write minute, hour, day of the month, month, day of the week, such as 50 16 * * 5";
    check(&known, "often", Some(("InvalidMaintenanceWindow", invalid)));
    let unknown = "whether MaintenanceWindow 012 is open is unknown: WHY; grant get, list and watch on \
                   maintenancewindows.olm.io";
    let forbidden = MaintenanceWindows::unknown("WHY");
    check(&forbidden, "012", Some(("MaintenanceWindowsUnknown", unknown)));
    check(&forbidden, "", None);
}

#[test]
fn force_turns_what_blocks_into_an_accepted_risk() {
    let history = history("4.5.0 4.4.9");
    let current = release("4.5.0");
    let facts = Facts {
        history: &history,
        objection: Some(&Objecting { reason: "OldNodes", message: "Nodes are old" }),
        available: Some(&[]),
        ..Facts::of(&current)
    };
    let findings = check(&facts, &release("4.7.0"));
    let reported = "Multiple precondition checks failed:\n\
                * Precondition \"ClusterVersionGiantHop\" failed because of \
                \"MultipleMinorVersionsUpdate\": 4.7.0 is too far from the current target 4.5.0: an \
                update does not lead beyond 4.6\n\
                * Precondition \"ClusterVersionUpgradeable\" failed because of \"OldNodes\": Nodes \
                are old\n\
                * Precondition \"ClusterVersionRecommendedUpdate\" failed because of \
                \"UnknownUpdate\": No update from 4.5.0 to 4.7.0 is known: it is probably neither \
                recommended nor supported";
    assert_eq!(judge(&findings, false), PreconditionVerdict::Rejected(reported.to_owned()));
    let forced = format!("Forced through blocking failures: {reported}");
    assert_eq!(judge(&findings, true), PreconditionVerdict::Accepted(forced));
    assert!(
        matches!(judge(&findings[2..], false), PreconditionVerdict::Accepted(risk) if !risk.is_empty())
    );
    assert_eq!(judge(&[], false), PreconditionVerdict::Accepted(String::new()));
}

#[test]
fn an_image_has_a_digest_if_it_names_exactly_one() {
    assert_eq!(digest("r1@sha256:x"), digest("r2@sha256:x"));
    for image in ["r1:tag", "a@b@c", "", "@sha256:x", "r1@"] {
        assert_eq!(digest(image), None, "{image}");
    }
}
