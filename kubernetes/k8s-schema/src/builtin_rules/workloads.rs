//! Workloads: Deployments, ReplicaSets, DaemonSets, StatefulSets, Jobs and CronJobs.
use serde_json::{Value, json};

use super::check::{
    Check::NonNegative, apply, below, count_or_percentage, forbidden, invalid, is_empty, is_zero,
    not_supported, required, selector, selects, selects_all, text,
};
use super::pod::template;
use crate::{FieldError, FieldErrorKind};

/// A selector as Go shows it: with the fields in the order of the Go type.
pub(super) fn shown_selector(value: &Value) -> String {
    let mut parts = Vec::new();
    for field in ["matchLabels", "matchExpressions"] {
        if !is_empty(&value[field]) {
            parts.push(format!("\"{field}\":{}", crate::error::go::json(&value[field])));
        }
    }
    format!("{{{}}}", parts.join(","))
}

pub(super) fn deployment_selector(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    required_selector(spec, path, "deployment", errors);
}

pub(super) fn stateful_set_selector(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    required_selector(spec, path, "statefulset", errors);
}

/// Upstream: k8s.io/kubernetes/pkg/apis/apps/validation/validation.go: ValidateDeploymentSpec
fn required_selector(spec: &Value, path: &str, kind: &str, errors: &mut Vec<FieldError>) {
    let (at, value) = (below(path, "selector"), &spec["selector"]);
    if value.is_null() {
        return errors.push(required(at, ""));
    }
    let before = errors.len();
    selector(value, &at, errors);
    let shown = |detail: &str| {
        FieldError::new(&at, FieldErrorKind::Invalid, detail).with_shown(shown_selector(value))
    };
    if selects_all(value) {
        errors.push(shown(&format!("empty selector is invalid for {kind}")));
    } else if errors.len() > before {
        errors.push(shown(if kind == "statefulset" { "" } else { "invalid label selector" }));
    }
}

/// Upstream: k8s.io/kubernetes/pkg/apis/apps/validation/validation.go: ValidateDaemonSetSpec
pub(super) fn daemon_selector(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let (at, value) = (below(path, "selector"), &spec["selector"]);
    selector(value, &at, errors);
    if !value.is_null() && selects_all(value) {
        let detail = "empty selector is invalid for daemonset";
        let error = FieldError::new(at, FieldErrorKind::Invalid, detail);
        errors.push(error.with_shown(shown_selector(value)));
    }
}

/// Whether a selector is valid.
fn is_readable(value: &Value) -> bool {
    let mut errors = Vec::new();
    selector(value, "", &mut errors);
    errors.is_empty()
}

pub(super) fn replica_set_pods(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    pods(spec, path, "ReplicaSet", errors);
}

pub(super) fn daemon_set_pods(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    pods(spec, path, "DaemonSet", errors);
}

pub(super) fn stateful_set_pods(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    pods(spec, path, "StatefulSet", errors);
}

/// Checks the pod template of a workload whose pods always restart.
///
/// Upstream: k8s.io/kubernetes/pkg/apis/apps/validation/validation.go: ValidatePodTemplateSpecForReplicaSet
fn pods(spec: &Value, path: &str, kind: &str, errors: &mut Vec<FieldError>) {
    let at = below(path, "template");
    let labels = &spec["template"]["metadata"]["labels"];
    let wanted = &spec["selector"];
    let selected = !wanted.is_null() && selects(wanted, labels);
    if !selected && (wanted.is_null() || (!selects_all(wanted) && is_readable(wanted))) {
        let detail = "`selector` does not match template `labels`";
        errors.push(invalid(below(&at, "metadata.labels"), labels, detail));
    }
    template(&spec["template"], &at, errors);
    long_running(&spec["template"]["spec"], &below(&at, "spec"), kind, errors);
}

fn long_running(spec: &Value, path: &str, kind: &str, errors: &mut Vec<FieldError>) {
    let policy = text(spec, "restartPolicy");
    if policy != "Always" && !policy.is_empty() {
        errors.push(not_supported(&below(path, "restartPolicy"), &policy.into(), &["Always"]));
    }
    if !spec["activeDeadlineSeconds"].is_null() {
        let detail = format!("activeDeadlineSeconds in {kind} is not Supported");
        errors.push(forbidden(below(path, "activeDeadlineSeconds"), &detail));
    }
}

