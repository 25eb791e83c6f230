//! The definitions of Actions declare what the wire types serialize.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::json;

use super::{check, meta_condition};
use crate::olm::action::{
    ActionApproval, ActionClassSpec, ActionClassStatus, ActionDependency, ActionPartSpec,
    ActionPreconditions, ActionRequester, ActionSpec, ActionState, ActionStatus, ApprovalDecision,
    ChangeOperation, ChangeState, ConcurrencyPolicy, CronActionSpec, CronActionStatus,
    EffectiveAttribute, EventActionSpec, EventActionStatus, EventSourceKind, EventTrigger,
    EventType, FailureDetails, MissedTimes, ObservedContent, PartContent, PartReference,
    PlanExpression, PlannedChange, PolicyDecision, RateLimit, RetryActionSpec, RetryActionStatus,
    SelectedObjects,
};
use crate::olm::policy::{
    ActionPolicySpec, ActionPolicyStatus, AttributeRule, PolicyRules, PolicySubject, SubjectKind,
};
use crate::olm::window::{
    MaintenanceWindowSpec, MaintenanceWindowStatus, WindowExclusion, WindowReference, WindowTimes,
};
use crate::olm::{LabelOperator, LabelRequirement, LabelSelector, RemainingObjects};
use crate::{
    ACTION, ACTION_CLASS, ACTION_PART, ACTION_POLICY, CRON_ACTION, EVENT_ACTION,
    MAINTENANCE_WINDOW, RETRY_ACTION,
};

fn moment() -> Option<Timestamp> {
    Some(Timestamp::from_second(1).unwrap())
}

fn requester() -> ActionRequester {
    ActionRequester { username: "alice".into(), groups: vec!["dev".into()] }
}

fn preconditions() -> ActionPreconditions {
    ActionPreconditions {
        consistent: true,
        no_workload_removal: true,
        no_orphans: true,
        no_definition_removal: true,
        no_new_cluster_permissions: true,
        within_maintenance_window: Some(WindowReference {
            name: "nights".into(),
            schedule: "0 22 * * 5".into(),
            time_zone: "Europe/Madrid".into(),
            duration: "4h".into(),
        }),
        expressions: vec![PlanExpression {
            expression: "plan.changes.size() < 5".into(),
            message: "at most four".into(),
        }],
    }
}

fn action() -> ActionSpec {
    ActionSpec {
        action_class: "operator-install".into(),
        package: "etcd".into(),
        version: ">=1.0".into(),
        channel: "stable".into(),
        repository: "community".into(),
        install_dependencies: Some(false),
        ensure_constraint_satisfiability: Some(true),
        dry_run: Some(true),
        parameters: Some(json!({"size": 3})),
        preconditions: preconditions(),
        deadline: "10m".into(),
        ttl_after_finished: "24h".into(),
        requester: Some(requester()),
        approvals: vec![ActionApproval {
            approver: "bob".into(),
            groups: vec!["sre".into()],
            plan: "sha256:ab".into(),
            decision: ApprovalDecision::Rejected,
            reason: "not today".into(),
        }],
        cancelled: true,
    }
}

