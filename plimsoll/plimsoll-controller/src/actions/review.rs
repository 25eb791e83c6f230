//! The decision at admission. It is based on the class and the policies alone, since there is no plan
//! yet.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use plimsoll_api::ACTION;
use plimsoll_operators::actions::attributes::NamedClass;
use plimsoll_operators::actions::check;
use plimsoll_operators::actions::lifecycle::ActionDecision;
use plimsoll_operators::actions::policy::{NamedPolicy, PolicyVerdict};
use plimsoll_operators::actions::report::ActionObject;
use plimsoll_operators::actions::triggers::filter_problem;
use plimsoll_plan::windows::MaintenanceWindows;
use plimsoll_plan::windows::schedule::Schedule;
use tokio::sync::watch;
use tokio::time::timeout;

use super::access::{Access, ListedPolicies};
use super::admission::{AdmissionRequest, Decision, Denial};
use crate::clock::SharedClock;
use crate::view::OperatorsView;
use crate::write::{Writer, chain};

/// How long the API server may take for what a decision needs: less than it waits for the webhook.
const ACCESS_TIMEOUT: Duration = Duration::from_secs(5);

/// The rules that admission decisions are based on.
#[derive(Debug, Clone, Default)]
pub(super) struct AdmissionRules {
    pub(super) classes: Arc<Vec<NamedClass>>,
    /// The policies by name, as they were last observed.
    pub(super) policies: Arc<Vec<NamedPolicy>>,
    /// Number of Actions that have not ended, by namespace.
    pub(super) active: Arc<BTreeMap<String, usize>>,
}

/// Decides on a request for an Action: whether it fits its class, and whether policies allow it if the
/// class is guarded.
pub(super) async fn review(
    client: Client,
    writer: Writer,
    clock: SharedClock,
    rules: watch::Receiver<AdmissionRules>,
    view: watch::Sender<OperatorsView>,
    listed: ListedPolicies,
    request: AdmissionRequest,
) -> Decision {
    if let Some(refused) = too_long(&request) {
        return refused;
    }
    let AdmissionRules { classes, policies, active } = rules.borrow().clone();
    if classes.is_empty() && request.is_guarded {
        return unavailable("the ActionClasses are not read yet".to_owned());
    }
    let Some(class) = NamedClass::find(classes.iter(), &request.action.action_class) else {
        return of_no_class(&request);
    };
    let problems = problems(&request, class);
    if !problems.is_empty() {
        let (denial, message) = (Denial::Invalid, problems.join("; "));
        return Decision { denial, message, ..Decision::default() };
    }
    if !request.is_guarded {
        return Decision { allowed: true, ..Decision::default() };
    }
    let is_dry_run = request.dry_run;
    let mut spec = request.action;
    spec.requester = Some(request.requester);
    let action = ActionObject { namespace: request.namespace, spec, ..ActionObject::default() };
    let active = active.get(&action.namespace).copied().unwrap_or_default();
    let (action, now) = (&action, clock.now());
    // Preconditions and the number of Operators are about a plan.
    let (windows, created) = (&MaintenanceWindows::default(), &BTreeSet::new());
    let judge = |Access { by_hand, policies, labels }: &Access| {
        let by_hand = *by_hand;
        let decision = ActionDecision {
            action,
            class,
            policies,
            windows,
            active,
            created,
            labels,
            by_hand,
            now,
        };
        decision.verdict()
    };
    // What observed policies grant needs no further request to the API server: they are asked again when the
    // Action is executed. A denial has to be of the policies that there are now.
    let judged = async {
        let observed = Access::observed(&client, policies, action).await.ok();
        if let Some(granted) = observed.as_ref().map(judge).filter(|it| it.granted.is_ok()) {
            return Ok(granted);
        }
        let access =
            Access::ask_unplanned(&client, &writer, &listed, action, class, observed).await?;
        Ok::<_, kube::Error>(judge(&access))
    };
    let verdict = match timeout(ACCESS_TIMEOUT, judged).await {
        Ok(Ok(verdict)) => verdict,
        failed => {
            let error = match failed {
                Ok(Err(error)) => chain(&error),
                _ => format!("no answer in {} s", ACCESS_TIMEOUT.as_secs()),
            };
            return unavailable(format!("what the requester may do is not known: {error}"));
        }
    };
    if !is_dry_run {
        count_denial(&verdict, &view);
    }
    decision(verdict)
}

/// Counts the decisions on a request that is denied. Those on one that is granted are counted when its Action has them.
fn count_denial(verdict: &PolicyVerdict, view: &watch::Sender<OperatorsView>) {
    if verdict.granted.is_err() {
        view.send_modify(|view| verdict.decisions.iter().for_each(|it| view.policy_decided(it)));
    }
}

