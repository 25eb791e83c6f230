//! Rehearsals with the example catalog, each on a copy of the cluster that another one ended with.

use k8s_apiserver::Options;
use k8s_apiserver::faults::{self, Fault, Requests};
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use kube::Api;
use serde_json::{from_value, json};
use tower::Layer as _;

use super::*;
use crate::snapshot;

/// Has an Operator in a version, whichever is installed.
fn version(name: &str, version: &str) -> OperatorRequest {
    OperatorRequest::Apply(json!({
        "apiVersion": "olm.io/v1",
        "kind": "Operator",
        "metadata": { "name": name },
        "spec": { "version": version, "upgradePolicy": "Any" },
    }))
}

fn rehearsal(
    cluster: Option<ClusterSnapshot>,
    requests: Vec<OperatorRequest>,
    faults: &str,
) -> OperatorsRehearsal {
    let path = std::path::absolute("../../examples/catalog").expect("a working directory");
    let source =
        CatalogSource { path: path.to_string_lossy().into_owned(), ..CatalogSource::default() };
    OperatorsRehearsal {
        cluster,
        requests,
        catalogs: vec![RehearsedCatalog { name: "examples".to_owned(), weight: 0, source }],
        cache: None,
        delay: Duration::from_secs(60),
        faults: Faults::parse(faults).expect("a list of faults"),
    }
}

/// Rehearses changes on a copy of a cluster with tide 0.3.0, ledger 1.4.0 and lantern 1.0.0, which requires
/// ledger.
fn rehearse(requests: Vec<OperatorRequest>, faults: &str) -> OperatorsResult {
    let installed = [("tide", "0.3.0"), ("ledger", "1.4.0"), ("lantern", "1.0.0")];
    let installed = installed.map(|(name, it)| version(name, it)).into();
    let played = in_virtual_time(async {
        let (result, server) = rehearsal(None, installed, "[]").carry_out().await?;
        assert!(result.troubles.is_empty(), "{:#?}", result.troubles);
        assert!(result.operators.iter().all(|it| it.before.is_none() && it.after.is_some()));
        assert!(result.objects.created > 0 && result.objects.changed == 0, "{result:#?}");
        let client = Client::new(server, "default");
        let copy = ClusterSnapshot::of_operators(&client).await.expect("it can be copied");
        Ok(rehearsal(Some(copy), requests, faults).carry_out().await?.0)
    });
    played.expect("it can be rehearsed")
}

fn operator<'r>(result: &'r OperatorsResult, name: &str) -> &'r RehearsedOperator {
    result.operators.iter().find(|it| it.name == name).expect("it has the Operator")
}

/// Returns what is new in what is wrong.
fn found(result: &OperatorsResult) -> Vec<(&str, TroubleKind)> {
    let new = result.troubles.iter().filter(|it| !it.is_earlier);
    new.map(|it| (it.operator.as_str(), it.kind)).collect()
}

#[test]
fn an_update_comes_to_its_end_and_nothing_else_moves() {
    let result = rehearse(vec![version("tide", "0.4.0")], "[]");
    assert!(result.troubles.is_empty(), "{:#?}", result.troubles);
    assert!(result.succeeds());
    let tide = operator(&result, "tide");
    assert_eq!((tide.before.as_deref(), tide.after.as_deref()), (Some("0.3.0"), Some("0.4.0")));
    assert_eq!(tide.conditions.len(), CONDITIONS.len());
    assert!(
        !operator(&result, "lantern").is_changed() && !operator(&result, "ledger").is_changed()
    );
    assert!(result.objects.changed > 0, "{:?}", result.objects);
    let ends = result.transitions.last().map(|it| (it.operator.as_str(), it.version.as_str()));
    assert_eq!(ends, Some(("tide", "0.4.0")), "{:#?}", result.transitions);
    // Its Deployment becomes available a minute after it is changed.
    assert!((60..120).contains(&result.seconds), "{}", result.seconds);
}

#[test]
fn a_dependant_that_is_left_without_what_it_requires_is_reported() {
    let result = rehearse(vec![OperatorRequest::Delete("ledger".to_owned())], "[]");
    assert!(operator(&result, "ledger").is_deleted && !result.succeeds());
    assert_eq!(found(&result), [("lantern", TroubleKind::Unsatisfied)]);
    assert_eq!(result.troubles[0].reason, "UnmetDependency");
    assert!(result.objects.deleted > 0, "{:?}", result.objects);
}

