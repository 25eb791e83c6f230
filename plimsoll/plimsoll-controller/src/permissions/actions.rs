//! The permissions that the controller of Actions needs beside those of the controller of Operators.

use plimsoll_api::{
    ACTION, ACTION_CLASS, ACTION_PART, ACTION_POLICY, CLUSTER_VERSION, CRON_ACTION, EVENT_ACTION,
    OPERATOR, RETRY_ACTION, policies,
};

use super::{Needs, Permissions, READ, WRITE, certificate_rule, in_lease_namespace};
use crate::actions::admission::Registered;
use crate::lease::WINDOWS_LEASE_NAME;

/// The permissions to install the admission policies of Actions, to serve their webhooks, or only to remove
/// those of an earlier process, to request Actions in the name of others, and to execute them.
pub fn action_permissions(is_webhook_served: bool) -> Permissions {
    let mut needs = Needs::default();
    needs.policies(&policies::action_policies());
    needs.policies(&policies::requester_policies());
    // An API server asks for these on all kinds of the group to apply a policy with parameters before
    // it serves their kind.
    needs.add(ACTION_CLASS.group, "*", &["get", "list"]);
    needs.webhook::<Registered>(is_webhook_served);
    // Besides requests in the name of others, this is what the status of Actions of our classes takes.
    needs.add(ACTION.group, &format!("{}/requester", ACTION.plural), &["update"]);
    for (kind, verbs) in [
        (ACTION, &["create", "patch", "delete"][..]),
        (ACTION_PART, &["create", "delete"]),
        (ACTION_CLASS, &WRITE),
        (ACTION_POLICY, &[]),
        (RETRY_ACTION, &["patch", "delete"]),
        (CRON_ACTION, &["patch"]),
        (EVENT_ACTION, &["patch"]),
    ] {
        needs.add(kind.group, kind.plural, &READ);
        needs.add(kind.group, kind.plural, verbs);
    }
    needs.windows();
    for kind in [ACTION, RETRY_ACTION, CRON_ACTION, EVENT_ACTION, ACTION_CLASS, ACTION_POLICY] {
        needs.add(kind.group, &format!("{}/status", kind.plural), &["patch"]);
    }
    for kind in [ACTION, RETRY_ACTION, CRON_ACTION, EVENT_ACTION] {
        // Some clusters ask this of who makes objects that hold up the deletion of others.
        needs.add(kind.group, &format!("{}/finalizers", kind.plural), &["update"]);
    }
    needs.add(OPERATOR.group, OPERATOR.plural, &["create", "patch", "delete"]);
    needs.add(CLUSTER_VERSION.group, CLUSTER_VERSION.plural, &READ);
    needs.add(CLUSTER_VERSION.group, CLUSTER_VERSION.plural, &["patch"]);
    // Policies are about namespaces with labels.
    needs.add("", "namespaces", &["get"]);
    needs.add("authorization.k8s.io", "subjectaccessreviews", &["create"]);
    let mut lease_namespace = in_lease_namespace(&[WINDOWS_LEASE_NAME]);
    lease_namespace.extend(is_webhook_served.then(certificate_rule::<Registered>));
    Permissions { cluster: needs.rules(), lease_namespace }
}
