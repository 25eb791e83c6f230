//! Authentication, authorization, impersonation and audit.
//!
//! [`admit`] runs before every request: it authenticates the user (`authenticate`), resolves
//! impersonation (`impersonate`) and authorizes the request (`rbac`).
//! [`AuthorizedRequest::complete`] runs after it and completes the audit record. The endpoints of
//! access reviews (`review`) and of service account tokens (`token_request`) are here too, and the
//! check that roles grant nothing that their writer does not have (`escalation`), which is a part
//! of admission.
//!
//! Upstream: k8s.io/apiserver/pkg/server/config.go: DefaultBuildHandlerChain
pub(crate) mod attributes;
pub(crate) mod audit;
pub(crate) mod authenticate;
mod browser;
pub(crate) mod certificates;
pub(crate) mod connection;
pub(crate) mod escalation;
mod impersonate;
pub(crate) mod issuer;
pub(crate) mod keys;
pub(crate) mod options;
pub(crate) mod rbac;
pub(crate) mod refusal;
pub(crate) mod review;
pub(crate) mod service_account;
mod token;
pub(crate) mod token_request;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bytes::Bytes;
use http::Response;
use http::request::Parts;

use crate::http::body::Body;
use crate::http::respond;
use crate::ids::Ids;
use crate::request::info::RequestInfo;
use crate::semantics::registry::ApiResource;
use crate::shared_cluster::SharedCluster;
use crate::status::ApiError;
use crate::user::{MASTERS, UserInfo};

use attributes::AuthorizationAttributes;
use audit::{Audit, AuditRecord};
use certificates::Certificates;
use impersonate::LastImpersonationModes;
use keys::RootSecret;
use options::{AccessOptions, Authorization, FallbackUser, StaticToken};
use rbac::Authorizer;
use token::Signer;

/// Makes the ids of tokens and audit events differ from those of objects.
const IDS_SEED: u64 = 0x6163_6365_7373;

/// The configuration and the state of authentication, authorization and audit.
pub(crate) struct Access {
    secret: RootSecret,
    authorizer: Arc<Authorizer>,
    tokens: Vec<StaticToken>,
    in_process: FallbackUser,
    plain: FallbackUser,
    audit: Option<Audit>,
    signer: OnceLock<Signer>,
    certificates: OnceLock<Certificates>,
    token_request: OnceLock<Arc<ApiResource>>,
    last_modes: LastImpersonationModes,
    ids: Mutex<Ids>,
}

impl Access {
    /// Access by `options`; `seed` is that of the ids of tokens and audit events.
    pub(crate) fn new(options: AccessOptions, seed: u64) -> Self {
        let AccessOptions { authorization, tokens, in_process, plain, audit, keys } = options;
        Self {
            secret: RootSecret::new(keys),
            authorizer: Arc::new(Authorizer::new(authorization == Authorization::AlwaysAllow)),
            tokens,
            in_process,
            plain,
            audit,
            signer: OnceLock::new(),
            certificates: OnceLock::new(),
            token_request: OnceLock::new(),
            last_modes: LastImpersonationModes::default(),
            ids: Mutex::new(Ids::new(seed ^ IDS_SEED)),
        }
    }

    /// Decides who may do what.
    pub(crate) fn authorizer(&self) -> &Arc<Authorizer> {
        &self.authorizer
    }

    /// The certificates of the cluster.
    pub(crate) fn certificates(&self) -> &Certificates {
        self.certificates.get_or_init(|| {
            Certificates::new(self.secret.clone())
                .expect("all that the authority's certificate says is ours")
        })
    }

    fn signer(&self) -> &Signer {
        self.signer.get_or_init(|| Signer::new(&self.secret))
    }

    fn token_request(&self) -> &Arc<ApiResource> {
        self.token_request.get_or_init(token_request::resource)
    }

    fn next_id(&self) -> String {
        self.ids.lock().unwrap_or_else(PoisonError::into_inner).next_uid()
    }
}

/// A request that was authorized.
pub(crate) struct AuthorizedRequest {
    /// The authenticated user, or the impersonated one.
    pub(crate) user: Arc<UserInfo>,
    record: Option<AuditRecord>,
}

/// Authenticates and authorizes a request.
///
/// # Errors
/// With the response, when the user cannot be authenticated or is not authorized.
pub(crate) fn admit(
    access: &Access,
    cluster: &SharedCluster,
    parts: &Parts,
    info: &RequestInfo,
    body: &Bytes,
) -> Result<AuthorizedRequest, Box<Response<Body>>> {
    let user = authenticate::authenticate(access, cluster, parts).map_err(|error| {
        if let Some(audit) = &access.audit {
            let attributes = AuthorizationAttributes::of(info);
            let next_id = || access.next_id();
            AuditRecord::unauthenticated(audit, cluster.clock(), next_id, parts, &attributes);
        }
        Box::new(respond::error(&error))
    })?;
    let is_trusted = user.is_in(MASTERS) || access.authorizer.allows_everything();
    if is_trusted && access.audit.is_none() && !impersonate::is_asked_for(&parts.headers) {
        return Ok(AuthorizedRequest { user: Arc::new(user), record: None });
    }
    let attributes = AuthorizationAttributes::of(info);
    let mut record = access.audit.as_ref().and_then(|audit| {
        AuditRecord::begin(audit, cluster.clock(), || access.next_id(), parts, &user, &attributes)
    });
    let allowed = authorize(access, cluster, parts, user, &attributes, record.as_mut());
    if let Some(record) = &mut record {
        record.requested(body);
    }
    match allowed {
        Ok(user) => Ok(AuthorizedRequest { user: Arc::new(user), record }),
        Err(error) => {
            let response = respond::error(&error);
            Err(Box::new(match record {
                Some(record) => record.answered(response),
                None => response,
            }))
        }
    }
}

fn authorize(
    access: &Access,
    cluster: &SharedCluster,
    parts: &Parts,
    user: UserInfo,
    attributes: &AuthorizationAttributes<'_>,
    mut record: Option<&mut AuditRecord>,
) -> Result<UserInfo, ApiError> {
    cluster.read(|cluster| {
        let impersonated = impersonate::impersonate(
            &access.last_modes,
            &access.authorizer,
            cluster,
            &user,
            attributes,
            &parts.headers,
        )?;
        if let (Some(record), Some(user)) = (&mut record, &impersonated) {
            record.impersonated(user);
        }
        let user = impersonated.unwrap_or(user);
        let decision = access.authorizer.authorize(cluster, &user, attributes);
        if let Some(record) = record {
            record.decided(decision.allowed, &decision.reason);
        }
        if decision.allowed {
            Ok(user)
        } else {
            Err(refusal::forbidden(&user, attributes, &decision.reason))
        }
    })
}

impl AuthorizedRequest {
    /// Adds annotations to the audit event of the request.
    pub(crate) fn annotate(&mut self, annotations: &BTreeMap<String, String>) {
        if let Some(record) = &mut self.record {
            record.annotated(annotations);
        }
    }

    /// Completes the audit record of the request with its response.
    pub(crate) fn complete(self, response: Response<Body>) -> Response<Body> {
        match self.record {
            Some(record) => record.answered(response),
            None => response,
        }
    }
}
