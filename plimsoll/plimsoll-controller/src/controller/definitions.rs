//! The definitions of the controller of releases, which are put right when they are changed or deleted.

use kube::Client;
use plimsoll_plan::reconciler::desired::CapabilityRules;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::bootstrap;
use crate::definition;
use crate::reinstall::{self, Installed};
use crate::resources;
use crate::write::Writer;

/// Creates the definitions again when they are deleted, and reverts changes of ours, until stopped. That of ClusterVersion accepts the names of the rules.
pub(super) async fn keep(
    client: Client,
    writer: Writer,
    rules: watch::Receiver<CapabilityRules>,
    stop: CancellationToken,
) {
    let installed = Installed::new(resources::definitions(), &bootstrap::release_definitions(None));
    let reinstall = || async {
        let names = rules.borrow().names.clone();
        let definitions = bootstrap::release_definitions(names.as_ref());
        bootstrap::apply_definitions(&client, &writer, &definitions).await?;
        match &names {
            Some(names) => definition::restore(&client, &writer, names).await,
            // The release has a definition itself, or none is known yet.
            None => Ok(()),
        }
    };
    reinstall::keep(&client, vec![installed], reinstall, &stop).await;
}
