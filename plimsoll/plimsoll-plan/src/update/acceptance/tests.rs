//! CVS-33 to CVS-38, CVS-41 and CVS-42, as scripts of what happens.

use std::time::Duration;

use plimsoll_api::ConditionStatus;
use plimsoll_api::config::{Release, Update};

use super::{
    Acceptance, AcceptanceCommand, PayloadIdentity, RequestedRelease, Verification, resolve,
};
use crate::update::preconditions::{Facts, Objecting};
use crate::uptime::Uptime;

fn release(version: &str) -> Release {
    Release {
        version: version.to_owned(),
        image: format!("registry/release@sha256:{version}"),
        ..Release::default()
    }
}

/// Runs a script on a cluster at 4.3.2 and compares the output: orders, and after `?` the
/// status and reason of `ReleaseAccepted`.
///
/// `ask V`, `force V`, `clear`, `fetched`, `lost`, `unsigned`, `loaded V`, `broken`, `reconsider` (with
/// Upgradeable as `objects` and `agrees` set it last), `wait SECONDS`, `?`.
#[track_caller]
fn check(script: &str, expected: &str) {
    let mut script_state = Script {
        acceptance: Acceptance::new(&release("4.3.2"), "amd64"),
        ticket: 0,
        objects: false,
        now: Uptime::default(),
    };
    let reported: Vec<String> =
        script.split("; ").filter_map(|line| script_state.step(line)).collect();
    assert_eq!(reported.join("; "), expected, "{script}");
}

struct Script {
    acceptance: Acceptance,
    ticket: u64,
    objects: bool,
    now: Uptime,
}

impl Script {
    fn step(&mut self, line: &str) -> Option<String> {
        let (verb, object) = line.split_once(' ').unwrap_or((line, ""));
        let requested = |force| {
            let Release { version, image, .. } = release(object);
            Some(RequestedRelease { version, image, force })
        };
        let current = release("4.3.2");
        let objecting = Objecting { reason: "OldNodes", message: "WHY" };
        let facts = Facts { objection: self.objects.then_some(&objecting), ..Facts::of(&current) };
        let (ticket, now) = (self.ticket, self.now);
        let acceptance = &mut self.acceptance;
        let order = match verb {
            "ask" => acceptance.ask(requested(false)),
            "force" => acceptance.ask(requested(true)),
            "clear" => acceptance.ask(None),
            "fetched" => acceptance.retrieved(ticket, Ok(Verification::NotSigned), now),
            "unsigned" => {
                let verification = Verification::Failed("WHY".to_owned());
                acceptance.retrieved(ticket, Ok(verification), now)
            }
            "lost" => acceptance.retrieved(ticket, Err("WHY".to_owned()), now),
            "loaded" => {
                let (version, architecture) = (object.to_owned(), "amd64".to_owned());
                acceptance.loaded(
                    ticket,
                    Ok(PayloadIdentity { version, architecture }),
                    &facts,
                    now,
                )
            }
            "broken" => acceptance.loaded(ticket, Err("WHY".to_owned()), &facts, now),
            "reconsider" => acceptance.reconsider(&facts),
            "objects" | "agrees" => {
                self.objects = verb == "objects";
                return None;
            }
            "wait" => {
                self.now = self.now + Duration::from_secs(object.parse().expect("a number"));
                acceptance.retry(self.now)
            }
            _ => return Some(self.condition()),
        };
        self.shown(&order)
    }

    /// Returns the status and the reason of `ReleaseAccepted`.
    fn condition(&self) -> String {
        let (status, reason, _) = self.acceptance.status().condition();
        let status = match status {
            ConditionStatus::True => '+',
            ConditionStatus::False => '-',
            ConditionStatus::Unknown => '?',
        };
        format!("{status}{reason}")
    }

    /// Returns an order as scripts write it; the ticket of a retrieval is kept.
    fn shown(&mut self, order: &AcceptanceCommand) -> Option<String> {
        Some(match order {
            AcceptanceCommand::Nothing => return None,
            AcceptanceCommand::Cancel => "cancel".to_owned(),
            AcceptanceCommand::Retrieve(ticket, requested) => {
                self.ticket = *ticket;
                format!("retrieve {}", requested.version)
            }
            AcceptanceCommand::Load(_) => "load".to_owned(),
            AcceptanceCommand::Accept { accepted_risks, .. } if accepted_risks.is_empty() => {
                "accept".into()
            }
            AcceptanceCommand::Accept { accepted_risks, .. } => format!("accept: {accepted_risks}"),
        })
    }
}