/// Upstream: k8s.io/kubernetes/pkg/apis/core/validation/validation.go: ValidatePodTemplateSpecForRC
pub(super) fn controlled_pods(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    if spec["template"].is_null() {
        return errors.push(required(below(path, "template"), ""));
    }
    let labels = &spec["template"]["metadata"]["labels"];
    let at = below(path, "template");
    if !is_empty(&spec["selector"]) && !selects(&json!({"matchLabels": spec["selector"]}), labels) {
        let detail = "`selector` does not match template `labels`";
        errors.push(invalid(below(&at, "metadata.labels"), labels, detail));
    }
    template(&spec["template"], &at, errors);
    long_running(&spec["template"]["spec"], &below(&at, "spec"), "ReplicationController", errors);
}

/// A strategy as Go shows the internal type, whose fields have no JSON names.
fn shown_strategy(value: &Value) -> String {
    format!("{{\"Type\":{},\"RollingUpdate\":{}}}", value["type"], value["rollingUpdate"])
}

/// Upstream: k8s.io/kubernetes/pkg/apis/apps/validation/validation.go: ValidateDeploymentStrategy
pub(super) fn deployment_strategy(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let rolling = &value["rollingUpdate"];
    match text(value, "type") {
        "Recreate" if !rolling.is_null() => {
            let detail = "may not be specified when strategy `type` is 'Recreate'";
            errors.push(forbidden(below(path, "rollingUpdate"), detail));
        }
        "Recreate" | "" => {}
        "RollingUpdate" => {
            let at = below(path, "rollingUpdate");
            count_or_percentage(&rolling["maxUnavailable"], &below(&at, "maxUnavailable"), errors);
            count_or_percentage(&rolling["maxSurge"], &below(&at, "maxSurge"), errors);
            if is_zero(&rolling["maxUnavailable"]) && is_zero(&rolling["maxSurge"]) {
                let detail = "may not be 0 when `maxSurge` is 0";
                let at = below(&at, "maxUnavailable");
                errors.push(invalid(at, &rolling["maxUnavailable"], detail));
            }
        }
        _ => errors.push(
            not_supported(path, value, &["Recreate", "RollingUpdate"])
                .with_shown(shown_strategy(value)),
        ),
    }
}

/// Upstream: k8s.io/kubernetes/pkg/apis/apps/validation/validation.go: ValidateDeploymentSpec
pub(super) fn progress_deadline(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let Some(deadline) = spec["progressDeadlineSeconds"].as_i64() else { return };
    let at = below(path, "progressDeadlineSeconds");
    let value = deadline.into();
    super::check::non_negative(&value, &at, errors);
    if deadline <= spec["minReadySeconds"].as_i64().unwrap_or_default() {
        errors.push(invalid(at, &value, "must be greater than minReadySeconds"));
    }
}

/// Upstream: k8s.io/kubernetes/pkg/apis/apps/validation/validation.go: ValidateDaemonSetUpdateStrategy
pub(super) fn daemon_strategy(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    match text(value, "type") {
        "OnDelete" | "" => {}
        "RollingUpdate" => {
            let rolling = &value["rollingUpdate"];
            let at = below(path, "rollingUpdate");
            count_or_percentage(&rolling["maxUnavailable"], &below(&at, "maxUnavailable"), errors);
            count_or_percentage(&rolling["maxSurge"], &below(&at, "maxSurge"), errors);
            let (unavailable, surge) =
                (is_zero(&rolling["maxUnavailable"]), is_zero(&rolling["maxSurge"]));
            if unavailable && surge {
                let detail = "cannot be 0 when maxSurge is 0";
                errors.push(required(below(&at, "maxUnavailable"), detail));
            } else if !unavailable && !surge && !rolling["maxSurge"].is_null() {
                let detail = "may not be set when maxUnavailable is non-zero";
                errors.push(invalid(below(&at, "maxSurge"), &rolling["maxSurge"], detail));
            }
        }
        _ => errors.push(
            not_supported(path, value, &["RollingUpdate", "OnDelete"])
                .with_shown(shown_strategy(value)),
        ),
    }
}

