//! The errors of requests: `metav1.Status` with reason, code, details and message.
//!
//! Upstream: k8s.io/apimachinery/pkg/api/errors/errors.go: StatusError
use http::StatusCode;
use k8s_schema::FieldError;
use serde_json::{Value, json};

/// The result of a request.
pub(crate) type Result<T> = std::result::Result<T, ApiError>;

/// The reason of a failed request, which clients branch on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StatusReason {
    AlreadyExists,
    BadRequest,
    Conflict,
    Expired,
    Forbidden,
    InternalError,
    Invalid,
    MethodNotAllowed,
    NotAcceptable,
    NotFound,
    RequestEntityTooLarge,
    Timeout,
    TooManyRequests,
    /// No reason; the code is that of an internal error.
    Unknown,
    Unauthorized,
    UnsupportedMediaType,
}

impl StatusReason {
    fn name(self) -> &'static str {
        match self {
            Self::AlreadyExists => "AlreadyExists",
            Self::BadRequest => "BadRequest",
            Self::Conflict => "Conflict",
            Self::Expired => "Expired",
            Self::Forbidden => "Forbidden",
            Self::InternalError => "InternalError",
            Self::Invalid => "Invalid",
            Self::MethodNotAllowed => "MethodNotAllowed",
            Self::NotAcceptable => "NotAcceptable",
            Self::NotFound => "NotFound",
            Self::RequestEntityTooLarge => "RequestEntityTooLarge",
            Self::Timeout => "Timeout",
            Self::TooManyRequests => "TooManyRequests",
            Self::Unknown => "",
            Self::Unauthorized => "Unauthorized",
            Self::UnsupportedMediaType => "UnsupportedMediaType",
        }
    }

    fn code(self) -> StatusCode {
        match self {
            Self::AlreadyExists | Self::Conflict => StatusCode::CONFLICT,
            Self::BadRequest => StatusCode::BAD_REQUEST,
            Self::Expired => StatusCode::GONE,
            Self::Forbidden => StatusCode::FORBIDDEN,
            Self::InternalError | Self::Unknown => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Invalid => StatusCode::UNPROCESSABLE_ENTITY,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::NotAcceptable => StatusCode::NOT_ACCEPTABLE,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::RequestEntityTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Timeout => StatusCode::GATEWAY_TIMEOUT,
            Self::TooManyRequests => StatusCode::TOO_MANY_REQUESTS,
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        }
    }
}

/// The details of an error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StatusDetails {
    pub(crate) name: String,
    pub(crate) group: String,
    pub(crate) kind: String,
    pub(crate) uid: String,
    pub(crate) causes: Vec<StatusCause>,
    pub(crate) retry_after_seconds: u32,
    /// The status of a webhook, which replaces everything but the message.
    pub(crate) verbatim: Option<Value>,
}

/// One of several causes of an error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StatusCause {
    pub(crate) reason: String,
    pub(crate) message: String,
    pub(crate) field: String,
}

/// The resource or kind that an error message is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subject<'a> {
    /// API group.
    pub(crate) group: &'a str,
    /// Plural resource name, or the kind where a message shows the kind.
    pub(crate) noun: &'a str,
}

impl std::fmt::Display for Subject<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(self.noun)?;
        if !self.group.is_empty() {
            write!(out, ".{}", self.group)?;
        }
        Ok(())
    }
}

/// The error of a failed request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct ApiError {
    pub(crate) reason: StatusReason,
    pub(crate) message: String,
    pub(crate) details: Option<Box<StatusDetails>>,
    /// A token that continues an expired list inconsistently; none for other errors.
    pub(crate) continue_token: Option<Box<str>>,
}

