//! `plimsoll run`: the controller on any cluster.

use std::io::IsTerminal;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use clap::{ArgGroup, Args};
use jiff::SignedDuration;
use kube::Client;
use plimsoll_api::config::ClusterVersionSpec;
use plimsoll_api::duration;
use plimsoll_content::Payload;
use plimsoll_content::inclusion::DEFAULT_PROFILE;
use plimsoll_controller::actions::ActionSettings;
use plimsoll_controller::metrics::{MetricsServer, TlsFiles};
use plimsoll_controller::operators::{OperatorController, OperatorSettings};
use plimsoll_controller::{
    Controller, Error, Leadership, OperatorsView, Reached, Settings, SharedStore, SystemClock,
    View, WebhookSettings, WindowController,
};
use plimsoll_plan::status::Limits;
use plimsoll_source::catalog::{Cache, CatalogRoots};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::arguments::address;
use crate::arguments::capability::check_names;
use crate::arguments::catalog::{CATALOGS_PATH, INDICES, cache_directory};
use crate::arguments::cluster::ClusterArguments;
use crate::arguments::installation::InstallationArguments;
use crate::arguments::registry::RegistryArguments;
use crate::arguments::resolver::ResolverArguments;
use crate::arguments::store;
use crate::exit;
use crate::process::{identity, new_cluster, stop_on_signal};
use crate::render::live::LiveView;
use crate::render::logs;
use crate::traces::Traces;

/// How to keep a cluster at a release.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("work").args(["release", "payloads", "operators"]).required(true).multiple(true))]
#[command(group = ArgGroup::new("installation").args(["install_config", "baseline", "capability"]).multiple(true).requires("create"))]
pub struct RunArguments {
    /// The release: the directory of its payload, or a reference to its image; with --payloads, the
    /// one that a cluster without a release is given
    #[arg(long, value_name = "DIR|REFERENCE", value_parser = store::parse)]
    pub release: Option<store::Location>,
    /// Store of releases that may be asked for: a directory of payload directories, oci:DIR for an
    /// OCI image layout, or a repository of a registry. Without --release, a cluster that has none
    /// is given the newest
    #[arg(long, value_name = "DIR|oci:DIR|REPOSITORY", value_parser = store::parse)]
    pub payloads: Option<store::Location>,
    /// How registries are reached
    #[command(flatten)]
    pub registry: RegistryArguments,
    /// Install, update and delete what Operators request, from the catalogs that Catalogs name; with
    /// or without a release
    #[arg(long)]
    pub operators: bool,
    /// Directory that the paths of Catalogs must be in; repeatable
    #[arg(long, value_name = "DIR", requires = "operators", default_value = CATALOGS_PATH)]
    pub catalog_dir: Vec<PathBuf>,
    /// Execute Actions: requests for changes of Operators, granted by ActionPolicies
    #[arg(long, requires = "operators")]
    pub actions: bool,
    /// Serve admission webhooks here that set who requests an Action and refuse what no ActionPolicy
    /// grants; their certificate is stored in Secret kube-system/plimsoll-action-webhook
    #[arg(long, value_name = "ADDRESS:PORT", requires = "actions", value_parser = address::parse)]
    pub action_webhook: Option<SocketAddr>,
    /// Host name or address of these webhooks for the API server; without it, the address that they
    /// listen on
    #[arg(long, value_name = "HOST", requires = "action_webhook")]
    pub action_webhook_host: Option<String>,
    /// Service of these webhooks for the API server, at port 443
    #[arg(
        long,
        value_name = "NAMESPACE/NAME",
        requires = "action_webhook",
        conflicts_with = "action_webhook_host"
    )]
    pub action_webhook_service: Option<String>,
    /// Where queries are answered.
    #[command(flatten)]
    pub resolver: ResolverArguments,
    /// Which cluster
    #[command(flatten)]
    pub cluster: ClusterArguments,
    /// Create the ClusterVersion if there is none, instead of waiting for it
    #[arg(long)]
    pub create: bool,
    /// What a ClusterVersion is created with.
    #[command(flatten)]
    pub installation: InstallationArguments,
    /// Begin the release although it is refused: it is of another product, or of a lower version
    /// than the cluster's, or none of its manifests is for this cluster
    #[arg(long)]
    pub force_release: bool,
    /// Cluster profile
    #[arg(long, default_value = DEFAULT_PROFILE)]
    pub profile: String,
    /// Feature set of the cluster, whatever its FeatureGate says; without it, the FeatureGate
    /// `cluster` is followed, and the set is Default while there is none
    #[arg(long)]
    pub feature_set: Option<String>,
    /// Pull specification to report for the release; one is made of its digest otherwise
    #[arg(long, value_name = "PULLSPEC", requires = "release")]
    pub image: Option<String>,
    /// A capability to enable whatever the spec says; repeatable
    #[arg(long, value_name = "NAME")]
    pub always_enable_capability: Vec<String>,
    /// Serve an admission webhook here that rejects invalid spec.capabilities; its certificate is
    /// stored in Secret kube-system/plimsoll-capability-webhook
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = address::parse)]
    pub capability_webhook: Option<SocketAddr>,
    /// Host name or address of the webhook for the API server; without it, the address that it
    /// listens on
    #[arg(long, value_name = "HOST", requires = "capability_webhook")]
    pub capability_webhook_host: Option<String>,
    /// Service of the webhook for the API server, at port 443
    #[arg(
        long,
        value_name = "NAMESPACE/NAME",
        requires = "capability_webhook",
        conflicts_with = "capability_webhook_host"
    )]
    pub capability_webhook_service: Option<String>,
    /// Serve /metrics, /healthz and /readyz here
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = address::parse)]
    pub metrics_listen: Option<SocketAddr>,
    /// Certificate to serve them with, as PEM; a new one is used as soon as the file changes.
    /// Without it they are served in plain text
    #[arg(long, value_name = "FILE", requires_all = ["metrics_listen", "metrics_key"])]
    pub metrics_certificate: Option<PathBuf>,
    /// Key of the certificate, as PEM
    #[arg(long, value_name = "FILE", requires = "metrics_certificate")]
    pub metrics_key: Option<PathBuf>,
    /// Exit once the release is completed, instead of keeping the cluster at it
    #[arg(long)]
    pub until_complete: bool,
    /// Plain logs even in a terminal
    #[arg(long)]
    pub plain: bool,
    /// How to log; without it, JSON in a pipe and text in a terminal
    #[arg(long, value_enum)]
    pub log_format: Option<logs::Format>,
    /// Send traces to the OpenTelemetry collector here, such as http://localhost:4318 (OTLP over
    /// HTTP)
    #[arg(long, value_name = "URL")]
    pub otlp_endpoint: Option<String>,
    /// How long things may take.
    #[command(flatten)]
    pub limits: LimitArguments,
}