#[test]
fn everything_of_an_action_is_declared() {
    check(ACTION, "spec", &action());
    let change = PlannedChange {
        operator: "etcd".into(),
        operation: ChangeOperation::Create,
        uid: "9e5b9d2c".into(),
        requested_before: "1.0.0".into(),
        requested: "1.1.0".into(),
        version_before: "1.0.0".into(),
        version: "1.1.0".into(),
        bundle: "etcd.v1.1.0".into(),
        channel: "stable".into(),
        catalog: "community".into(),
        repository: "community".into(),
        spec_fields: Some(json!({"channel": "stable"})),
        image: "registry.example.com/etcd@sha256:ab".into(),
        capability: "Build".into(),
        dependency: true,
        becomes_requested: true,
        manifest: Some(json!({"kind": "Operator"})),
        change_set: "ab".into(),
        leaves_change_set: "cd".into(),
        relies_on: vec!["lantern".into()],
        workloads: vec![RemainingObjects::default()],
        definitions: vec!["etcdclusters.example.com".into()],
        new_cluster_permissions: vec!["its service accounts: get on secrets".into()],
        inspected: BTreeMap::from([("main/lantern.v1.1.0".into(), "sha256:abc".into())]),
        state: ChangeState::Written,
        unwritten: true,
        reason: "Written".into(),
        message: "written".into(),
    };
    let status = ActionStatus {
        state: ActionState::Running,
        outcome: "RUNNING".into(),
        conditions: vec![meta_condition()],
        requester: Some(requester()),
        effective_spec: vec![EffectiveAttribute {
            name: "version".into(),
            value: ">=1.0".into(),
            set_by: "request".into(),
        }],
        policies: vec![PolicyDecision {
            policy: "tenants".into(),
            mode: "Enforce".into(),
            allowed: true,
            rule: "packages".into(),
            message: "allowed".into(),
        }],
        plan: vec![change],
        plan_summary: "1 to create".into(),
        plan_digest: "sha256:ab".into(),
        explanation: vec!["etcd is installed".into()],
        dependencies: vec![ActionDependency {
            package: "etcd".into(),
            version: "1.1.0".into(),
            reason: "DependencyCreated".into(),
            message: "etcd@1.1.0 was successfully installed".into(),
        }],
        result: "etcd".into(),
        result_digest: "sha256:cd".into(),
        parts: Some(PartReference {
            content: PartContent::Plan,
            name: "install-etcd-ab".into(),
            count: 2,
            bytes: 600_000,
            digest: "sha256:ef".into(),
        }),
        failure: Some(FailureDetails {
            item: "etcd".into(),
            precondition: "noOrphans".into(),
            done: vec!["create etcd@v1.1.0".into()],
            left: vec!["delete zookeeper".into()],
            unknown: vec!["update quay".into()],
            command: "kubectl operator install etcd".into(),
        }),
        attempts: 2,
        start_time: moment(),
        completion_time: moment(),
    };
    check(ACTION, "status", &status);
    let part = ActionPartSpec { action: "install-etcd".into(), index: 1, data: "[".into() };
    check(ACTION_PART, "spec", &part);
}

#[test]
fn everything_of_what_makes_actions_is_declared() {
    let retry = RetryActionSpec {
        backoff_limit: Some(3),
        active_deadline_seconds: Some(600),
        history_limit: Some(2),
        ttl_after_finished: "24h".into(),
        cancelled: true,
        template: action(),
        requester: Some(requester()),
    };
    check(RETRY_ACTION, "spec", &retry);
    let status = RetryActionStatus {
        succeeded: 1,
        failed: 2,
        conditions: vec![meta_condition()],
        latest_attempt: "install-etcd-2x7k4".into(),
        start_time: moment(),
        completion_time: moment(),
        next_attempt_time: moment(),
        collision_count: Some(1),
    };
    check(RETRY_ACTION, "status", &status);
    let cron = CronActionSpec {
        schedule: "0 3 * * *".into(),
        time_zone: "Europe/Madrid".into(),
        maintenance_window: "nights".into(),
        starting_deadline_seconds: Some(60),
        concurrency_policy: ConcurrencyPolicy::Forbid,
        suspend: true,
        successful_actions_history_limit: Some(1),
        failed_actions_history_limit: Some(1),
        template: action(),
        requester: Some(requester()),
    };
    check(CRON_ACTION, "spec", &cron);
    let status = CronActionStatus {
        last_schedule_time: moment(),
        missed: Some(MissedTimes {
            reason: "ScheduleMissed".into(),
            count: 2,
            message: "no Action was made in time".into(),
            ..MissedTimes::default()
        }),
        last_successful_time: moment(),
        active: vec!["nightly-1".into()],
        message: "no such time zone".into(),
        collision_count: Some(1),
    };
    check(CRON_ACTION, "status", &status);
    let event = EventActionSpec {
        trigger: EventTrigger {
            kind: EventSourceKind::Object,
            events: vec![EventType::Changed],
            object: Some(SelectedObjects {
                api_version: "v1".into(),
                kind: "ConfigMap".into(),
                selector: [("app".into(), "etcd".into())].into(),
            }),
            names: vec!["etcd".into()],
            filter: "event == 'Changed'".into(),
        },
        rate_limit: Some(RateLimit { count: 2, period: "1h".into() }),
        suspend: true,
        successful_actions_history_limit: Some(1),
        failed_actions_history_limit: Some(1),
        template: action(),
        requester: Some(requester()),
    };
    check(EVENT_ACTION, "spec", &event);
    let status = EventActionStatus {
        trigger: Some(event.trigger),
        observed: vec![ObservedContent {
            name: "etcd".into(),
            event: EventType::Changed,
            content: "1.0.0".into(),
        }],
        last_change_time: moment(),
        last_event_time: moment(),
        pending: "follow-2x7k4".to_owned(),
        pending_chain: vec!["tea/follow".to_owned()],
        recent_times: moment().into_iter().collect(),
        skipped: vec![MissedTimes {
            reason: "FilterFailed".into(),
            count: 2,
            message: "no such key".into(),
            ..MissedTimes::default()
        }],
        message: "not served".into(),
        collision_count: Some(1),
    };
    check(EVENT_ACTION, "status", &status);
}