#[test]
fn operators_are_deleted_one_after_another() {
    let delete = || ["lantern", "ledger"].map(|it| OperatorRequest::Delete(it.to_owned()));
    let result = rehearse(delete().into(), "[]");
    assert!(result.succeeds(), "{:#?}", result.troubles);
    assert!(operator(&result, "lantern").is_deleted && operator(&result, "ledger").is_deleted);
    // What depends on it stays, and so does it.
    let patch = json!({ "spec": { "paused": true } });
    let pause = OperatorRequest::Patch { name: "lantern".to_owned(), patch };
    let result = rehearse([pause].into_iter().chain(delete()).collect(), "[]");
    assert_eq!(found(&result), [("lantern", TroubleKind::Stuck)]);
    assert!(!operator(&result, "lantern").is_deleted && !operator(&result, "ledger").is_deleted);
}

#[test]
fn a_rollout_that_waits_forever_is_stuck() {
    let faults = "[{package: tide, fault: NeverAvailable, version: 0.4.0}]";
    let result = rehearse(vec![version("tide", "0.4.0")], faults);
    assert_eq!(found(&result), [("tide", TroubleKind::Stuck)]);
    assert!(result.troubles[0].message.contains("tide-operator"), "{:?}", result.troubles);
    assert!(!result.succeeds());
}

#[test]
fn the_same_rehearsal_has_the_same_result() {
    let play = || rehearse(vec![version("tide", "0.4.0"), version("ledger", "1.5.0")], "[]");
    assert_eq!(play(), play());
}

#[test]
fn what_the_api_server_refuses_is_an_error_that_names_the_operator() {
    let mut refused = version("tide", "0.4.0");
    if let OperatorRequest::Apply(object) = &mut refused {
        object["spec"]["rollback"] = "Sometimes".into();
    }
    let error = rehearsal(None, vec![refused], "[]").run().expect_err("it is refused");
    assert_eq!(error.to_string(), "the API server refuses the change of Operator `tide`");
}

/// Returns a copy of a cluster where another client has made the ServiceAccount of tide.
async fn with_account_of_others() -> ClusterSnapshot {
    let server = ApiServer::new(Options::default());
    let client = Client::new(server.clone(), "default");
    let namespace: Namespace =
        from_value(json!({ "metadata": { "name": "tide" } })).expect("a namespace");
    let namespaces: Api<Namespace> = Api::all(client.clone());
    namespaces.create(&PostParams::default(), &namespace).await.expect("it is created");
    let account: ServiceAccount =
        from_value(json!({ "metadata": { "name": "tide-operator" } })).expect("an account");
    let accounts: Api<ServiceAccount> = Api::namespaced(client, "tide");
    accounts.create(&PostParams::default(), &account).await.expect("it is created");
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("cluster");
    snapshot::save(&server, &path).expect("it is saved");
    ClusterSnapshot::read(&path).expect("it can be read")
}

#[test]
fn a_conflict_that_the_cluster_reports_is_in_the_copy_as_well() {
    let played = in_virtual_time(async {
        let cluster = Some(with_account_of_others().await);
        let tide = vec![version("tide", "0.4.0")];
        let (before, server) = rehearsal(cluster, tide, "[]").carry_out().await?;
        let client = Client::new(server, "default");
        let copy = ClusterSnapshot::of_operators(&client).await.expect("it can be copied");
        let ledger = vec![version("ledger", "1.4.0")];
        Ok((before, rehearsal(Some(copy), ledger, "[]").carry_out().await?.0))
    });
    let (before, result) = played.expect("it can be rehearsed");
    assert_eq!(found(&before), [("tide", TroubleKind::Stuck)]);
    let conflict = "serviceaccount \"tide/tide-operator\" exists";
    let message = before.troubles[0].message.to_lowercase();
    assert!(message.starts_with(conflict), "{message}");
    assert!(!operator(&result, "tide").is_changed() && operator(&result, "ledger").is_changed());
    let [earlier] = result.troubles.as_slice() else { panic!("{:#?}", result.troubles) };
    assert!(earlier.is_earlier && earlier.reason == "Conflict", "{earlier:#?}");
    assert!(result.succeeds());
}

#[test]
fn operators_are_not_rehearsed_without_the_key_of_their_revisions() {
    let copied = in_virtual_time(async {
        let tide = vec![version("tide", "0.3.0")];
        let (_, server) = rehearsal(None, tide, "[]").carry_out().await?;
        let script = faults::Faults::none();
        let requests = Requests::any().verb("list").resource("secrets").always();
        script.add(requests, Fault::refused(403));
        let client = Client::new(script.layer(server), "default");
        Ok(ClusterSnapshot::of_operators(&client).await)
    });
    let refused = copied.expect("it is played").expect_err("the key may not be read");
    let key = "failed to copy secret \"kube-system/plimsoll-revisions\"";
    assert!(refused.to_string().starts_with(key), "{refused}");
}