/// How long things may take before they are called slow or failed.
#[derive(Debug, Args)]
pub struct LimitArguments {
    /// Waits longer than this are reported as slow, such as `30m`
    #[arg(long, value_name = "DURATION", default_value = "30m", value_parser = signed_duration)]
    slow_after: SignedDuration,
    /// The same for a ClusterOperator, in addition to machine-config=90m; may be given again
    #[arg(long, value_name = "NAME=DURATION", value_parser = operator_limit)]
    slow_after_for: Vec<(String, SignedDuration)>,
    /// How long a degraded ClusterOperator may take to recover before an update counts as failing
    #[arg(long, value_name = "DURATION", default_value = "40m", value_parser = signed_duration)]
    degraded_tolerated: SignedDuration,
}

impl From<&LimitArguments> for Limits {
    fn from(arguments: &LimitArguments) -> Self {
        let mut limits = Self {
            slow_after: arguments.slow_after,
            degraded_tolerated: arguments.degraded_tolerated,
            ..Self::default()
        };
        limits.slow_after_for.extend(arguments.slow_after_for.iter().cloned());
        limits
    }
}

fn operator_limit(text: &str) -> Result<(String, SignedDuration), String> {
    let (name, time) = text.split_once('=').ok_or("expected NAME=DURATION, such as etcd=45m")?;
    Ok((name.to_owned(), signed_duration(time)?))
}

fn signed_duration(text: &str) -> Result<SignedDuration, String> {
    SignedDuration::try_from(duration::parse(text)?).map_err(|error| error.to_string())
}

