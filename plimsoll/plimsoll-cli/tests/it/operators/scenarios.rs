//! The scenarios, a test each.

use k8s_testkit::ClusterKind;

use super::scenario::Scenario;
use super::shell::Shell;
use crate::harness::{on_any_cluster, on_each_cluster};

/// Defines tests: each plays the scenario of a file in some way.
macro_rules! scenarios {
    ($($name:ident: $play:ident($file:literal);)+) => {
        $(
            #[test]
            fn $name() {
                $play(Scenario { steps: include_str!($file), ..Scenario::default() });
            }
        )+
    };
}

// What the controller does with Operators.
scenarios! {
    an_unmet_dependency_is_reported: controller("a01-a02-unmet-dependency.yaml");
    an_unmet_dependency_is_enforced: decisions("a03-enforce.yaml");
    an_upgrade_waits_for_dependants: controller("a04-blocked-upgrade.yaml");
    a_range_is_followed: decisions("a05-range.yaml");
    an_orphan_is_reported: decisions("a06-orphan.yaml");
    a_deletion_takes_what_was_installed: controller("a17-deletion.yaml");
    operators_collide: controller("collision.yaml");
    a_deletion_leaves_orphans: controller("deletion-orphan.yaml");
    a_deletion_is_refused: decisions("deletion-refuse.yaml");
    a_shared_namespace_is_deleted_last: controller("shared-namespace.yaml");
    a_namespace_with_objects_of_others_is_kept: uninterrupted("namespace-content.yaml");
    a_paused_deletion_waits: decisions("deletion-paused.yaml");
    objects_become_invalid: controller("invalidated-objects.yaml");
    leftovers_block_minor_versions: decisions("leftovers.yaml");
    another_catalog_is_chosen: decisions("other-catalog.yaml");
    operators_are_protected: controller("protection.yaml");
    a_revision_is_rolled_back: controller("rollback.yaml");
}

// What becomes of Actions.
scenarios! {
    actions_change_operators: actions("actions-changes.yaml");
    actions_follow_policies: actions("actions-policies.yaml");
    actions_bring_no_permissions: actions("actions-permissions.yaml");
    actions_keep_to_windows: actions("actions-windows.yaml");
    actions_are_tried_again: decisions_on_actions("actions-again.yaml");
    actions_apply_objects: actions("actions-objects.yaml");
    actions_follow_events: actions("actions-events.yaml");
    actions_update_the_release: actions_on_a_release("actions-release.yaml");
}

// What commands of `plimsoll operator` and `kubectl` show and do.
scenarios! {
    commands_delete: commands("commands-delete.yaml");
    commands_install: commands("commands-install.yaml");
    commands_preview: commands("commands-preview.yaml");
    commands_read: printed("commands-read.yaml");
    commands_update: printed("commands-update.yaml");
    commands_rehearse: commands("commands-rehearse.yaml");
    commands_request_actions: commands_with_actions("commands-action.yaml");
    policies_need_no_webhook: shell("compiled.yaml");
    approvals_are_of_several_users: shell_of_a_tenant("approvals.yaml");
    attacks_of_a_tenant_achieve_nothing: shell_of_a_tenant("attacks.yaml");
    persona_cluster_user: shell_of_a_tenant("persona-cluster-user.yaml");
    persona_control_freak: commands("persona-control-freak.yaml");
    persona_gitops: commands("persona-gitops.yaml");
    persona_power_user: commands("persona-power-user.yaml");
    personas_with_kubectl: shell("personas.yaml");
}

/// Plays a scenario with a controller that is killed after each change and followed by another one, and
/// once more as it is. Without kills a real API server answers nothing that it does not answer with them:
/// that is left to the embedded one.
fn controller(scenario: Scenario) {
    on_each_cluster(|kind| async move {
        if kind == ClusterKind::Embedded {
            scenario.play(kind, false).await;
        }
        scenario.play(kind, true).await;
    });
}

/// The same for what the controller decides whatever server it is on.
fn decisions(scenario: Scenario) {
    on_any_cluster(|kind| async move {
        scenario.play(kind, false).await;
        scenario.play(kind, true).await;
    });
}

/// The same with a controller that is never killed.
fn uninterrupted(scenario: Scenario) {
    on_any_cluster(|kind| scenario.play(kind, false));
}

fn decisions_on_actions(scenario: Scenario) {
    decisions(Scenario { has_actions: true, ..scenario });
}

fn actions(scenario: Scenario) {
    controller(Scenario { has_actions: true, ..scenario });
}

fn actions_on_a_release(scenario: Scenario) {
    actions(Scenario { has_release: true, ..scenario });
}

fn commands(scenario: Scenario) {
    on_each_cluster(|kind| async move { scenario.play(kind, false).await });
}

/// Plays a scenario of commands that print the same whatever server they are run on.
fn printed(scenario: Scenario) {
    on_any_cluster(|kind| async move { scenario.play(kind, false).await });
}

fn commands_with_actions(scenario: Scenario) {
    commands(Scenario { has_actions: true, ..scenario });
}

/// Plays a scenario of a user whose requests the webhooks complete and judge.
fn shell_of_a_tenant(scenario: Scenario) {
    shell(Scenario { has_webhook: true, ..scenario });
}

fn shell(scenario: Scenario) {
    if Shell::is_there() {
        commands_with_actions(scenario);
    }
}
