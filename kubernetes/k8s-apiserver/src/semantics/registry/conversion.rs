//! The webhook that converts the objects of a definition between its versions.
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::semantics::webhook::{Endpoint, review_version};

/// Timeout of a call to a conversion webhook.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The `conversion` of a definition whose strategy is a webhook.
#[derive(Clone, Debug)]
pub(crate) struct ConversionWebhook {
    pub(crate) definition: String,
    pub(crate) endpoint: Result<Arc<Endpoint>, String>,
    pub(crate) review_version: &'static str,
}

impl ConversionWebhook {
    /// Reads the conversion of a definition; none if its strategy is not `Webhook`.
    pub(crate) fn read(definition: &Value) -> Option<Self> {
        let conversion = &definition["spec"]["conversion"];
        if conversion["strategy"] != "Webhook" {
            return None;
        }
        let webhook = &conversion["webhook"];
        Some(Self {
            definition: definition["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
            endpoint: Endpoint::read(&webhook["clientConfig"], TIMEOUT).map(Arc::new),
            review_version: review_version(&webhook["conversionReviewVersions"]),
        })
    }
}
