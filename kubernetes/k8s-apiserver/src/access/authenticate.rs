//! Authentication: client certificates, bearer tokens, or the default user of a transport.
use http::header::AUTHORIZATION;
use http::request::Parts;
use jiff::Timestamp;

use super::Access;
use super::browser;
use super::connection::{Connection, Transport};
use super::options::FallbackUser;
use super::rbac::quoted;
use super::refusal::unauthorized;
use super::service_account::{Claims, ISSUER};
use super::token::TokenError;
use crate::semantics::cluster::Cluster;
use crate::shared_cluster::SharedCluster;
use crate::status::ApiError;
use crate::user::{AUTHENTICATED, UserInfo};

/// Authenticates the user of a request.
///
/// # Errors
/// When it carries credentials that are not valid, when it carries none and no user is anonymous, or
/// when those who send none are administrators and a page in a browser may have sent it.
///
/// Upstream: k8s.io/apiserver/pkg/endpoints/filters/authentication.go: WithAuthentication
/// Upstream: k8s.io/kubernetes/pkg/kubeapiserver/options/authentication.go: ApplyAuthorization
pub(crate) fn authenticate(
    access: &Access,
    cluster: &SharedCluster,
    parts: &Parts,
) -> Result<UserInfo, ApiError> {
    if let Some(user) = parts.extensions.get::<UserInfo>() {
        return Ok(user.clone());
    }
    let connection = parts.extensions.get::<Connection>();
    if let Some(user) = connection.and_then(|connection| connection.certificate.as_ref()) {
        return Ok(user.clone());
    }
    if let Some(token) = bearer_token(parts) {
        let now = cluster.now();
        return cluster.read(|cluster| {
            of_token(access, cluster, token, &[ISSUER], now)
                .map(|(user, _)| user)
                .map_err(|_| unauthorized())
        });
    }
    let unidentified = match connection.map(|connection| connection.transport) {
        None => access.in_process,
        Some(Transport::Plain) => access.plain,
        // As in kube-apiserver, there is no anonymous user where everything is allowed.
        Some(Transport::Tls) if access.authorizer().allows_everything() => {
            return Err(unauthorized());
        }
        Some(Transport::Tls) => FallbackUser::Anonymous,
    };
    if unidentified == FallbackUser::Administrator {
        check_credentials(parts)?;
        if connection.is_some() {
            browser::refuse(parts)?;
        }
    }
    Ok(unidentified.user())
}

/// Checks that a request that becomes the administrator's carries no credentials at all: what is
/// not understood is not a reason to allow everything.
fn check_credentials(parts: &Parts) -> Result<(), ApiError> {
    if parts.headers.contains_key(AUTHORIZATION) { Err(unauthorized()) } else { Ok(()) }
}

/// Upstream: k8s.io/apiserver/pkg/authentication/request/bearertoken/bearertoken.go: AuthenticateRequest
fn bearer_token(parts: &Parts) -> Option<&str> {
    let value = parts.headers.get(AUTHORIZATION)?.to_str().ok()?.trim();
    let (scheme, token) = value.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// The user of a bearer token, and those of `audiences` that it is valid for.
///
/// # Errors
/// When the token is not valid, with the message of token reviews.
pub(crate) fn of_token<'a>(
    access: &Access,
    cluster: &Cluster,
    token: &str,
    audiences: &[&'a str],
    now: Timestamp,
) -> Result<(UserInfo, Vec<&'a str>), String> {
    const INVALID: &str = "invalid bearer token";
    let known = access.tokens.iter().find(|known| known.token == token);
    if let Some(known) = known.filter(|_| audiences.contains(&ISSUER)) {
        let mut user = known.user.clone();
        if !user.is_in(AUTHENTICATED) {
            user.groups.push(AUTHENTICATED.to_owned());
        }
        return Ok((user, vec![ISSUER]));
    }
    let claims = access.signer().verify(token, ISSUER).map_err(|error| match error {
        TokenError::Foreign => INVALID.to_owned(),
        TokenError::Signature => format!("[{INVALID}, {error}]"),
    })?;
    let claims = Claims::read(&claims);
    let meant: Vec<&str> = audiences
        .iter()
        .copied()
        .filter(|audience| claims.audiences.iter().any(|found| found == audience))
        .collect();
    if meant.is_empty() {
        let wanted: Vec<String> = audiences.iter().map(|text| (*text).to_owned()).collect();
        return Err(format!(
            "[{INVALID}, token audiences {} is invalid for the target audiences {}]",
            quoted(&claims.audiences),
            quoted(&wanted)
        ));
    }
    let user = claims.user(cluster, now).map_err(|error| format!("[{INVALID}, {error}]"))?;
    Ok((user, meant))
}
