//! What an API server's refusal means (CV-12.2).

use plimsoll_api::Reason;

/// Start of the message with which an API server refuses an object of a missing namespace.
const NAMESPACE_MISSING: &str = "namespaces \"";
/// Part of the message with which an API server refuses an object of a namespace that ends.
const NAMESPACE_TERMINATING: &str = "because it is being terminated";
/// Parts of the messages with which an API server answers for a resource it does not serve.
const NOT_SERVED: [&str; 2] = ["could not find the requested resource", "404 page not found"];

/// What precedes the words of an admission policy or of a webhook that denies a request.
// Upstream: k8s.io/apiserver/pkg/admission/plugin/webhook/errors/statuserror.go: ToStatusErr
const DENIALS: [&str; 2] = ["denied request: ", "denied the request: "];

/// Tells what a `Status` of the API server means: the reason that conditions name, and the cause
/// in words: what the reason means, then what the server said. Goes by `reason`, and by the HTTP
/// code where that says nothing.
pub fn from_api_status(code: u16, reason: &str, message: &str) -> (Reason, String) {
    let meaning = match reason {
        "NotFound" => not_found(message),
        "AlreadyExists" => Reason::UpdatePayloadResourceNotFound,
        "Conflict" => Reason::UpdatePayloadResourceConflict,
        "Timeout" | "ServiceUnavailable" => Reason::UpdatePayloadClusterDown,
        "InternalError" => Reason::UpdatePayloadClusterError,
        "Invalid" => Reason::UpdatePayloadResourceInvalid,
        "Unauthorized" => Reason::UpdatePayloadClusterUnauthorized,
        "Forbidden" => forbidden(message),
        "ServerTimeout" | "TooManyRequests" => Reason::UpdatePayloadClusterOverloaded,
        _ => match code {
            401 => Reason::UpdatePayloadClusterUnauthorized,
            403 => forbidden(message),
            404 => not_found(message),
            409 => Reason::UpdatePayloadResourceConflict,
            422 => Reason::UpdatePayloadResourceInvalid,
            429 => Reason::UpdatePayloadClusterOverloaded,
            500 => Reason::UpdatePayloadClusterError,
            502..=504 => Reason::UpdatePayloadClusterDown,
            _ => Reason::UpdatePayloadFailed,
        },
    };
    (meaning, cause(meaning, message))
}

/// What a server said of an object with sensitive values, without what may quote them: of a refusal
/// for its content, at most the `fields` that are wrong; of a denial, who denies it.
pub fn without_values(code: u16, message: &str, fields: &[&str]) -> String {
    const WITHHELD: &str = "the rest of the message may quote sensitive values and is withheld";
    let denial = DENIALS.iter().filter_map(|text| Some(message.find(text)? + text.len())).min();
    match (code, denial) {
        (_, Some(end)) => format!("{}({WITHHELD})", &message[..end]),
        (401 | 403 | 404 | 409 | 429 | 502..=504, None) => message.to_owned(),
        (_, None) if fields.is_empty() => format!("HTTP status {code} ({WITHHELD})"),
        (_, None) => format!("HTTP status {code}, about {} ({WITHHELD})", fields.join(", ")),
    }
}

/// The cause of a failure in words: what its reason means, then what was said about it.
pub fn cause(reason: Reason, said: &str) -> String {
    match (meaning(reason), said) {
        ("", said) => said.to_owned(),
        (meaning, "") => meaning.to_owned(),
        (meaning, said) => format!("{meaning}: {said}"),
    }
}

/// What a reason means, as messages say it; empty if the reason says nothing beyond the failure.
fn meaning(reason: Reason) -> &'static str {
    match reason {
        Reason::UpdatePayloadResourceNotFound => "resource may have been deleted",
        Reason::UpdatePayloadResourceConflict => "someone else is updating this resource",
        Reason::UpdatePayloadClusterDown => "the server is down or not responding",
        Reason::UpdatePayloadClusterError => "the server is reporting an internal error",
        Reason::UpdatePayloadResourceInvalid => {
            "the object is invalid, possibly due to local cluster configuration"
        }
        Reason::UpdatePayloadClusterUnauthorized => "could not authenticate to the server",
        Reason::UpdatePayloadResourceForbidden => {
            "the server has forbidden updates to this resource"
        }
        Reason::UpdatePayloadClusterOverloaded => {
            "the server is overloaded and is not accepting updates"
        }
        Reason::UpdatePayloadResourceTypeMissing => {
            "the server does not recognize this resource, check extension API servers"
        }
        Reason::NamespaceMissing => "the namespace does not exist",
        Reason::NamespaceTerminating => "the namespace is being deleted",
        _ => "",
    }
}

/// The message of a failure to apply a manifest, number `number` (from 1) of `total`.
pub fn could_not_update(object: &str, number: usize, total: usize, cause: &str) -> String {
    if cause.is_empty() {
        format!("Could not update {object} ({number} of {total})")
    } else {
        format!("Could not update {object} ({number} of {total}): {cause}")
    }
}

/// Server-side apply creates what is missing, so something else is: the namespace or the kind.
fn not_found(message: &str) -> Reason {
    if message.starts_with(NAMESPACE_MISSING) {
        Reason::NamespaceMissing
    } else if NOT_SERVED.iter().any(|text| message.contains(text)) {
        Reason::UpdatePayloadResourceTypeMissing
    } else {
        Reason::UpdatePayloadResourceNotFound
    }
}

fn forbidden(message: &str) -> Reason {
    if message.contains(NAMESPACE_TERMINATING) {
        Reason::NamespaceTerminating
    } else {
        Reason::UpdatePayloadResourceForbidden
    }
}
