//! Conversion webhooks of definitions that a deletion keeps. With the service that answers them, objects
//! could not be read in other versions than the stored one any more.

use std::collections::BTreeMap;

use plimsoll_api::ObjectKey;
use plimsoll_content::Manifest;

use super::is_definition;
use crate::deletion::{DeletionInputs, LiveObject};
use crate::reconciler::events::OperatorEffect;
use crate::reconciler::handler::OperatorHandler;
use crate::reconciler::removal::{ConversionRemoval, RETRY_INTERVAL};
use crate::reconciler::revision::KeptRevision;
use crate::reconciler::track::TrackedOperator;
use crate::rollout::conversion::converted_definitions;

impl OperatorHandler<'_> {
    /// Removes the conversion webhooks that services of the Operator answer from definitions that stay.
    /// Returns whether none is left.
    pub(super) fn remove_conversions(&mut self, inputs: &DeletionInputs<'_>) -> bool {
        let services = self.operator.conversion_services();
        let stays = |it: &&LiveObject| {
            is_definition(&it.key) && !inputs.shared.contains(&it.key) && it.terminating.is_none()
        };
        let kept: Vec<(&LiveObject, &ObjectKey)> = inputs
            .objects
            .iter()
            .filter(stays)
            .filter_map(|it| Some((it, services.get(&it.key)?)))
            .collect();
        // An object that is being applied could bring a webhook back.
        if !kept.is_empty() && !self.operator.executing.is_empty() {
            return false;
        }
        let now = self.moment.uptime;
        let Some(removal) = &mut self.operator.removal else { return false };
        let mut is_done = true;
        for (definition, service) in kept {
            match removal.conversions.get(&definition.uid) {
                Some(ConversionRemoval::Done) => continue,
                Some(ConversionRemoval::Requested) => {}
                Some(ConversionRemoval::Failed { retry_at, .. }) if *retry_at > now => {}
                Some(ConversionRemoval::Failed { .. }) | None => {
                    let uid = definition.uid.clone();
                    removal.conversions.insert(uid, ConversionRemoval::Requested);
                    self.output.effects.push(OperatorEffect::RemoveConversion {
                        operator: self.name.to_owned(),
                        definition: definition.clone(),
                        service: service.clone(),
                    });
                }
            }
            is_done = false;
        }
        is_done
    }

    /// Handles the response to a request to remove a conversion webhook.
    pub(in crate::reconciler) fn conversion_removed(
        &mut self,
        uid: &str,
        result: Result<(), String>,
    ) {
        let Some(removal) = &mut self.operator.removal else { return };
        let state = match result {
            Ok(()) => ConversionRemoval::Done,
            Err(message) => {
                ConversionRemoval::Failed { message, retry_at: self.moment.uptime + RETRY_INTERVAL }
            }
        };
        removal.conversions.insert(uid.to_owned(), state);
        self.mark_pending();
    }
}

impl TrackedOperator {
    /// Returns the definitions whose objects are converted by a service of the Operator, each with that
    /// service.
    fn conversion_services(&self) -> BTreeMap<ObjectKey, ObjectKey> {
        let converted = |it: &KeptRevision| {
            let objects: Vec<&Manifest> = it.manifests().collect();
            converted_definitions(&objects)
        };
        self.revisions.values().flat_map(converted).collect()
    }
}
