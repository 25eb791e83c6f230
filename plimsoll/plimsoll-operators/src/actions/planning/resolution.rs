//! Answers to queries.

use plimsoll_api::Reason;
use serde_json::json;

use super::install::install_request;
use super::{ActionFailure, ActionPlan, Planner};
use crate::query::{ResolutionAnswer, ResolutionOutcome, answer_request};

impl Planner<'_> {
    pub(super) fn resolution(&self) -> Result<ActionPlan, ActionFailure> {
        let inputs = self.inventory.inputs(self.expressions);
        let (offered, request) = (&self.inventory.offered, install_request(self.action));
        let answer = answer_request(inputs, self.catalogs, offered, &request, &|_| None);
        let result = self.shown(&answer);
        let Some(error) = answer.error else {
            return Ok(ActionPlan { result, ..ActionPlan::default() });
        };
        let reason = match answer.outcome {
            ResolutionOutcome::PackageNotFound => {
                let package = self.unknown(request.names()).unwrap_or_default();
                let failure = self.not_found(package);
                return Err(ActionFailure { answer: Some(result), ..failure });
            }
            ResolutionOutcome::Invalid => Reason::InvalidAction,
            ResolutionOutcome::Solved
            | ResolutionOutcome::Unsatisfiable
            | ResolutionOutcome::LimitExceeded => Reason::ConstraintsUnmet,
        };
        let message =
            if answer.text.is_empty() { error } else { answer.text.trim_end().to_owned() };
        Err(ActionFailure { answer: Some(result), ..ActionFailure::new(reason, message) })
    }

    /// Returns an answer in the requested form: as a terminal, the service or the command with that output shows
    /// it. What has no plan and no conflict is a text in any form.
    fn shown(&self, answer: &ResolutionAnswer) -> String {
        let is_error = matches!(
            answer.outcome,
            ResolutionOutcome::Invalid | ResolutionOutcome::PackageNotFound
        );
        match (self.action.text("parameters.output"), &answer.plan) {
            ("json", _) if !is_error => format!("{}\n", json!(answer)),
            ("plan-json", Some(plan)) => {
                let text = serde_json::to_string_pretty(plan).unwrap_or_default();
                format!("{text}\n")
            }
            _ => answer.transcript(),
        }
    }
}
