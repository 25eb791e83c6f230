//! What others need to verify the tokens of service accounts: OpenID Connect Discovery 1.0.
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Response, StatusCode};
use serde_json::json;

use super::Access;
use super::service_account::ISSUER;
use crate::http::body::Body;
use crate::http::{encode, respond};

/// Where the issuer says what it is.
pub(crate) const CONFIGURATION: &str = "/.well-known/openid-configuration";

/// Where its public keys are.
pub(crate) const KEYS: &str = "/openid/v1/jwks";

/// A document about the issuer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Document {
    /// What it is.
    Configuration,
    /// Its public keys.
    Keys,
}

impl Document {
    /// The document at a path.
    pub(crate) fn at(path: &str) -> Option<Self> {
        match path {
            CONFIGURATION => Some(Self::Configuration),
            KEYS => Some(Self::Keys),
            _ => None,
        }
    }

    /// The answer with the document.
    pub(crate) fn answer(self, access: &Access) -> Response<Body> {
        let (media_type, value) = match self {
            Self::Configuration => (
                "application/json",
                json!({
                    "issuer": ISSUER,
                    "jwks_uri": format!("{ISSUER}{KEYS}"),
                    "response_types_supported": ["id_token"],
                    "subject_types_supported": ["public"],
                    "id_token_signing_alg_values_supported": ["EdDSA"],
                }),
            ),
            Self::Keys => ("application/jwk-set+json", access.signer().key_set()),
        };
        let mut response = respond::bytes(StatusCode::OK, encode::json(&value));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=3600"));
        response
    }
}