#[test]
fn a_release_goes_step_by_step() {
    check(
        "?; ask 4.3.3; ?; fetched; ?; loaded 4.3.3",
        "+PayloadLoaded; retrieve 4.3.3; ?RetrievePayload; load; ?LoadPayload; accept",
    );
}

#[test]
fn each_step_can_reject_and_clearing_resets() {
    let unverified = "retrieve 4.3.3; -RetrievePayload; cancel; +PayloadLoaded";
    check("ask 4.3.3; unsigned; ?; clear; ?", unverified);
    check("ask 4.3.3; lost; ?; clear; ?", unverified);
    check("ask 4.3.3; fetched; broken; ?", "retrieve 4.3.3; load; -LoadPayload");
    check("ask 4.3.3; fetched; loaded 4.3.4; ?", "retrieve 4.3.3; load; -VerifyPayloadVersion");
    check(
        "objects; ask 4.4.0; fetched; loaded 4.4.0; ?",
        "retrieve 4.4.0; load; -PreconditionChecks",
    );
    check("ask 4.3.3; lost; ask 4.3.2; ?", "retrieve 4.3.3; cancel; +PayloadLoaded");
}

#[test]
fn a_rejected_release_is_tried_again_without_flickering() {
    check(
        "ask 4.3.3; lost; wait 4; wait 1; ?; lost; wait 9; wait 1; fetched; ?; loaded 4.3.3",
        "retrieve 4.3.3; retrieve 4.3.3; -RetrievePayload; retrieve 4.3.3; load; -RetrievePayload; \
         accept",
    );
    check(
        "objects; ask 4.4.0; fetched; loaded 4.4.0; reconsider; ?; agrees; reconsider",
        "retrieve 4.4.0; load; -PreconditionChecks; accept",
    );
}

#[test]
fn force_accepts_with_the_risks_on_record() {
    check(
        "objects; force 4.4.0; unsigned; loaded 4.4.0",
        "retrieve 4.4.0; load; accept: Target release version=\"4.4.0\" \
         image=\"registry/release@sha256:4.4.0\" cannot be verified, but continuing anyway because \
         the update was forced: WHY\n\
         Forced through blocking failures: Precondition \"ClusterVersionUpgradeable\" failed \
         because of \"OldNodes\": WHY",
    );
    // What is broken is not made whole by force.
    check("force 4.3.3; fetched; broken; ?", "retrieve 4.3.3; load; -LoadPayload");
}

#[test]
fn another_request_takes_the_place_of_the_one_under_way() {
    let mut acceptance = Acceptance::new(&release("4.3.2"), "amd64");
    let requested = |version| {
        let Release { version, image, .. } = release(version);
        Some(RequestedRelease { version, image, force: false })
    };
    let AcceptanceCommand::Retrieve(first, _) = acceptance.ask(requested("4.3.3")) else {
        unreachable!()
    };
    assert_eq!(acceptance.ask(requested("4.3.3")), AcceptanceCommand::Nothing);
    let AcceptanceCommand::Retrieve(second, _) = acceptance.ask(requested("4.3.4")) else {
        unreachable!()
    };
    let now = Uptime::default();
    assert_eq!(
        acceptance.retrieved(first, Ok(Verification::NotSigned), now),
        AcceptanceCommand::Nothing
    );
    let order = acceptance.retrieved(second, Ok(Verification::NotSigned), now);
    assert_eq!(order, AcceptanceCommand::Load(second));
}

#[test]
fn a_request_means_an_image_or_an_available_version() {
    let available = [release("4.3.4"), release("4.3.3")];
    let multi = release("4.3.2");
    let check = |version: &str, image: &str, architecture: &str, expected: Option<&str>| {
        let update = Update {
            version: version.to_owned(),
            image: image.to_owned(),
            architecture: architecture.to_owned(),
            force: true,
            ..Update::default()
        };
        let found = resolve(Some(&update), &available, Some(&multi));
        assert!(found.as_ref().is_none_or(|requested| requested.force));
        assert_eq!(found.map(|requested| requested.image).as_deref(), expected, "{update:?}");
    };
    check("4.3.3", "", "", Some("registry/release@sha256:4.3.3"));
    check("", "any@sha256:x", "", Some("any@sha256:x"));
    check("4.3.9", "any@sha256:x", "", Some("any@sha256:x"));
    // Valid if the history has it, but only available updates are looked at.
    check("4.3.1", "", "", None);
    check("4.3.2", "", "Multi", Some("registry/release@sha256:4.3.2"));
    assert_eq!(resolve(None, &available, None), None);
}
