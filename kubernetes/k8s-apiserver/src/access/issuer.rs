//! What others need to verify the tokens of service accounts: OpenID Connect Discovery 1.0.
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Response, StatusCode};
use serde_json::json;

use super::Access;
use super::service_account::ISSUER;
use crate::http::body::Body;
use crate::http::respond;
use crate::json::to_bytes;
use crate::request::path::{ISSUER_KEYS, IssuerDocument};

/// The answer with the document.
pub(crate) fn answer(document: IssuerDocument, access: &Access) -> Response<Body> {
    let (media_type, value) = match document {
        IssuerDocument::Configuration => (
            "application/json",
            json!({
                "issuer": ISSUER,
                "jwks_uri": format!("{ISSUER}{ISSUER_KEYS}"),
                "response_types_supported": ["id_token"],
                "subject_types_supported": ["public"],
                "id_token_signing_alg_values_supported": ["EdDSA"],
            }),
        ),
        IssuerDocument::Keys => ("application/jwk-set+json", access.signer().key_set()),
    };
    let mut response = respond::bytes(StatusCode::OK, to_bytes(&value));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=3600"));
    response
}
