//! The watch of what installed Operators require of the platform. Their kind need not be defined, and may
//! be at any time: nothing is requested of it before.

use kube::api::ListParams;
use kube::core::DynamicObject;
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client, ResourceExt as _};
use plimsoll_api::olm::OperatorStatus;
use plimsoll_api::{OPERATOR, read_usable};
use plimsoll_plan::update::operators::OperatorsOnPlatform;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::bootstrap;
use crate::error::Error;
use crate::listing_watch::ListingWatch;
use crate::observe::{self, ConfigObservation};
use crate::resources::api_resource;

/// Operators in one answer: their statuses list all of their objects.
const PAGE_SIZE: u32 = 100;
/// The name of the definition of Operators.
const OPERATOR_DEFINITION: &str = "operators.olm.io";

/// Reads what the installed Operators of a cluster require of it: nothing if the kind is not served, and
/// unknown if it may not be listed.
///
/// # Errors
///
/// When the server does not answer, or answers with another error than these.
pub async fn operators_on_platform(client: &Client) -> Result<OperatorsOnPlatform, Error> {
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &api_resource(OPERATOR));
    let mut parameters = ListParams::default().limit(PAGE_SIZE);
    let mut operators = OperatorsOnPlatform::default();
    loop {
        let page = match api.list(&parameters).await {
            Ok(page) => page,
            // It is forbidden whether or not there is such a kind.
            Err(kube::Error::Api(status)) if status.code == 403 => {
                return Ok(match bootstrap::is_served(client, OPERATOR).await? {
                    true => unknown(&status),
                    false => operators,
                });
            }
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 405) => {
                return Ok(operators);
            }
            Err(source) => return Err(Error::ReadOperators { source }),
        };
        for operator in &page.items {
            operators.observed(&operator.name_any(), status(operator).as_ref());
        }
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => parameters = parameters.continue_token(&token),
            None => return Ok(operators),
        }
    }
}

/// Returns what is known of Operators that may not be listed.
fn unknown(status: &kube::core::Status) -> OperatorsOnPlatform {
    let message = &status.message;
    tracing::warn!(message, "the Operators may not be listed: updates are held up unless forced");
    OperatorsOnPlatform::unknown(message)
}

/// The status of an Operator, as far as it can be read; `None` if it has none.
fn status(operator: &DynamicObject) -> Option<OperatorStatus> {
    operator.data.get("status").map(read_usable)
}

/// Watches what installed Operators require of the platform, until the receiver is gone.
async fn watch_operators(client: Client, sender: mpsc::Sender<ConfigObservation>) {
    let api: Api<DynamicObject> = Api::all_with(client, &api_resource(OPERATOR));
    let mut events = ListingWatch::new(api, watcher::Config::default().page_size(PAGE_SIZE));
    let mut operators = OperatorsOnPlatform::default();
    let mut listed = OperatorsOnPlatform::default();
    loop {
        let is_changed = match events.next().await {
            Ok(Event::Init) => {
                listed = OperatorsOnPlatform::default();
                false
            }
            Ok(Event::InitApply(operator)) => {
                listed.observed(&operator.name_any(), status(&operator).as_ref());
                false
            }
            Ok(Event::InitDone) => {
                operators = std::mem::take(&mut listed);
                true
            }
            Ok(Event::Apply(operator)) => {
                operators.observed(&operator.name_any(), status(&operator).as_ref())
            }
            Ok(Event::Delete(operator)) => operators.observed(&operator.name_any(), None),
            Err(watcher::Error::InitialListFailed(kube::Error::Api(status)))
                if status.code == 403 =>
            {
                let forbidden = OperatorsOnPlatform::unknown(&status.message);
                if operators == forbidden {
                    continue;
                }
                operators = unknown(&status);
                true
            }
            Err(error) => {
                tracing::debug!(%error, "watching Operators failed; trying again");
                false
            }
        };
        let observation = || ConfigObservation::Operators(operators.clone());
        if is_changed && sender.send(observation()).await.is_err() {
            return;
        }
    }
}

/// Watches the Operators while their kind is defined; the watches end with this.
pub(super) struct OperatorsWatch {
    client: Client,
    sender: mpsc::Sender<ConfigObservation>,
    operators: JoinSet<()>,
}

impl OperatorsWatch {
    /// Watches the definition, in `watches`.
    pub(super) fn start(
        client: Client,
        sender: mpsc::Sender<ConfigObservation>,
        watches: &mut JoinSet<()>,
    ) -> Self {
        let observed = |is_served| ConfigObservation::OperatorDefinition { is_served };
        let name = OPERATOR_DEFINITION;
        watches.spawn(observe::watch_definition(client.clone(), name, observed, sender.clone()));
        Self { client, sender, operators: JoinSet::new() }
    }

    /// The definition shows whether the kind is served. Returns whether no Operators are left.
    pub(super) fn defined(&mut self, is_served: bool) -> bool {
        match (is_served, self.operators.is_empty()) {
            (true, true) => {
                let (client, sender) = (self.client.clone(), self.sender.clone());
                self.operators.spawn(watch_operators(client, sender));
                false
            }
            (true, false) => false,
            (false, _) => {
                self.operators = JoinSet::new();
                true
            }
        }
    }
}