/// Returns the decision for a verdict.
fn decision(verdict: PolicyVerdict) -> Decision {
    let decided = verdict.decisions.iter().map(|it| {
        let what = if it.allowed { "allowed" } else { "denied" };
        let policy = if it.policy.is_empty() { "requester" } else { &it.policy };
        let rule = if it.rule.is_empty() { String::new() } else { format!(" by {}", it.rule) };
        (format!("{}-{policy}", it.mode.to_lowercase()), format!("{what}{rule}: {}", it.message))
    });
    Decision {
        allowed: verdict.granted.is_ok(),
        denial: Denial::Forbidden,
        warnings: verdict.warnings().collect(),
        audit: decided.collect(),
        message: verdict.granted.err().map(|it| it.message).unwrap_or_default(),
    }
}

/// Denies a request for an Action whose spec is too long, whatever its class and whoever sends it:
/// every decision would copy it. `None` if it is not.
fn too_long(request: &AdmissionRequest) -> Option<Decision> {
    let failure = check::length_failure(&request.action)?;
    let message = match request.kind == ACTION.kind {
        true => failure.message,
        false => failure.message.replacen("spec", "spec.template", 1),
    };
    Some(Decision { denial: Denial::Invalid, message, ..Decision::default() })
}

/// Returns everything that is wrong with a request, whoever sends it. Nothing is said about what is
/// requested in the name of others, as from a template: its Action fails, and its status says why.
fn problems(request: &AdmissionRequest, class: &NamedClass) -> Vec<String> {
    if request.user.username != request.requester.username {
        return Vec::new();
    }
    let of_action = check::request(&request.action, class).into_iter().map(|it| it.message);
    let is_template = request.kind != ACTION.kind;
    let at = |message: String| match is_template {
        // Every message names fields of an Action.
        true => message.replace("spec.", "spec.template."),
        false => message,
    };
    let mut problems: Vec<String> = of_action.map(at).collect();
    if let Some((schedule, zone)) = &request.schedule {
        if let Err(why) = Schedule::parse(schedule, "") {
            problems.push(format!("spec.schedule: {why}"));
        } else if let Err(why) = Schedule::parse(schedule, zone) {
            problems.push(format!("spec.timeZone: {why}"));
        }
    }
    problems.extend(filter_problem(&request.filter));
    problems
}

/// Denies a request about which cannot be decided yet.
fn unavailable(message: String) -> Decision {
    Decision { denial: Denial::Unavailable, message, ..Decision::default() }
}

/// Decides on a request whose class is not known. It waits for the class, unless policies are about
/// it.
fn of_no_class(request: &AdmissionRequest) -> Decision {
    let message = format!("there is no ActionClass {}", request.action.action_class);
    if request.is_guarded {
        return Decision { message, ..Decision::default() };
    }
    Decision { allowed: true, warnings: vec![message], ..Decision::default() }
}

#[cfg(test)]
mod tests {
    //! Tests of what is wrong with a request, whoever sends it.

    use std::convert::Infallible;

    use http::{Request, Response};
    use kube::client::Body;
    use plimsoll_api::olm::action::{ActionClassSpec, ActionSpec, PolicyDecision};
    use plimsoll_api::{CRON_ACTION, Reason};
    use plimsoll_operators::actions::ActionFailure;
    use plimsoll_operators::actions::attributes::EffectiveAction;
    use plimsoll_operators::actions::plan::Exactness;
    use plimsoll_operators::actions::policy::Grant;
    use serde_json::json;

    use super::*;
    use crate::clock::SystemClock;

    /// Checks what is wrong with a request for Actions of a class with the attribute `package`.
    #[track_caller]
    fn check(kind: &str, schedule: Option<(&str, &str)>, channel: &str, expected: &[&str]) {
        let spec = ActionClassSpec {
            attributes: vec!["package".to_owned()],
            ..ActionClassSpec::default()
        };
        let class = NamedClass::new("a", spec);
        let request = AdmissionRequest {
            kind: kind.to_owned(),
            schedule: schedule.map(|(schedule, zone)| (schedule.to_owned(), zone.to_owned())),
            action: ActionSpec { channel: channel.to_owned(), ..ActionSpec::default() },
            ..AdmissionRequest::default()
        };
        let found = problems(&request, &class);
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for (found, expected) in found.iter().zip(expected) {
            assert!(found.starts_with(expected), "{found}");
        }
    }

    #[test]
    fn problems_name_the_field_to_change() {
        check(ACTION.kind, None, "", &[]);
        check(ACTION.kind, None, "c", &["spec.channel: "]);
        check("RetryAction", None, "c", &["spec.template.channel: "]);
        let cron = CRON_ACTION.kind;
        check(cron, Some(("0 3 * * *", "Europe/Madrid")), "", &[]);
        check(cron, Some(("often", "Europe/Madrid")), "c", &["spec.template.", "spec.schedule: "]);
        check(cron, Some(("0 3 * * *", "Nowhere")), "", &["spec.timeZone: "]);
    }