impl ApiError {
    /// An error without details.
    pub(crate) fn new(reason: StatusReason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), details: None, continue_token: None }
    }

    /// The request is malformed.
    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusReason::BadRequest, message)
    }

    /// An internal error.
    pub(crate) fn internal(message: impl std::fmt::Display) -> Self {
        let message = message.to_string();
        Self::new(StatusReason::InternalError, format!("Internal error occurred: {message}"))
            .with_causes([StatusCause { message, ..StatusCause::default() }])
    }

    /// A denial by a webhook, which may set the code, the reason and details.
    pub(crate) fn by_webhook(message: String, status: &Value) -> Self {
        let refusal = StatusCode::BAD_REQUEST.as_u16();
        let code = status["code"].as_u64().and_then(|code| u16::try_from(code).ok());
        let mut verbatim = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": message,
            "code": code.unwrap_or_default().max(refusal),
        });
        for field in ["reason", "details"] {
            if let Some(value) = status.get(field).filter(|value| !value.is_null()) {
                verbatim[field] = value.clone();
            }
        }
        let mut error = Self::new(StatusReason::Unknown, message);
        error.details.get_or_insert_default().verbatim = Some(verbatim);
        error
    }

    /// The same error under another reason and code.
    #[must_use]
    pub(crate) fn with_reason(mut self, reason: &str, code: u16) -> Self {
        let mut status = self.to_status();
        status["reason"] = reason.into();
        status["code"] = code.into();
        self.details.get_or_insert_default().verbatim = Some(status);
        self
    }

    fn verbatim(&self) -> Option<&Value> {
        self.details.as_ref()?.verbatim.as_ref()
    }

    /// A panic while the request was handled, which changed nothing.
    pub(crate) fn panicked() -> Self {
        Self::new(
            StatusReason::InternalError,
            "This request caused apiserver to panic. Look in the logs for details.",
        )
    }

    /// A write panicked and may be half done, so the cluster cannot be used any more.
    pub(crate) fn poisoned() -> Self {
        Self::new(
            StatusReason::InternalError,
            "the cluster is unusable: a write panicked before it was complete; restart the server \
             or restore a snapshot",
        )
    }

    /// The path is not served.
    ///
    /// Upstream: k8s.io/apimachinery/pkg/api/errors/errors.go: NewGenericServerResponse
    pub(crate) fn no_such_path() -> Self {
        Self {
            details: Some(Box::default()),
            ..Self::new(StatusReason::NotFound, "the server could not find the requested resource")
        }
    }

    /// The path does not support the method.
    ///
    /// Upstream: k8s.io/apimachinery/pkg/api/errors/errors.go: NewGenericServerResponse
    pub(crate) fn method_not_allowed() -> Self {
        Self {
            details: Some(Box::default()),
            ..Self::new(
                StatusReason::MethodNotAllowed,
                "the server does not allow this method on the requested resource",
            )
        }
    }

    /// The object does not exist.
    ///
    /// Upstream: k8s.io/apimachinery/pkg/api/errors/errors.go: NewNotFound
    pub(crate) fn not_found(subject: Subject<'_>, name: &str) -> Self {
        Self::about(
            StatusReason::NotFound,
            subject,
            name,
            format!("{subject} {} not found", quoted(name)),
        )
    }

    /// The object exists already.
    ///
    /// Upstream: k8s.io/apimachinery/pkg/api/errors/errors.go: NewAlreadyExists
    pub(crate) fn already_exists(subject: Subject<'_>, name: &str) -> Self {
        Self::about(
            StatusReason::AlreadyExists,
            subject,
            name,
            format!("{subject} \"{name}\" already exists"),
        )
    }

    /// The write conflicts with the present state.
    ///
    /// Upstream: k8s.io/apimachinery/pkg/api/errors/errors.go: NewConflict
    pub(crate) fn conflict(subject: Subject<'_>, name: &str, why: &str) -> Self {
        Self::about(
            StatusReason::Conflict,
            subject,
            name,
            format!("Operation cannot be fulfilled on {subject} \"{name}\": {why}"),
        )
    }

    /// The write is based on an older version of the object.
    pub(crate) fn modified(subject: Subject<'_>, name: &str) -> Self {
        Self::conflict(
            subject,
            name,
            "the object has been modified; please apply your changes to the latest version and try again",
        )
    }

    /// The write is not permitted.
    ///
    /// Upstream: k8s.io/apimachinery/pkg/api/errors/errors.go: NewForbidden
    pub(crate) fn forbidden(subject: Subject<'_>, name: &str, why: &str) -> Self {
        Self::about(
            StatusReason::Forbidden,
            subject,
            name,
            format!("{subject} \"{name}\" is forbidden: {why}"),
        )
    }

    /// The object is invalid; `subject` is its kind.
    ///
    /// Upstream: k8s.io/apimachinery/pkg/api/errors/errors.go: NewInvalid
    pub(crate) fn invalid(subject: Subject<'_>, name: &str, errors: &[FieldError]) -> Self {
        let listed = match errors {
            [one] => one.to_string(),
            _ => format!(
                "[{}]",
                errors.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
            ),
        };
        let causes = errors.iter().map(|error| StatusCause {
            reason: error.kind.cause_reason().to_owned(),
            message: error.message(),
            field: error.path.clone(),
        });
        Self::about(
            StatusReason::Invalid,
            subject,
            name,
            format!("{subject} \"{name}\" is invalid: {listed}"),
        )
        .with_causes(causes)
    }

    /// The same error with causes.
    #[must_use]
    pub(crate) fn with_causes(mut self, causes: impl IntoIterator<Item = StatusCause>) -> Self {
        self.details.get_or_insert_default().causes.extend(causes);
        self
    }

    fn about(reason: StatusReason, subject: Subject<'_>, name: &str, message: String) -> Self {
        Self {
            reason,
            message,
            details: Some(Box::new(StatusDetails {
                name: name.to_owned(),
                group: subject.group.to_owned(),
                kind: subject.noun.to_owned(),
                ..StatusDetails::default()
            })),
            continue_token: None,
        }
    }

    /// The HTTP status.
    pub(crate) fn code(&self) -> StatusCode {
        self.verbatim()
            .and_then(|status| {
                StatusCode::from_u16(u16::try_from(status["code"].as_u64()?).ok()?).ok()
            })
            .unwrap_or_else(|| self.reason.code())
    }

    /// The `Status` document.
    pub(crate) fn to_status(&self) -> Value {
        if let Some(status) = self.verbatim() {
            return status.clone();
        }
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "code": self.code().as_u16(),
        });
        if self.reason != StatusReason::Unknown {
            status["reason"] = self.reason.name().into();
        }
        if let Some(details) = &self.details {
            status["details"] = details.to_value();
        }
        if let Some(token) = &self.continue_token {
            status["metadata"]["continue"] = (**token).into();
        }
        status
    }
}

