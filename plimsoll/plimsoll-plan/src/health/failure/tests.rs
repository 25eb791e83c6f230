//! The words of failures, and how many become one.

use plimsoll_api::{Effect, Reason};

use super::{Failure, condense, could_not_update, from_api_status, summarize, without_values};

fn operator(name: &str, reason: Reason, effect: Effect) -> Failure {
    let state = match reason {
        Reason::ClusterOperatorDegraded => "degraded",
        Reason::ClusterOperatorUpdating => "updating versions",
        _ => "not available",
    };
    let message = format!("Cluster operator {name} is {state}");
    Failure::of_cluster_operator(name, reason, Some(effect), message)
}

fn object(name: &str, reason: Reason) -> Failure {
    let object = format!("configmap \"{name}\"");
    let message = could_not_update(&object, 1, 9, "");
    Failure::of_object(object, reason, Some(Effect::Fail), message)
}

fn check_condensed(failures: &[Failure], expected: (Reason, Option<Effect>, &str)) {
    let condensed = condense(failures).expect("there are failures");
    let (reason, effect, message) = expected;
    assert_eq!((condensed.reason, condensed.effect), (reason, effect));
    assert_eq!(condensed.message, message);
}

#[test]
fn what_the_server_said_is_part_of_the_cause() {
    let check = |code, reason: &str, said: &str, expected: (Reason, &str)| {
        let (meaning, cause) = from_api_status(code, reason, said);
        assert_eq!((meaning, cause.as_str()), expected, "{code} {reason}");
    };
    check(
        422,
        "Invalid",
        "spec.replicas: Invalid value: -1",
        (
            Reason::UpdatePayloadResourceInvalid,
            "the object is invalid, possibly due to local cluster configuration: \
             spec.replicas: Invalid value: -1",
        ),
    );
    check(
        404,
        "NotFound",
        "namespaces \"x\" not found",
        (Reason::NamespaceMissing, "the namespace does not exist: namespaces \"x\" not found"),
    );
    check(503, "", "", (Reason::UpdatePayloadClusterDown, "the server is down or not responding"));
    check(418, "Odd", "short and stout", (Reason::UpdatePayloadFailed, "short and stout"));
}

#[test]
fn what_may_quote_sensitive_values_is_withheld() {
    let check = |code, message: &str, fields: &[&str], expected: &str| {
        let shown = without_values(code, message, fields);
        assert_eq!(
            shown.replace("the rest of the message may quote sensitive values and is ", ""),
            expected
        );
    };
    check(
        422,
        "data[pin]: Invalid value: 1234",
        &["data[pin]"],
        "HTTP status 422, about data[pin] (withheld)",
    );
    check(500, ".stringData.pin: expected string, got 1234", &[], "HTTP status 500 (withheld)");
    check(400, "illegal base64 data: 1234", &[], "HTTP status 400 (withheld)");
    let policy = "secrets \"keys\" is forbidden: ValidatingAdmissionPolicy 'pins' with binding 'all' denied request: ";
    check(403, &format!("{policy}1234 is too simple"), &[], &format!("{policy}(withheld)"));
    let webhook = "admission webhook \"pins.example.com\" denied the request: ";
    check(400, &format!("{webhook}1234"), &[], &format!("{webhook}(withheld)"));
    let missing = "namespaces \"pier\" not found";
    check(404, missing, &[], missing);
}

#[test]
fn refusals_have_the_documented_reasons() {
    let check = |code, reason: &str, said: &str, expected| {
        assert_eq!(from_api_status(code, reason, said).0, expected, "{code} {reason} {said}");
    };
    check(409, "AlreadyExists", "", Reason::UpdatePayloadResourceNotFound);
    check(409, "Conflict", "", Reason::UpdatePayloadResourceConflict);
    check(504, "Timeout", "", Reason::UpdatePayloadClusterDown);
    check(503, "ServiceUnavailable", "", Reason::UpdatePayloadClusterDown);
    check(500, "InternalError", "", Reason::UpdatePayloadClusterError);
    check(401, "Unauthorized", "", Reason::UpdatePayloadClusterUnauthorized);
    check(403, "Forbidden", "no", Reason::UpdatePayloadResourceForbidden);
    check(403, "Forbidden", "… because it is being terminated", Reason::NamespaceTerminating);
    check(500, "ServerTimeout", "", Reason::UpdatePayloadClusterOverloaded);
    check(429, "TooManyRequests", "", Reason::UpdatePayloadClusterOverloaded);
    check(404, "NotFound", "pods \"x\" not found", Reason::UpdatePayloadResourceNotFound);
    let not_served = "the server could not find the requested resource";
    check(404, "NotFound", not_served, Reason::UpdatePayloadResourceTypeMissing);
    check(404, "", "404 page not found", Reason::UpdatePayloadResourceTypeMissing);
    check(400, "BadRequest", "", Reason::UpdatePayloadFailed);
    check(502, "", "bad gateway", Reason::UpdatePayloadClusterDown);
}