    #[test]
    fn what_policies_deny_is_counted_and_what_they_grant_is_left_to_its_action() {
        let view = watch::Sender::new(OperatorsView::default());
        let denied = PolicyDecision {
            policy: "dev".to_owned(),
            mode: "Enforce".to_owned(),
            rule: "packages".to_owned(),
            ..PolicyDecision::default()
        };
        let verdict = |granted: Result<Grant, ActionFailure>| PolicyVerdict {
            decisions: vec![denied.clone()],
            granted,
        };
        let granted = Grant {
            action: EffectiveAction::default(),
            approval: None,
            exact: Exactness::default(),
        };
        count_denial(&verdict(Ok(granted)), &view);
        assert!(view.borrow().policy_decisions.is_empty());
        count_denial(&verdict(Err(ActionFailure::new(Reason::PolicyDenied, "no"))), &view);
        let counted = ["dev", "enforce", "denied", "packages"].map(str::to_owned);
        assert_eq!(view.borrow().policy_decisions, BTreeMap::from([(counted, 1)]));
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_is_refused_for_now_while_the_api_server_does_not_answer() {
        let service = tower::service_fn(|_: Request<Body>| {
            std::future::pending::<Result<Response<Body>, Infallible>>()
        });
        let client = Client::new(service, "default");
        let class = NamedClass::new("a", ActionClassSpec::default());
        let rules = AdmissionRules { classes: Arc::new(vec![class]), ..AdmissionRules::default() };
        let action = ActionSpec { action_class: "a".to_owned(), ..ActionSpec::default() };
        let request = AdmissionRequest { action, is_guarded: true, ..AdmissionRequest::default() };
        let decision = review(
            client.clone(),
            Writer::new(client),
            Arc::new(SystemClock),
            watch::channel(rules).1,
            watch::Sender::new(OperatorsView::default()),
            ListedPolicies::default(),
            request,
        );
        let decision = decision.await;
        assert_eq!((decision.allowed, decision.denial), (false, Denial::Unavailable));
        assert!(decision.message.ends_with("no answer in 5 s"), "{}", decision.message);
    }

    #[test]
    fn a_filter_that_does_not_compile_is_a_problem() {
        let class = NamedClass::new("a", ActionClassSpec::default());
        let found = |filter: &str| {
            let filter = filter.to_owned();
            problems(&AdmissionRequest { filter, ..AdmissionRequest::default() }, &class)
        };
        assert!(found("object.metadata.name == 'foo'").is_empty());
        let message = found("nothing == 1").pop().expect("it is refused");
        assert!(message.starts_with("spec.trigger.filter does not compile: ERROR"), "{message}");
    }

    #[test]
    fn a_request_in_the_name_of_another_user_is_left_to_its_execution() {
        let class = NamedClass::new("a", ActionClassSpec::default());
        let action = ActionSpec { package: "p".to_owned(), ..ActionSpec::default() };
        let mut request = AdmissionRequest { action, ..AdmissionRequest::default() };
        assert_eq!(problems(&request, &class).len(), 1);
        request.user.username = "robot".to_owned();
        assert!(problems(&request, &class).is_empty());
    }

    #[test]
    fn a_request_that_is_too_long_is_refused_whoever_sends_it() {
        let request = |kind: &str, length: usize| AdmissionRequest {
            kind: kind.to_owned(),
            action: ActionSpec {
                parameters: Some(json!({ "note": "x".repeat(length) })),
                ..ActionSpec::default()
            },
            ..AdmissionRequest::default()
        };
        let refused = |kind: &str, length: usize| {
            let decision = too_long(&request(kind, length))?;
            assert_eq!((decision.allowed, decision.denial), (false, Denial::Invalid));
            Some(decision.message)
        };
        assert_eq!(refused(ACTION.kind, 200 * 1024), None);
        let says = |field: &str| Some(format!("{field} is longer than 256 KiB"));
        assert_eq!(refused(ACTION.kind, 256 * 1024), says("spec"));
        assert_eq!(refused("RetryAction", 256 * 1024), says("spec.template"));
    }

    #[test]
    fn a_request_for_an_unknown_class_waits_for_it_unless_policies_name_it() {
        let action = ActionSpec { action_class: "a".to_owned(), ..ActionSpec::default() };
        let request = AdmissionRequest { action, ..AdmissionRequest::default() };
        let waiting = of_no_class(&request);
        assert_eq!((waiting.allowed, waiting.warnings.len()), (true, 1));
        let refused = of_no_class(&AdmissionRequest { is_guarded: true, ..request });
        assert_eq!(
            (refused.allowed, refused.message.as_str()),
            (false, "there is no ActionClass a")
        );
    }
}