/// Upstream: k8s.io/kubernetes/pkg/apis/apps/validation/validation.go: ValidateStatefulSetSpec
pub(super) fn management(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let policy = value.as_str().unwrap_or_default();
    if !matches!(policy, "OrderedReady" | "Parallel" | "") {
        errors.push(invalid(path, value, "must be 'OrderedReady' or 'Parallel'"));
    }
}

/// Upstream: k8s.io/kubernetes/pkg/apis/apps/validation/validation.go: ValidateStatefulSetSpec
pub(super) fn stateful_strategy(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let rolling = &value["rollingUpdate"];
    match text(value, "type") {
        "OnDelete" if !rolling.is_null() => {
            let shown = format!(
                "{{\"Partition\":{},\"MaxUnavailable\":{}}}",
                rolling["partition"].as_i64().unwrap_or_default(),
                rolling["maxUnavailable"]
            );
            let detail = "only allowed for updateStrategy 'RollingUpdate'";
            let at = below(path, "rollingUpdate");
            let error = FieldError::new(at, FieldErrorKind::Invalid, detail);
            errors.push(error.with_shown(shown));
        }
        "OnDelete" | "" => {}
        "RollingUpdate" => {
            let at = below(path, "rollingUpdate");
            apply(&[("partition", NonNegative)], rolling, &at, errors);
        }
        _ => {
            let detail = "must be 'RollingUpdate' or 'OnDelete'";
            let error = FieldError::new(path, FieldErrorKind::Invalid, detail);
            errors.push(error.with_shown(shown_strategy(value)));
        }
    }
}

/// Upstream: k8s.io/kubernetes/pkg/apis/batch/validation/validation.go: validateJobSpec
pub(super) fn job_counts(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    apply(super::part("job-counts"), spec, path, errors);
    if spec["completionMode"] == "Indexed" && spec["completions"].is_null() {
        let detail = "when completion mode is Indexed";
        errors.push(required(below(path, "completions"), detail));
    }
}

/// Upstream: k8s.io/kubernetes/pkg/apis/batch/validation/validation.go: validateGeneratedSelector
pub(super) fn job_selector(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let wanted = &spec["selector"];
    if wanted.is_null() {
        errors.push(required(below(path, "selector"), ""));
    } else {
        selector(wanted, &below(path, "selector"), errors);
    }
    const OWN_LABEL: &str = "batch.kubernetes.io/controller-uid";
    let generated = wanted["matchLabels"]
        .as_object()
        .is_some_and(|labels| labels.len() == 1 && labels.contains_key(OWN_LABEL));
    if !wanted.is_null() && !generated && spec["manualSelector"] != true {
        let detail = "`selector` not auto-generated";
        let error = FieldError::new(below(path, "selector"), FieldErrorKind::Invalid, detail);
        errors.push(error.with_shown(shown_selector(wanted)));
    }
    let labels = &spec["template"]["metadata"]["labels"];
    if wanted.is_null() || !selects(wanted, labels) {
        let detail = "`selector` does not match template `labels`";
        errors.push(invalid(below(path, "template.metadata.labels"), labels, detail));
    }
}

/// Upstream: k8s.io/kubernetes/pkg/apis/batch/validation/validation.go: validateJobSpec
pub(super) fn job_template(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    template(value, path, errors);
    if !matches!(text(&value["spec"], "restartPolicy"), "OnFailure" | "Never") {
        let detail = "valid values: \"OnFailure\", \"Never\"";
        errors.push(required(below(path, "spec.restartPolicy"), detail));
    }
}

/// Upstream: k8s.io/kubernetes/pkg/apis/batch/validation/validation.go: ValidateCronJobCreate
pub(super) fn cron_name(metadata: &Value, path: &str, errors: &mut Vec<FieldError>) {
    /// The CronJob controller appends eleven characters to the name for its jobs, whose limit is 63.
    const NAME_LEN_MAX: usize = 52;
    if text(metadata, "name").len() > NAME_LEN_MAX {
        let detail = format!("must be no more than {NAME_LEN_MAX} characters");
        errors.push(invalid(below(path, "name"), &metadata["name"], &detail));
    }
}