#[test]
fn a_group_of_operators_is_as_bad_as_its_worst() {
    // CVS-28.
    use Effect::{Fail, FailAfterInterval, None};
    let degraded = |effects: &[Effect]| -> Vec<Failure> {
        let names = ["c", "a", "b"];
        let pairs = names.iter().zip(effects);
        pairs
            .map(|(name, effect)| operator(name, Reason::ClusterOperatorDegraded, *effect))
            .collect()
    };
    let plural = Reason::ClusterOperatorsDegraded;
    check_condensed(
        &degraded(&[None, Fail, FailAfterInterval]),
        (plural, Some(Fail), "Cluster operators a, b, c are degraded"),
    );
    check_condensed(
        &degraded(&[None, FailAfterInterval]),
        (plural, Some(FailAfterInterval), "Cluster operators a, c are degraded"),
    );
    check_condensed(
        &degraded(&[FailAfterInterval]),
        (
            Reason::ClusterOperatorDegraded,
            Some(FailAfterInterval),
            "Cluster operator c is degraded",
        ),
    );
}

#[test]
fn different_failures_are_listed_once_each_and_sorted() {
    let failures = [
        object("z", Reason::UpdatePayloadFailed),
        operator("b", Reason::ClusterOperatorUpdating, Effect::None),
        object("y", Reason::UpdatePayloadFailed),
        operator("a", Reason::ClusterOperatorUpdating, Effect::None),
        object("y", Reason::UpdatePayloadFailed),
    ];
    check_condensed(
        &failures,
        (
            Reason::MultipleErrors,
            None,
            "Multiple errors are preventing progress:\n\
             * Cluster operators a, b are updating versions\n\
             * Could not update configmap \"y\" (1 of 9)\n\
             * Could not update configmap \"z\" (1 of 9)",
        ),
    );
    assert_eq!(condense(&[]), None);
}

#[test]
fn a_summary_tells_the_worst_and_names_the_others() {
    let check = |failures: &[Failure], expected: &str| assert_eq!(summarize(failures), expected);
    let unavailable = || operator("a", Reason::ClusterOperatorNotAvailable, Effect::Fail);
    let updating = || operator("b", Reason::ClusterOperatorUpdating, Effect::None);
    check(&[], "");
    check(&[unavailable()], "the cluster operator a is not available");
    check(&[updating(), unavailable()], "the cluster operator a is not available; also b");
    let objects = |count: usize| -> Vec<Failure> {
        ["p", "q", "r", "s", "t"][..count]
            .iter()
            .map(|name| object(name, Reason::UpdatePayloadResourceInvalid))
            .collect()
    };
    check(&objects(2), "some cluster configuration is invalid (configmap \"p\", configmap \"q\")");
    check(
        &objects(5),
        "some cluster configuration is invalid \
         (configmap \"p\", configmap \"q\", configmap \"r\" and 2 more)",
    );
    let mut mixed = objects(1);
    mixed.push(object("z", Reason::UpdatePayloadResourceForbidden));
    mixed.push(updating());
    check(
        &mixed,
        "some cluster configuration is invalid (configmap \"p\"); also configmap \"z\", b",
    );
}

#[test]
fn a_long_list_is_cut() {
    let failures: Vec<Failure> =
        (0..40).map(|n| object(&format!("{n:02}"), Reason::UpdatePayloadFailed)).collect();
    let message = condense(&failures).expect("there are failures").message;
    assert_eq!(message.lines().count(), 32);
    assert!(message.ends_with("\n* and 10 more"), "{message}");
}