/// Keeps the cluster at the release, and Operators as they are requested, until a signal stops it.
///
/// # Errors
///
/// When the payload is defective, the cluster cannot be reached, or leadership is lost.
pub async fn run(arguments: RunArguments) -> Result<ExitCode, anyhow::Error> {
    let format = arguments.log_format;
    let has_release = arguments.release.is_some() || arguments.payloads.is_some();
    if let Some(option) = unused(&arguments).filter(|_| !has_release) {
        anyhow::bail!("{option} has no effect without a release: add --release or --payloads");
    }
    let interactive = has_release
        && std::io::stderr().is_terminal()
        && !arguments.plain
        && format != Some(logs::Format::Json);
    let identity = identity();
    let traces = match &arguments.otlp_endpoint {
        Some(endpoint) => Some(Traces::start(endpoint, &identity)?),
        None => None,
    };
    let (traces, layer) = traces.unzip();
    let live = LiveView::of_stderr();
    logs::init_as(interactive, format, layer, &live);
    let release = if has_release { Some(release_work(&arguments, &identity)?) } else { None };
    let client = arguments.cluster.watching_client("run").await?;
    let (view, views) = watch::channel(View::default());
    let operators_view = watch::Sender::new(OperatorsView::default());
    let stop = stop_on_signal()?;
    let ended = CancellationToken::new();
    if let Some((address, tls)) = metrics(&arguments) {
        let operators = arguments.operators.then(|| operators_view.subscribe());
        let release = has_release.then(|| views.clone());
        let server = MetricsServer::bind(address, tls, release, operators, stop.clone()).await?;
        tracing::info!(address = %server.address(), "serving metrics");
        tokio::spawn(server.serve(ended.clone()));
    }
    if arguments.until_complete {
        tokio::spawn(stop_when_complete(views.clone(), stop.clone()));
    }
    let drawing = interactive.then(|| {
        let (live, views, stop) = (live.clone(), views.clone(), stop.clone());
        tokio::spawn(async move { live.draw(views, stop).await })
    });
    let mut work = JoinSet::new();
    if has_release || arguments.actions {
        let (client, clock) = (client.clone(), Arc::new(SystemClock));
        let leadership = Leadership::Lease(identity.clone());
        work.spawn(WindowController { client, clock, leadership }.run(stop.clone()));
    }
    if let Some(release) = release {
        work.spawn(release.run(client.clone(), view, stop.clone()));
    }
    if arguments.operators {
        let settings = OperatorSettings {
            leadership: Leadership::Lease(identity),
            roots: CatalogRoots::new(arguments.catalog_dir.iter().cloned()),
            cache: cache_directory(INDICES).as_deref().map(Cache::new),
            actions: actions(&arguments)?,
            queries: queries(&arguments.resolver)?,
        };
        let (clock, view) = (Arc::new(SystemClock), operators_view);
        let controller = OperatorController { client, clock, settings, view };
        work.spawn(controller.run(stop.clone()));
    }
    let result = first_end(work, &stop).await;
    ended.cancel();
    if let Some(drawing) = drawing {
        // A view that cannot be drawn is no reason to fail.
        let _ = drawing.await;
    }
    if let Some(traces) = traces {
        traces.end().await;
    }
    result?;
    Ok(exit::SUCCESS.into())
}

/// An option that is about releases; `None` if there is none.
fn unused(arguments: &RunArguments) -> Option<&'static str> {
    let given = [
        (arguments.create, "--create"),
        (arguments.force_release, "--force-release"),
        (arguments.feature_set.is_some(), "--feature-set"),
        (!arguments.always_enable_capability.is_empty(), "--always-enable-capability"),
        (arguments.capability_webhook.is_some(), "--capability-webhook"),
        (arguments.until_complete, "--until-complete"),
    ];
    given.into_iter().find(|(is_given, _)| *is_given).map(|(_, option)| option)
}

/// Waits for controllers; when one ends, the others are stopped.
///
/// # Errors
///
/// The first error that one of them ended with.
async fn first_end(
    mut work: JoinSet<Result<(), Error>>,
    stop: &CancellationToken,
) -> Result<(), anyhow::Error> {
    let mut result = Ok(());
    while let Some(ended) = work.join_next().await {
        stop.cancel();
        let ended = ended.map_err(anyhow::Error::new).and_then(|it| it.map_err(anyhow::Error::new));
        result = result.and(ended);
    }
    result
}

/// What a controller of releases begins with.
struct ReleaseWork {
    settings: Settings,
    payload: Payload,
    store: Option<SharedStore>,
}

impl ReleaseWork {
    /// Keeps the cluster at the release until it is stopped.
    async fn run(
        self,
        client: Client,
        view: watch::Sender<View>,
        stop: CancellationToken,
    ) -> Result<(), Error> {
        let Self { settings, payload, store } = self;
        let (sender, release) = watch::channel(Arc::new(payload));
        let clock = Arc::new(SystemClock);
        let controller = Controller { client, clock, settings, release, store, view };
        let ended = controller.run(stop).await;
        drop(sender);
        ended
    }
}

