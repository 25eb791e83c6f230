//! How long the admission webhook of Actions takes for its answers while many are asked for.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use kube::api::{DynamicObject, ListParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use plimsoll_api::ACTION_POLICY;
use plimsoll_simulation::cluster_state::api;
use serde::Deserialize as _;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::interval;

use crate::Figure;
use crate::actions::{Stage, until};
use crate::policies::policy;

/// The number of policies; the last one by name grants.
const POLICIES: usize = 200;
/// The package that a policy grants.
const GRANTED: &str = "lantern";
/// A package that none grants. Before a request is denied, policies and permissions are read anew.
const DENIED: &str = "tide";
/// The time between two requests.
const PERIOD: Duration = Duration::from_millis(5);
/// The number of requests.
const REQUESTS: usize = 4_000;

/// Measures the answers of the webhook at 200 requests a second.
pub(crate) async fn measure() -> Result<Vec<Figure>, anyhow::Error> {
    let stage = Stage::start(&["--action-webhook", "127.0.0.1:0"]).await?;
    for at in 0..POLICIES {
        let named = policy(at)?;
        let object = json!({
            "apiVersion": "olm.io/v1", "kind": "ActionPolicy", "metadata": { "name": named.name },
            "spec": named.spec,
        });
        create(&api(&stage.client, ACTION_POLICY), object).await?;
    }
    let namespaces = Api::all_with(stage.client.clone(), &kind("", "Namespace", "namespaces"));
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": { "name": "team-0", "labels": { "tenant": "true" } },
    });
    create(&namespaces, namespace).await?;
    let webhook = webhook(&stage).await?;
    until("the webhook has observed the policies", || async {
        Ok(webhook.ask(GRANTED).await?["response"]["allowed"] == true)
    })
    .await?;
    let what = format!("the admission webhook at 200 requests a second, {POLICIES} policies");
    let granted = figure(&what, webhook.times(GRANTED, true).await?);
    let denied = figure(&format!("{what}, denied"), webhook.times(DENIED, false).await?);
    Ok(vec![granted, denied])
}

/// Returns the figure of some times.
fn figure(what: &str, mut times: Vec<Duration>) -> Figure {
    times.sort_unstable();
    let at = |percent: usize| times[(times.len() - 1) * percent / 100].as_secs_f64() * 1e3;
    let (median, percentile, most) = (at(50), at(99), at(100));
    let text = format!(
        "{percentile:.2} ms at the 99th percentile, {median:.2} ms at the 50th, {most:.1} ms at most"
    );
    let json = json!({ "p50": median, "p99": percentile, "max": most, "requests": REQUESTS });
    Figure::new(what, "Embedded", text, "5 ms at the 99th percentile", json)
}

/// The webhook that judges Actions.
#[derive(Clone)]
struct Webhook {
    client: Client,
    path: String,
}

impl Webhook {
    /// Asks about an Action of a tenant for a package; returns the answer.
    async fn ask(&self, package: &str) -> Result<Value, anyhow::Error> {
        let spec = json!({
            "actionClass": "operator-install", "package": package, "version": "~1.1",
            "repository": "curated", "requester": { "username": "alice", "groups": ["team-0"] },
        });
        let kind = json!({ "group": "olm.io", "version": "v1", "kind": "Action" });
        let review = json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "request": {
                "uid": "9e5b9d2c", "operation": "CREATE", "namespace": "team-0", "name": "install",
                "kind": kind, "requestKind": kind,
                "resource": { "group": "olm.io", "version": "v1", "resource": "actions" },
                "userInfo": { "username": "alice", "groups": ["team-0"] },
                "object": {
                    "apiVersion": "olm.io/v1", "kind": "Action",
                    "metadata": { "name": "install", "namespace": "team-0" }, "spec": spec,
                },
            },
        });
        let request = http::Request::post(&self.path).header("Content-Type", "application/json");
        Ok(self.client.request(request.body(review.to_string().into_bytes())?).await?)
    }

    /// Returns how long each of many requests takes that are sent one after another, whether the ones before have been
    /// answered or not.
    async fn times(
        &self,
        package: &'static str,
        is_allowed: bool,
    ) -> Result<Vec<Duration>, anyhow::Error> {
        let mut ticks = interval(PERIOD);
        let mut asked = JoinSet::new();
        for _ in 0..REQUESTS {
            ticks.tick().await;
            let webhook = self.clone();
            asked.spawn(async move {
                let begun = Instant::now();
                let answer = webhook.ask(package).await?;
                let time = begun.elapsed();
                anyhow::ensure!(answer["response"]["allowed"] == is_allowed, "{answer}");
                Ok(time)
            });
        }
        asked.join_all().await.into_iter().collect()
    }
}

/// Returns the webhook as its configuration names it.
async fn webhook(stage: &Stage) -> Result<Webhook, anyhow::Error> {
    let resource = kind(
        "admissionregistration.k8s.io",
        "ValidatingWebhookConfiguration",
        "validatingwebhookconfigurations",
    );
    let configurations: Api<DynamicObject> = Api::all_with(stage.client.clone(), &resource);
    let find = || async {
        let found = configurations.list(&ListParams::default()).await?.items;
        let mut webhooks = found
            .into_iter()
            .flat_map(|it| it.data["webhooks"].as_array().cloned().unwrap_or_default());
        let is_of_actions = |it: &Value| {
            it["rules"][0]["resources"].as_array().is_some_and(|it| it.contains(&json!("actions")))
        };
        anyhow::Ok(webhooks.find(|it| is_of_actions(it) && it["clientConfig"]["url"].is_string()))
    };
    until("the webhook is there", || async { Ok(find().await?.is_some()) }).await?;
    let config = find().await?.context("the webhook is there")?["clientConfig"].clone();
    let url: http::Uri = config["url"].as_str().unwrap_or_default().parse()?;
    let authority = url.authority().context("the webhook has an address")?;
    let kubeconfig = Kubeconfig::deserialize(json!({
        "clusters": [{ "name": "webhook", "cluster": {
            "server": format!("https://{authority}"), "certificate-authority-data": config["caBundle"],
        } }],
        "users": [{ "name": "webhook", "user": {} }],
        "contexts": [{ "name": "webhook", "context": { "cluster": "webhook", "user": "webhook" } }],
        "current-context": "webhook",
    }))?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    Ok(Webhook { client: Client::try_from(config)?, path: url.path().to_owned() })
}

fn kind(group: &str, kind: &str, plural: &str) -> kube::core::ApiResource {
    let kind = kube::core::GroupVersionKind::gvk(group, "v1", kind);
    kube::core::ApiResource::from_gvk_with_plural(&kind, plural)
}

async fn create(api: &Api<DynamicObject>, object: Value) -> Result<(), anyhow::Error> {
    api.create(&PostParams::default(), &serde_json::from_value(object)?).await?;
    Ok(())
}