/// Upstream: k8s.io/kubernetes/pkg/apis/batch/validation/validation.go: ValidateJobTemplateSpec
pub(super) fn cron_template(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let (spec, at) = (&value["spec"], below(path, "spec"));
    job_counts(spec, &at, errors);
    job_template(&spec["template"], &below(&at, "template"), errors);
    if !spec["selector"].is_null() {
        let detail = "`selector` will be auto-generated";
        let error = FieldError::new(below(&at, "selector"), FieldErrorKind::Invalid, detail);
        errors.push(error.with_shown(shown_selector(&spec["selector"])));
    }
}

/// Upstream: k8s.io/kubernetes/pkg/apis/batch/validation/validation.go: validateTimeZone
pub(super) fn time_zone(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let Some(zone) = value.as_str() else { return };
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"_+-/".contains(&byte);
    if zone.is_empty() {
        errors.push(invalid(path, value, "timeZone must be nil or non-empty string"));
    } else if !zone.bytes().all(fits) {
        errors.push(invalid(path, value, &format!("unknown time zone {zone}")));
    }
}

/// Upstream: k8s.io/kubernetes/pkg/apis/batch/validation/validation.go: validateScheduleFormat
pub(super) fn schedule(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let text = value.as_str().unwrap_or_default();
    if text.is_empty() {
        return errors.push(required(path, ""));
    }
    if text.contains("TZ") {
        let detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
        return errors.push(invalid(path, value, detail));
    }
    if let Err(problem) = read_schedule(text) {
        errors.push(invalid(path, value, &problem));
    }
}

/// A field of a schedule: its bounds, and the names of its values from the least on.
struct ScheduleField {
    least: i64,
    most: i64,
    names: &'static [&'static str],
}

const SCHEDULE: [ScheduleField; 5] = [
    ScheduleField { least: 0, most: 59, names: &[] },
    ScheduleField { least: 0, most: 23, names: &[] },
    ScheduleField { least: 1, most: 31, names: &[] },
    ScheduleField {
        least: 1,
        most: 12,
        names: &[
            "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
        ],
    },
    ScheduleField { least: 0, most: 6, names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"] },
];

/// Upstream: github.com/robfig/cron/v3/parser.go: Parse
fn read_schedule(text: &str) -> Result<(), String> {
    const NAMED: [&str; 7] =
        ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];
    if text.starts_with('@') {
        let known = NAMED.contains(&text) || text.starts_with("@every ");
        return if known { Ok(()) } else { Err(format!("unrecognized descriptor: {text}")) };
    }
    let fields: Vec<&str> = text.split_whitespace().collect();
    if fields.len() != SCHEDULE.len() {
        let listed = fields.join(" ");
        return Err(format!("expected exactly 5 fields, found {}: [{listed}]", fields.len()));
    }
    for (text, field) in fields.iter().zip(&SCHEDULE) {
        text.split(',').try_for_each(|part| read_range(part, field))?;
    }
    Ok(())
}

/// Upstream: github.com/robfig/cron/v3/parser.go: getRange
fn read_range(text: &str, field: &ScheduleField) -> Result<(), String> {
    let ScheduleField { least, most, names } = *field;
    let number = |part: &str| -> Result<i64, String> {
        let named = names.iter().position(|name| part.eq_ignore_ascii_case(name));
        if let Some(index) = named {
            return Ok(least + i64::try_from(index).unwrap_or_default());
        }
        match part.parse() {
            Ok(number) if number >= 0 => Ok(number),
            Ok(_) => Err(format!("negative number ({part}) not allowed: {part}")),
            Err(_) => Err(format!(
                "failed to parse int from {part}: strconv.Atoi: parsing {part:?}: invalid syntax"
            )),
        }
    };
    let (range, step) = match text.split_once('/') {
        Some((range, step)) => (range, Some(step)),
        None => (text, None),
    };
    let (start, end) = match range.split_once('-') {
        _ if matches!(range, "*" | "?") => (least, most),
        Some((start, end)) => (number(start)?, number(end)?),
        None => {
            let start = number(range)?;
            (start, if step.is_some() { most } else { start })
        }
    };
    if step.map(number).transpose()? == Some(0) {
        return Err(format!("step of range should be a positive number: {text}"));
    }
    if start < least {
        return Err(format!("beginning of range ({start}) below minimum ({least}): {text}"));
    }
    if end > most {
        return Err(format!("end of range ({end}) above maximum ({most}): {text}"));
    }
    if start > end {
        return Err(format!("beginning of range ({start}) beyond end of range ({end}): {text}"));
    }
    Ok(())
}
