//! The audit events of one request.
use std::collections::BTreeMap;
use std::io::Read as _;
use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt as _;
use http::header::{CONTENT_ENCODING, HeaderName, USER_AGENT};
use http::request::Parts;
use http::{HeaderValue, Response, StatusCode};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::policy::{AuditLevel, AuditStage};
use crate::access::attributes::AuthorizationAttributes;
use crate::access::audit::Audit;
use crate::access::connection::Connection;
use crate::clock::Clock;
use crate::http::body::Body;
use crate::user::UserInfo;

const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");

/// The audit record of a request while it is handled.
pub(crate) struct AuditRecord {
    audit: Audit,
    clock: Arc<dyn Clock>,
    level: AuditLevel,
    omitted: Vec<AuditStage>,
    id: String,
    event: Value,
}

impl AuditRecord {
    /// Begins the record of a request; none if the policy does not record it.
    ///
    /// Upstream: k8s.io/apiserver/pkg/audit/request.go: LogRequestMetadata
    pub(crate) fn begin(
        audit: &Audit,
        clock: &Arc<dyn Clock>,
        next_id: impl FnOnce() -> String,
        parts: &Parts,
        user: &UserInfo,
        attributes: &AuthorizationAttributes<'_>,
    ) -> Option<Self> {
        let record = Self::of(audit, clock, next_id, parts, user, attributes)?;
        record.emit(AuditStage::RequestReceived, record.event.clone());
        Some(record)
    }

    /// Records a request that failed authentication, in a single event.
    pub(crate) fn unauthenticated(
        audit: &Audit,
        clock: &Arc<dyn Clock>,
        next_id: impl FnOnce() -> String,
        parts: &Parts,
        attributes: &AuthorizationAttributes<'_>,
    ) {
        let no_user = UserInfo::default();
        let Some(mut record) = Self::of(audit, clock, next_id, parts, &no_user, attributes) else {
            return;
        };
        record.event["responseStatus"] = json!({
            "metadata": {},
            "message": "Authentication failed, attempted: bearer",
            "code": StatusCode::UNAUTHORIZED.as_u16(),
        });
        record.emit(AuditStage::ResponseStarted, record.event.clone());
    }

    fn of(
        audit: &Audit,
        clock: &Arc<dyn Clock>,
        next_id: impl FnOnce() -> String,
        parts: &Parts,
        user: &UserInfo,
        attributes: &AuthorizationAttributes<'_>,
    ) -> Option<Self> {
        let (level, omitted) = audit.policy.judge(user, attributes);
        if level == AuditLevel::None {
            return None;
        }
        let header = |name: &HeaderName| {
            parts.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
        };
        let id = match header(&AUDIT_ID) {
            "" => next_id(),
            given => given.to_owned(),
        };
        let address = parts
            .extensions
            .get::<Connection>()
            .map_or_else(|| "127.0.0.1".to_owned(), |connection| connection.address.to_string());
        let mut event = json!({
            "kind": "Event",
            "apiVersion": "audit.k8s.io/v1",
            "level": format!("{level:?}"),
            "auditID": id,
            "requestURI": parts.uri.path_and_query().map_or("/", |uri| uri.as_str()),
            "verb": attributes.verb,
            "user": user.to_value(),
            "sourceIPs": [address],
            "requestReceivedTimestamp": micros(clock.now()),
        });
        if !header(&USER_AGENT).is_empty() {
            event["userAgent"] = header(&USER_AGENT).into();
        }
        if let Some(reference) = object_reference(attributes) {
            event["objectRef"] = reference;
        }
        Some(Self { audit: audit.clone(), clock: Arc::clone(clock), level, omitted, id, event })
    }

    /// Sets the impersonated user.
    ///
    /// Upstream: k8s.io/apiserver/pkg/audit/request.go: LogImpersonatedUser
    pub(crate) fn impersonated(&mut self, user: &UserInfo) {
        self.event["impersonatedUser"] = user.to_value();
    }

