//! The MaintenanceWindows that Actions and policies name.

use kube::Client;
use plimsoll_api::olm::action::ActionPreconditions;
use plimsoll_operators::actions::policy::NamedPolicy;
use plimsoll_operators::actions::report::ActionObject;
use plimsoll_plan::windows::MaintenanceWindows;

use crate::windows;

/// Reads the MaintenanceWindows that an Action or a policy may name.
///
/// They are listed for each decision about one: a failure is final, and a watch may deliver a
/// MaintenanceWindow later than an Action that was created after it.
///
/// # Errors
///
/// When the API server does not answer.
pub(super) async fn read(
    client: &Client,
    action: &ActionObject,
    policies: &[NamedPolicy],
) -> Result<MaintenanceWindows, kube::Error> {
    match are_named(action, policies) {
        true => windows::list(client).await,
        false => Ok(MaintenanceWindows::default()),
    }
}

/// Returns whether an Action or a policy names a MaintenanceWindow.
fn are_named(action: &ActionObject, policies: &[NamedPolicy]) -> bool {
    let rules = policies.iter().flat_map(|it| {
        let modes = [&it.spec.enforce, &it.spec.warn, &it.spec.audit];
        modes.into_iter().flatten().map(|rules| &rules.preconditions)
    });
    rules.chain([&action.spec.preconditions]).any(names_window)
}

/// Returns whether preconditions name a MaintenanceWindow.
fn names_window(preconditions: &ActionPreconditions) -> bool {
    preconditions.within_maintenance_window.as_ref().is_some_and(|it| !it.name.is_empty())
}