/// A quoted name; names from paths may contain any character.
fn quoted(name: &str) -> String {
    let mut out = String::from('"');
    for character in name.chars() {
        match character {
            '"' | '\\' => out.extend(['\\', character]),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\0'..=' ' | '\x7f' if character != ' ' => {
                out.push_str(&format!("\\x{:02x}", u32::from(character)));
            }
            _ => out.push(character),
        }
    }
    out.push('"');
    out
}

impl StatusDetails {
    /// The `details` of a `Status` document, without empty fields.
    pub(crate) fn to_value(&self) -> Value {
        let mut details = serde_json::Map::new();
        for (key, text) in
            [("name", &self.name), ("group", &self.group), ("kind", &self.kind), ("uid", &self.uid)]
        {
            if !text.is_empty() {
                details.insert(key.to_owned(), text.as_str().into());
            }
        }
        if !self.causes.is_empty() {
            let causes = self.causes.iter().map(StatusCause::to_value).collect();
            details.insert("causes".to_owned(), Value::Array(causes));
        }
        if self.retry_after_seconds > 0 {
            details.insert("retryAfterSeconds".to_owned(), self.retry_after_seconds.into());
        }
        Value::Object(details)
    }
}

impl StatusCause {
    fn to_value(&self) -> Value {
        let mut cause = serde_json::Map::new();
        for (key, text) in
            [("reason", &self.reason), ("message", &self.message), ("field", &self.field)]
        {
            if !text.is_empty() {
                cause.insert(key.to_owned(), text.as_str().into());
            }
        }
        Value::Object(cause)
    }
}