    /// Sets the decision of authorization.
    pub(crate) fn decided(&mut self, allowed: bool, reason: &str) {
        let decision = if allowed { "allow" } else { "forbid" };
        self.event["annotations"] = json!({
            "authorization.k8s.io/decision": decision,
            "authorization.k8s.io/reason": reason,
        });
    }

    /// Adds the annotations of admission.
    pub(crate) fn annotated(&mut self, annotations: &BTreeMap<String, String>) {
        for (key, value) in annotations {
            self.event["annotations"][key] = value.as_str().into();
        }
    }

    /// Sets the body of the request.
    ///
    /// Upstream: k8s.io/apiserver/pkg/audit/request.go: LogRequestObject
    pub(crate) fn requested(&mut self, body: &Bytes) {
        if self.level >= AuditLevel::Request
            && let Some(object) = parse(body)
        {
            self.event["requestObject"] = object;
        }
    }

    /// Records the response; that of a watch is complete when its body was sent.
    ///
    /// Upstream: k8s.io/apiserver/pkg/audit/request.go: LogResponseObject
    pub(crate) fn answered(mut self, mut response: Response<Body>) -> Response<Body> {
        if let Ok(id) = HeaderValue::from_str(&self.id) {
            response.headers_mut().insert(AUDIT_ID, id);
        }
        let status = response.status();
        let mut code = json!({"metadata": {}, "code": status.as_u16()});
        let Some(whole) = response.body_mut().as_whole().cloned() else {
            self.event["responseStatus"] = code;
            self.emit(AuditStage::ResponseStarted, self.event.clone());
            let ending = Ending(Some(self));
            return response.map(|body| {
                Body::stream(body.into_stream().map(move |bytes| {
                    let _ending = &ending;
                    bytes
                }))
            });
        };
        let answer = self.read(&response, &whole, status);
        if !status.is_success()
            && let Some(Value::Object(fields)) = &answer
        {
            for (field, value) in fields {
                if field != "kind" && field != "apiVersion" {
                    code[field] = value.clone();
                }
            }
        }
        self.event["responseStatus"] = code;
        if self.level == AuditLevel::RequestResponse
            && let Some(answer) = answer
        {
            self.event["responseObject"] = answer;
        }
        self.emit(AuditStage::ResponseComplete, self.event.clone());
        response
    }

    /// The response as JSON, if the level includes it.
    fn read(&self, response: &Response<Body>, whole: &Bytes, status: StatusCode) -> Option<Value> {
        if self.level < AuditLevel::RequestResponse && status.is_success() {
            return None;
        }
        if response.headers().get(CONTENT_ENCODING).is_none() {
            return parse(whole);
        }
        let mut plain = Vec::new();
        flate2::read::GzDecoder::new(&whole[..]).read_to_end(&mut plain).ok()?;
        parse(&plain)
    }

    fn emit(&self, stage: AuditStage, mut event: Value) {
        if self.omitted.contains(&stage) {
            return;
        }
        event["stage"] = format!("{stage:?}").into();
        event["stageTimestamp"] = micros(self.clock.now()).into();
        self.audit.sink.record(&event);
    }
}

/// Records the end of a watch when it is dropped.
struct Ending(Option<AuditRecord>);

impl Drop for Ending {
    fn drop(&mut self) {
        if let Some(record) = self.0.take() {
            let event = record.event.clone();
            record.emit(AuditStage::ResponseComplete, event);
        }
    }
}

fn parse(bytes: &[u8]) -> Option<Value> {
    serde_json::from_slice(bytes).ok()
}

fn micros(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

fn object_reference(attributes: &AuthorizationAttributes<'_>) -> Option<Value> {
    let about = attributes.resource.as_ref()?;
    let mut reference = serde_json::Map::new();
    for (field, text) in [
        ("resource", about.resource),
        ("namespace", about.namespace),
        ("name", &about.name),
        ("apiGroup", about.group),
        ("apiVersion", about.version),
        ("subresource", about.subresource),
    ] {
        if !text.is_empty() {
            reference.insert(field.to_owned(), text.into());
        }
    }
    Some(reference.into())
}
