//! Cells as `data/cells.tsv` writes them: a path, a function of what is there, a text instead.
use jiff::Timestamp;
use serde_json::Value;

use super::cells::{
    self, Context, Function, events, extensions, jobs, machines, network, scaling, services,
    workloads,
};

/// The functions that the data file may name.
pub(super) const FUNCTIONS: &[(&str, Function)] = &[
    ("access_modes", machines::access_modes),
    ("address_parent", services::address_parent),
    ("age", cells::age),
    ("api_service_available", extensions::api_service_available),
    ("autoscaler_targets", scaling::autoscaler_targets),
    ("capitalized_flag", cells::capitalized_flag),
    ("claim_state", services::claim_state),
    ("condition_status", cells::condition_status),
    ("controller", workloads::controller),
    ("count", cells::count),
    ("data_count", cells::data_count),
    ("definition_versions", extensions::definition_versions),
    ("duration", cells::duration),
    ("endpoints", network::endpoints),
    ("event_count", events::event_count),
    ("event_first_seen", events::event_first_seen),
    ("event_last_seen", events::event_last_seen),
    ("event_object", events::event_object),
    ("event_source", events::event_source),
    ("flag", cells::flag),
    ("has_condition", cells::has_condition_cell),
    ("ingress_class_parameters", network::ingress_class_parameters),
    ("ingress_hosts", network::ingress_hosts),
    ("ingress_ports", network::ingress_ports),
    ("job_completions", jobs::job_completions),
    ("job_duration", jobs::job_duration),
    ("job_status", jobs::job_status),
    ("join", cells::join),
    ("kernel_version", machines::kernel_version),
    ("kind_and_name", cells::kind_and_name),
    ("label_selector", cells::label_selector_cell),
    ("labels", cells::labels_cell),
    ("load_balancer", network::load_balancer),
    ("migrated_resource", services::migrated_resource),
    ("migration_state", services::migration_state),
    ("namespaced_name", cells::namespaced_name),
    ("node_address", machines::node_address),
    ("node_roles", machines::node_roles),
    ("node_status", machines::node_status),
    ("number", cells::number_cell),
    ("pod_ready", workloads::pod_ready),
    ("pod_restarts", workloads::pod_restarts),
    ("pod_status", workloads::pod_status),
    ("policy_parameter", extensions::policy_parameter),
    ("policy_parameter_kind", extensions::policy_parameter_kind),
    ("quota", machines::quota),
    ("ready_of_desired", workloads::ready_of_desired),
    ("request_condition", services::request_condition),
    ("selector", workloads::selector),
    ("service_external", network::service_external),
    ("service_ports", network::service_ports),
    ("slice_addresses", network::slice_addresses),
    ("slice_ports", network::slice_ports),
    ("subjects", cells::subjects),
    ("text", cells::text_cell),
    ("token_requests", services::token_requests),
    ("trimmed", cells::trimmed),
];

/// How a cell is computed from an object.
#[derive(Clone, Debug)]
pub(super) struct CellExpression {
    source: Source,
    /// What is shown where the path leads to nothing or the cell would be empty.
    fallback: Option<&'static str>,
}

#[derive(Clone, Debug)]
enum Source {
    Text(&'static str),
    Path(&'static str),
    RequestContext { function: Function, path: &'static str, argument: &'static str },
}

impl CellExpression {
    /// Reads a cell; `None` if it is not well formed or names an unknown function.
    pub(super) fn parse(text: &'static str) -> Option<Self> {
        if let Some(text) = text.strip_prefix('\'') {
            let text = text.strip_suffix('\'')?;
            return Some(Self { source: Source::Text(text), fallback: None });
        }
        let (source, fallback) = match text.split_once(" or ") {
            Some((source, fallback)) => (source, Some(fallback)),
            None => (text, None),
        };
        let source = match source.strip_suffix(')') {
            Some(context) => {
                let (name, arguments) = context.split_once('(')?;
                let (path, argument) = arguments.split_once(", ").unwrap_or((arguments, ""));
                let (_, function) = FUNCTIONS.iter().find(|(known, _)| *known == name)?;
                let path = path.strip_prefix('.')?;
                Source::RequestContext { function: *function, path, argument }
            }
            None => Source::Path(source.strip_prefix('.')?),
        };
        Some(Self { source, fallback })
    }

    /// The cell of an object.
    pub(super) fn evaluate(&self, object: &Value, now: Timestamp) -> Value {
        let found = match &self.source {
            Source::Text(text) => return (*text).into(),
            Source::Path(path) => at(object, path).clone(),
            Source::RequestContext { function, path, argument } => {
                let value = at(object, path);
                if value.is_null() && self.fallback.is_some() {
                    Value::Null
                } else {
                    function(value, &Context { argument, now })
                }
            }
        };
        if found.is_null() || found == "" {
            self.fallback.unwrap_or_default().into()
        } else {
            found
        }
    }
}

/// The value at a dotted path, null if there is none; the empty path is the object itself.
fn at<'a>(object: &'a Value, path: &str) -> &'a Value {
    if path.is_empty() {
        return object;
    }
    path.split('.').fold(object, |value, segment| &value[segment])
}
