//! Random families of objects, some of which are deleted: what is left has to be the same.
//!
//! A real garbage collector takes its time, so the real server is asked until it says what the
//! embedded one says, or patience ends.
use std::collections::BTreeMap;

use k8s_testkit::{ClusterKind, TestCluster, clusters, poll};
use kube::Client;
use serde_json::{Value, json};

use super::answer::Answer;
use super::random::Random;
use super::request::{Body, Request};
use super::run::send;

/// Families of a run.
const FAMILIES: u64 = 30;
const MEMBERS: [&str; 5] = ["a", "b", "c", "d", "e"];
const POLICIES: [&str; 3] = ["Background", "Foreground", "Orphan"];

/// A member, the owners it is born with, and its finalizers.
struct Member {
    name: String,
    /// Indices of owners, and whether they wait for it.
    owners: Vec<(usize, bool)>,
    held: bool,
    /// Whether it also names an owner that never was.
    stray: bool,
}

/// A family and the members that are deleted, with the policy.
struct Family {
    members: Vec<Member>,
    deletions: Vec<(usize, &'static str)>,
    /// Members whose finalizer is taken off in the end.
    released: bool,
}

fn family(seed: u64) -> Family {
    let mut random = Random::new(seed, 4);
    let members = MEMBERS
        .iter()
        .enumerate()
        .map(|(index, name)| Member {
            name: format!("f{seed}-{name}"),
            owners: (0..index)
                .map(|owner| (owner, random.percent(60)))
                .filter(|(owner, _)| (seed >> owner) % 2 == u64::from(index % 2 == 0))
                .collect(),
            held: random.percent(20),
            stray: random.percent(8),
        })
        .collect();
    let deletions = (0..1 + random.below(2))
        .map(|_| (random.below(MEMBERS.len()), *random.pick(&POLICIES)))
        .collect();
    Family { members, deletions, released: random.percent(50) }
}

async fn ask(client: &Client, method: &'static str, path: &str, body: Option<Value>) -> Answer {
    let request = Request {
        method,
        target: format!("/api/v1/namespaces/default/configmaps{path}"),
        content_type: if method == "PATCH" {
            "application/merge-patch+json"
        } else {
            "application/json"
        },
        body: body.map_or(Body::Nothing, Body::Document),
    };
    send(client, &request, &Value::Null, "").await.expect("the server answers")
}

/// Makes a family; tells the uid of each member.
async fn make(client: &Client, family: &Family) -> Vec<String> {
    let mut uids: Vec<String> = Vec::new();
    for member in &family.members {
        let reference = |name: &str, uid: &str, blocks: bool| {
            json!({
                "apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid,
                "blockOwnerDeletion": blocks,
            })
        };
        let mut owners: Vec<Value> = member
            .owners
            .iter()
            .map(|(owner, blocks)| reference(&family.members[*owner].name, &uids[*owner], *blocks))
            .collect();
        if member.stray {
            owners.push(reference("missing", "no-such-uid", false));
        }
        let mut metadata = json!({"name": member.name, "ownerReferences": owners});
        if member.held {
            metadata["finalizers"] = json!(["example.com/held"]);
        }
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
        let made = ask(client, "POST", "", Some(object)).await;
        uids.push(made.body["metadata"]["uid"].as_str().unwrap_or_default().to_owned());
    }
    uids
}

/// What is left of a family: of each member whether it is being deleted, its finalizers and owners.
async fn left(client: &Client, family: &Family) -> BTreeMap<String, Value> {
    let mut out = BTreeMap::new();
    for member in &family.members {
        let found = ask(client, "GET", &format!("/{}", member.name), None).await;
        if found.code == 200 {
            let metadata = &found.body["metadata"];
            let owners: Vec<&Value> = metadata["ownerReferences"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|owner| &owner["name"])
                .collect();
            let state = json!({
                "deleting": metadata.get("deletionTimestamp").is_some(),
                "finalizers": metadata["finalizers"],
                "owners": owners,
            });
            out.insert(member.name.clone(), state);
        }
    }
    out
}

async fn release(client: &Client, family: &Family) {
    for member in family.members.iter().filter(|member| member.held) {
        let found = ask(client, "GET", &format!("/{}", member.name), None).await;
        let kept: Vec<Value> = found.body["metadata"]["finalizers"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|finalizer| *finalizer != "example.com/held")
            .cloned()
            .collect();
        let patch = json!({"metadata": {"finalizers": kept}});
        ask(client, "PATCH", &format!("/{}", member.name), Some(patch)).await;
    }
}

/// Waits until both servers say the same of a family; the last word of each if they never do.
async fn agree(
    embedded: &Client,
    real: &Client,
    family: &Family,
) -> Result<(), (BTreeMap<String, Value>, BTreeMap<String, Value>)> {
    let agreed = poll("the same on both servers", || async {
        (left(embedded, family).await == left(real, family).await).then_some(())
    });
    if agreed.await.is_ok() {
        return Ok(());
    }
    Err((left(embedded, family).await, left(real, family).await))
}

async fn check(embedded: Client, real: Client, seed: u64) -> Option<String> {
    let family = family(seed);
    make(&embedded, &family).await;
    make(&real, &family).await;
    let mut story = format!("family {seed}:");
    let mut outcome = agree(&embedded, &real, &family).await;
    for (index, policy) in &family.deletions {
        if outcome.is_err() {
            break;
        }
        let name = &family.members[*index].name;
        story.push_str(&format!(" delete {name} {policy};"));
        for client in [&embedded, &real] {
            ask(client, "DELETE", &format!("/{name}?propagationPolicy={policy}"), None).await;
        }
        outcome = agree(&embedded, &real, &family).await;
    }
    if family.released && outcome.is_ok() {
        story.push_str(" release;");
        release(&embedded, &family).await;
        release(&real, &family).await;
        outcome = agree(&embedded, &real, &family).await;
    }
    let (ours, theirs) = outcome.err()?;
    for member in &family.members {
        let owners: Vec<String> = member
            .owners
            .iter()
            .map(|(owner, blocks)| format!("{}{}", MEMBERS[*owner], if *blocks { "!" } else { "" }))
            .collect();
        let held = if member.held { " held" } else { "" };
        let stray = if member.stray { " stray" } else { "" };
        story.push_str(&format!("\n  {} of {owners:?}{held}{stray}", member.name));
    }
    Some(format!("{story}\n  embedded {}\n  real     {}", json!(ours), json!(theirs)))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_families_end_as_a_real_garbage_collector_ends_them() {
    if !clusters().contains(&ClusterKind::ControlPlane) {
        return;
    }
    let embedded = TestCluster::embedded();
    let real = TestCluster::control_plane().await.expect("the control plane starts");
    let (ours, theirs) = (embedded.client(), real.client());
    let checks = (0..FAMILIES).map(|seed| check(ours.clone(), theirs.clone(), seed));
    let failures: Vec<String> =
        futures::future::join_all(checks).await.into_iter().flatten().collect();
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}
