//! Which failures of a request pass by themselves, and what a failure means otherwise.

use std::error::Error;
use std::io;
use std::time::Duration;

use oci_client::errors::{DigestError, OciDistributionError, OciErrorCode};

use super::error::RegistryError;

/// How often a request is made before its failure counts. With the waits it is 15 s until then.
const ATTEMPTS: u32 = 6;
/// The same while there is no connection: 3 s, since there may be another place to look at.
const CONNECT_ATTEMPTS: u32 = 4;
/// How much longer the waits are for a registry that limits the rate of requests: 2 minutes in all.
/// The library does not tell what the registry asks for in `Retry-After`.
const RATE_LIMIT_FACTOR: u32 = 8;
/// The wait after the first failure, in production; it doubles after each further one.
pub(super) const FIRST_WAIT: Duration = Duration::from_millis(500);
/// Most bytes of a message of a registry that are shown.
const MESSAGE_SIZE_MAX: usize = 200;

/// A failure that passes by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Transient {
    /// There is no connection.
    NoConnection,
    /// The registry was asked too often.
    RateLimit,
    /// The connection broke off, or the registry has a problem.
    Interruption,
}

/// Failures in a row, and how long to wait after each.
#[derive(Debug)]
pub(super) struct Failures {
    first_wait: Duration,
    count: u32,
}

impl Failures {
    pub(super) fn none(first_wait: Duration) -> Self {
        Self { first_wait, count: 0 }
    }

    /// Counts a failure, and waits; `false` if there were too many.
    pub(super) async fn may_retry(&mut self, failure: Transient) -> bool {
        self.count += 1;
        let (attempts, factor) = match failure {
            Transient::NoConnection => (CONNECT_ATTEMPTS, 1),
            Transient::RateLimit => (ATTEMPTS, RATE_LIMIT_FACTOR),
            Transient::Interruption => (ATTEMPTS, 1),
        };
        if self.count >= attempts {
            return false;
        }
        tokio::time::sleep(self.first_wait * factor * 2_u32.pow(self.count - 1)).await;
        true
    }

    /// Forgets the failures, since something was achieved.
    pub(super) fn forget(&mut self) {
        self.count = 0;
    }
}

/// Whether the same request may succeed soon: there was no connection, it broke off, or the registry
/// is overloaded.
pub(super) fn transient(error: &OciDistributionError) -> Option<Transient> {
    match error {
        OciDistributionError::RequestError(error) => match error.status() {
            Some(status) => transient_status(status.as_u16()),
            None if certificate_problem(error).is_some() => None,
            None if error.is_connect() => Some(Transient::NoConnection),
            None => {
                let is_of_transfer = error.is_timeout() || error.is_request();
                let is_of_content = error.is_body() || error.is_decode();
                (is_of_transfer || is_of_content).then_some(Transient::Interruption)
            }
        },
        OciDistributionError::ServerError { code, .. } => transient_status(*code),
        OciDistributionError::RegistryError { envelope, .. } => {
            let is_limit =
                envelope.errors.iter().any(|it| it.code == OciErrorCode::Toomanyrequests);
            is_limit.then_some(Transient::RateLimit)
        }
        OciDistributionError::IoError(error) => {
            (!is_mismatch(error)).then_some(Transient::Interruption)
        }
        _ => None,
    }
}

fn transient_status(status: u16) -> Option<Transient> {
    match status {
        429 => Some(Transient::RateLimit),
        501 => None,
        500..600 => Some(Transient::Interruption),
        _ => None,
    }
}

/// Whether a stream ended with content that does not match its digest.
pub(super) fn is_mismatch(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|it| it.is::<DigestError>())
}

/// Whether a request got no TLS connection for another reason than the certificate: then there may be
/// a server that speaks plain HTTP.
pub(super) fn is_without_tls(error: &OciDistributionError) -> bool {
    match error {
        OciDistributionError::RequestError(error) => {
            error.is_connect() && certificate_problem(error).is_none()
        }
        _ => false,
    }
}

/// What is wrong with the certificate of a server, if that is what a request failed for.
fn certificate_problem(error: &(dyn Error + 'static)) -> Option<String> {
    causes(error).find_map(|cause| match cause.downcast_ref::<rustls::Error>() {
        Some(problem @ rustls::Error::InvalidCertificate(_)) => Some(problem.to_string()),
        _ => None,
    })
}

/// An error and its causes.
fn causes<'e>(error: &'e (dyn Error + 'static)) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error| cause(*error))
}

/// The cause of an error. An IO error that wraps another one passes that over when it is asked for its
/// source.
fn cause<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e (dyn Error + 'static)> {
    match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        Some(wrapped) => Some(wrapped),
        None => error.source(),
    }
}