/// Reads the release, and checks what the command line says of it.
fn release_work(arguments: &RunArguments, identity: &str) -> Result<ReleaseWork, anyhow::Error> {
    let registry = &arguments.registry;
    let store = arguments.payloads.as_ref().map(|it| it.open(registry));
    let payload = match (&arguments.release, &arguments.payloads) {
        (Some(location), _) => {
            let image = arguments.image.as_deref().unwrap_or_default();
            store::release_as(location, registry, image, &arguments.profile)?
        }
        (None, Some(location)) => store::newest(location, registry, &arguments.profile)?,
        (None, None) => anyhow::bail!("no release is given: use --release or --payloads"),
    };
    for warning in &payload.warnings {
        tracing::warn!("{warning}");
    }
    if !arguments.force_release {
        store::check_choices(&payload, &arguments.profile, arguments.feature_set.as_deref())?;
    }
    check_names(
        &payload.capabilities,
        "--always-enable-capability",
        &arguments.always_enable_capability,
    )?;
    let settings = Settings {
        profile: arguments.profile.clone(),
        feature_set: arguments.feature_set.clone(),
        create: new_spec(arguments, &payload)?,
        force_release: arguments.force_release,
        leadership: Leadership::Lease(identity.to_owned()),
        always_enabled: arguments.always_enable_capability.clone(),
        capability_webhook: webhook(arguments)?,
        limits: Limits::from(&arguments.limits),
    };
    Ok(ReleaseWork { settings, payload, store })
}

/// Stops once the release that is applied is completed.
pub async fn stop_when_complete(mut views: watch::Receiver<View>, stop: CancellationToken) {
    // A controller that ended stops anyway.
    let _ = views.wait_for(|view| view.completed).await;
    stop.cancel();
}

/// The spec that a ClusterVersion is created with; `None` if one is waited for.
///
/// # Errors
///
/// When the release does not have what is chosen, or the install-config is invalid.
pub fn new_spec(
    arguments: &RunArguments,
    payload: &Payload,
) -> Result<Option<ClusterVersionSpec>, anyhow::Error> {
    if !arguments.create {
        return Ok(None);
    }
    let given = arguments.feature_set.as_deref();
    let requested = arguments.installation.of(payload, &arguments.profile, given)?;
    if let (None, Some(feature_set)) = (given, &requested.feature_set) {
        tracing::warn!(
            feature_set,
            "the featureSet of the install-config has no effect here: set --feature-set, or the \
             FeatureGate \"cluster\""
        );
    }
    Ok(Some(ClusterVersionSpec { capabilities: requested.capabilities, ..new_cluster() }))
}

/// Where to serve metrics, if anywhere, and with which certificate.
fn metrics(arguments: &RunArguments) -> Option<(SocketAddr, Option<TlsFiles>)> {
    let address = arguments.metrics_listen?;
    let files = arguments.metrics_certificate.clone().zip(arguments.metrics_key.clone());
    Some((address, files.map(|(certificate, key)| TlsFiles { certificate, key })))
}

/// Where to answer reviews of capabilities, if anywhere.
fn webhook(arguments: &RunArguments) -> Result<Option<WebhookSettings>, anyhow::Error> {
    let host = arguments.capability_webhook_host.as_deref();
    let service = arguments.capability_webhook_service.as_deref();
    reached("--capability-webhook", arguments.capability_webhook, host, service)
}

/// How Actions are executed, if they are.
fn actions(arguments: &RunArguments) -> Result<Option<ActionSettings>, anyhow::Error> {
    if !arguments.actions {
        return Ok(None);
    }
    let host = arguments.action_webhook_host.as_deref();
    let service = arguments.action_webhook_service.as_deref();
    let webhook = reached("--action-webhook", arguments.action_webhook, host, service)?;
    Ok(Some(ActionSettings { webhook }))
}

/// Where queries are answered, if anywhere.
fn queries(arguments: &ResolverArguments) -> Result<Option<WebhookSettings>, anyhow::Error> {
    let host = arguments.resolver_host.as_deref();
    reached("--resolver", arguments.resolver, host, arguments.resolver_service.as_deref())
}

/// Where a webhook listens and how API servers get there, by the options that begin with a name.
fn reached(
    option: &str,
    listen: Option<SocketAddr>,
    host: Option<&str>,
    service: Option<&str>,
) -> Result<Option<WebhookSettings>, anyhow::Error> {
    let Some(listen) = listen else { return Ok(None) };
    let reached = match (service, host) {
        (Some(service), _) => {
            let (namespace, name) = service
                .split_once('/')
                .with_context(|| format!("{option}-service: {service:?} is not NAMESPACE/NAME"))?;
            Reached::Service { namespace: namespace.to_owned(), name: name.to_owned() }
        }
        (None, Some(host)) => Reached::Host(host.to_owned()),
        (None, None) if listen.ip().is_unspecified() => anyhow::bail!(
            "{option} {listen} listens on every address: set {option}-host or {option}-service, by \
             which the API server reaches it"
        ),
        (None, None) => Reached::Host(listen.ip().to_string()),
    };
    Ok(Some(WebhookSettings { listen, reached }))
}