#[test]
fn everything_of_classes_and_policies_is_declared() {
    let class = ActionClassSpec {
        controller: "example.com/backups".into(),
        description: "Makes a backup".into(),
        by_hand: "backup make".into(),
        history_limit: Some(10),
        ttl_after_finished: "24h".into(),
        aliases: vec!["backup".into()],
        attributes: vec!["package".into()],
        required: vec!["package".into()],
        defaults: Some(json!({"dryRun": true})),
        schema: Some(json!({"type": "object"})),
    };
    check(ACTION_CLASS, "spec", &class);
    let status = ActionClassStatus { conditions: vec![meta_condition()] };
    check(ACTION_CLASS, "status", &status);
    let rules = PolicyRules {
        attributes: vec![AttributeRule {
            name: "version".into(),
            required: true,
            forbidden: true,
            default: Some(json!(false)),
            fixed: Some(json!(false)),
            values: vec!["1.*".into()],
            range: "<2".into(),
        }],
        packages: vec!["etcd".into()],
        catalogs: vec!["community".into()],
        channels: vec!["stable".into()],
        preconditions: preconditions(),
        requires_approval: true,
        approval_count: Some(2),
        approvers: vec![PolicySubject {
            kind: SubjectKind::ServiceAccount,
            name: "gate".into(),
            namespace: "ci".into(),
        }],
        max_active: Some(1),
        max_operators: Some(1),
    };
    let subject =
        PolicySubject { kind: SubjectKind::Group, name: "dev".into(), namespace: "tea".into() };
    let policy = ActionPolicySpec {
        subjects: vec![subject],
        namespaces: vec!["tea-*".into()],
        namespace_selector: Some(LabelSelector {
            match_labels: [("tenant".into(), "true".into())].into(),
            match_expressions: vec![LabelRequirement {
                key: "tier".into(),
                operator: LabelOperator::NotIn,
                values: vec!["prod".into()],
            }],
        }),
        classes: vec!["operator-install".into()],
        enforce: Some(rules.clone()),
        warn: Some(rules.clone()),
        audit: Some(rules),
    };
    check(ACTION_POLICY, "spec", &policy);
    let status = ActionPolicyStatus { conditions: vec![meta_condition()] };
    check(ACTION_POLICY, "status", &status);
}

#[test]
fn everything_of_maintenance_windows_is_declared() {
    let spec = MaintenanceWindowSpec {
        windows: vec![WindowTimes {
            schedule: "0 22 * * 5".into(),
            time_zone: "Europe/Madrid".into(),
            duration: "4h".into(),
        }],
        exclusions: vec![WindowExclusion {
            from: Timestamp::from_second(1).unwrap(),
            until: Timestamp::from_second(2).unwrap(),
            reason: "the end of the year".into(),
        }],
    };
    check(MAINTENANCE_WINDOW, "spec", &spec);
    let status = MaintenanceWindowStatus {
        open: true,
        next_opening: moment(),
        next_closing: moment(),
        conditions: vec![meta_condition()],
    };
    check(MAINTENANCE_WINDOW, "status", &status);
}