/// What a failure means for who wanted something of a repository.
pub(super) fn explained(
    error: &OciDistributionError,
    host: &str,
    reference: &str,
    credentials: &str,
) -> RegistryError {
    let host = host.to_owned();
    let reference = reference.to_owned();
    // Which blob it was about is of no interest.
    let name = reference.split('@').next().unwrap_or_default();
    let refused = || RegistryError::Unauthorized {
        reference: name.to_owned(),
        credentials: credentials.to_owned(),
    };
    let missing = || RegistryError::NoSuchImage { reference: reference.clone(), tags: Vec::new() };
    let answer = |problem: String| RegistryError::Answer {
        host: host.clone(),
        reference: reference.clone(),
        problem,
    };
    match error {
        OciDistributionError::UnauthorizedError { .. }
        | OciDistributionError::AuthenticationFailure(_) => refused(),
        OciDistributionError::ServerError { code: 401 | 403, .. } => refused(),
        OciDistributionError::ServerError { code: 404, .. } => missing(),
        OciDistributionError::ServerError { code, message, .. } => {
            answer(format!("status {code} {}", short(message)).trim_end().to_owned())
        }
        OciDistributionError::RegistryError { envelope, .. } => {
            match envelope.errors.first().map(|it| &it.code) {
                Some(OciErrorCode::Unauthorized | OciErrorCode::Denied) => refused(),
                Some(OciErrorCode::NameUnknown) => RegistryError::NoSuchRepository(reference),
                Some(
                    OciErrorCode::ManifestUnknown
                    | OciErrorCode::NotFound
                    | OciErrorCode::BlobUnknown,
                ) => missing(),
                _ => {
                    let messages = envelope.errors.iter().map(|it| short(&it.message));
                    answer(messages.collect::<Vec<_>>().join("; "))
                }
            }
        }
        OciDistributionError::RequestError(error) => {
            if let Some(problem) = certificate_problem(error) {
                return RegistryError::Certificate { host, problem };
            }
            match error.status().map(|status| status.as_u16()) {
                Some(401 | 403) => refused(),
                Some(status) => answer(format!("status {status}")),
                None => RegistryError::Unreachable { host, problem: innermost(error) },
            }
        }
        OciDistributionError::DigestError(_) => {
            let problem = "what the registry gives does not match the digest".to_owned();
            RegistryError::Content { reference, problem }
        }
        other => answer(short(&other.to_string())),
    }
}

/// The last cause of an error: those before it say little.
fn innermost(error: &(dyn Error + 'static)) -> String {
    causes(error).last().unwrap_or(error).to_string()
}

/// A message on one line, not too long.
fn short(message: &str) -> String {
    let line = message.split_whitespace().collect::<Vec<_>>().join(" ");
    let end = line.floor_char_boundary(MESSAGE_SIZE_MAX);
    line[..end].to_owned()
}

#[cfg(test)]
mod tests {
    //! How long a request is repeated.

    use super::*;

    #[test]
    fn a_certificate_is_the_cause_however_it_is_wrapped() {
        let certificate = rustls::CertificateError::UnknownIssuer;
        let error = io::Error::other(rustls::Error::InvalidCertificate(certificate));
        let error = io::Error::other(io::Error::other(error));
        let expected = "invalid peer certificate: UnknownIssuer";
        assert_eq!(certificate_problem(&error).as_deref(), Some(expected));
        assert_eq!(innermost(&error), expected);
        assert_eq!(certificate_problem(&io::Error::other("reset")), None);
    }

    #[tokio::test(start_paused = true)]
    async fn the_waits_depend_on_the_failure() {
        for (failure, seconds) in [
            (Transient::NoConnection, 3.5),
            (Transient::Interruption, 15.5),
            (Transient::RateLimit, 124.0),
        ] {
            let begun = tokio::time::Instant::now();
            let mut failures = Failures::none(FIRST_WAIT);
            while failures.may_retry(failure).await {}
            let waited = begun.elapsed().as_secs_f64();
            assert!((waited - seconds).abs() < 0.1, "{failure:?}: {waited} s");
        }
    }
}
