//! References to images in registries: `HOST/REPOSITORY`, with `:TAG` or `@DIGEST` or both.
//!
//! The host is always named: which registry a short name such as `nginx` means is a matter of
//! configuration, and a release should mean the same everywhere.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use oci_client::Reference;

/// A repository of a registry, or an image in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageReference {
    host: String,
    repository: String,
    tag: Option<String>,
    digest: Option<String>,
}

/// Why a text is no reference to an image in a registry.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ReferenceError {
    /// The registry is not named.
    #[error("{0:?} names no registry: write HOST/REPOSITORY, with :TAG or @DIGEST")]
    NoHost(String),
    /// A part is not of the form that registries take.
    #[error("{text:?} is not a reference to an image: {problem}")]
    Malformed {
        /// What was given.
        text: String,
        /// What is wrong with it, in a clause.
        problem: String,
    },
}

impl FromStr for ImageReference {
    type Err = ReferenceError;

    fn from_str(text: &str) -> Result<Self, ReferenceError> {
        let Some((host, path)) = text.split_once('/').filter(|(host, _)| is_host(host)) else {
            return Err(ReferenceError::NoHost(text.to_owned()));
        };
        let malformed = |problem: &dyn fmt::Display| ReferenceError::Malformed {
            text: text.to_owned(),
            problem: problem.to_string(),
        };
        let repository = path.split([':', '@']).next().unwrap_or_default();
        if repository.bytes().any(|it| it.is_ascii_uppercase()) {
            return Err(malformed(&"names of repositories are in lower case"));
        }
        // The library knows the grammar, but takes `latest` for a tag that is not there.
        let parsed: Reference =
            text.parse().map_err(|error: oci_client::ParseError| malformed(&error))?;
        let (name, digest) = match path.split_once('@') {
            Some((name, digest)) => (name, Some(digest)),
            None => (path, None),
        };
        if let Some(digest) = digest
            && !digest.starts_with("sha256:")
        {
            return Err(malformed(&"only SHA-256 digests are supported"));
        }
        let has_tag = name.contains(':');
        Ok(Self {
            host: host.to_owned(),
            repository: parsed.repository().to_owned(),
            tag: parsed.tag().filter(|_| has_tag).map(ToOwned::to_owned),
            digest: digest.map(ToOwned::to_owned),
        })
    }
}

impl fmt::Display for ImageReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, repository, tag, digest } = self;
        write!(f, "{host}/{repository}")?;
        if let Some(tag) = tag {
            write!(f, ":{tag}")?;
        }
        match digest {
            Some(digest) => write!(f, "@{digest}"),
            None => Ok(()),
        }
    }
}

impl ImageReference {
    /// Whether a text looks like a reference rather than a path: its first part is a host, which has
    /// a port, is an address, or ends with a top-level domain.
    pub fn is_likely(text: &str) -> bool {
        text.split_once('/').is_some_and(|(host, rest)| is_host(host) && !rest.is_empty())
    }

    /// The host of the registry, with its port if it was given one.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The repository in the registry.
    pub fn repository(&self) -> &str {
        &self.repository
    }

    /// The tag, if it was given one.
    pub fn tag(&self) -> Option<&str> {
        self.tag.as_deref()
    }

    /// The digest, if it was given one, as `sha256:HEX`.
    pub fn digest(&self) -> Option<&str> {
        self.digest.as_deref()
    }

    /// Host and repository.
    pub fn name(&self) -> String {
        format!("{}/{}", self.host, self.repository)
    }

    /// The image with a tag in the same repository.
    #[must_use]
    pub fn with_tag(&self, tag: &str) -> Self {
        Self { tag: Some(tag.to_owned()), digest: None, ..self.clone() }
    }

    /// The image with a digest in the same repository.
    #[must_use]
    pub fn with_digest(&self, digest: &str) -> Self {
        Self { tag: None, digest: Some(digest.to_owned()), ..self.clone() }
    }

    /// The repository, without tag and digest.
    #[must_use]
    pub fn without_image(&self) -> Self {
        Self { tag: None, digest: None, ..self.clone() }
    }
}

/// Whether a text is a host with or without a port, and not the name of a directory.
fn is_host(text: &str) -> bool {
    let (host, has_port) = match text.rsplit_once(':') {
        Some((host, port)) if port.parse::<u16>().is_ok() => (host, true),
        Some(_) => return false,
        None => (text, false),
    };
    let is_label = |label: &str| {
        !label.is_empty() && label.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'-')
    };
    if !host.split('.').all(is_label) {
        return false;
    }
    let last = host.rsplit('.').next().unwrap_or_default();
    let is_domain = host.contains('.') && last.bytes().all(|it| it.is_ascii_alphabetic());
    has_port || host == "localhost" || host.parse::<IpAddr>().is_ok() || is_domain
}

/// Whether a host is this machine itself.
pub(super) fn is_loopback(host: &str) -> bool {
    let host = host.rsplit_once(':').map_or(host, |(host, _)| host);
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    //! What is a reference, and what of it is what.

    use super::*;

    /// Host, repository, tag and digest.
    type Parts<'p> = (&'p str, &'p str, Option<&'p str>, Option<&'p str>);

    #[track_caller]
    fn check(text: &str, expected: Result<Parts<'_>, &str>) {
        let parsed: Result<ImageReference, ReferenceError> = text.parse();
        match (&parsed, expected) {
            (Ok(it), Ok(parts)) => {
                assert_eq!((it.host(), it.repository(), it.tag(), it.digest()), parts);
                assert_eq!(it.to_string(), text);
            }
            (Err(error), Err(expected)) => assert_eq!(error.to_string(), expected),
            _ => panic!("{text}: {parsed:?}"),
        }
    }

    #[test]
    fn a_reference_has_a_host_a_repository_and_what_is_given_of_tag_and_digest() {
        let digest = format!("sha256:{}", "0a".repeat(32));
        check("quay.io/ocp/release", Ok(("quay.io", "ocp/release", None, None)));
        check("quay.io/ocp/release:4.18.2", Ok(("quay.io", "ocp/release", Some("4.18.2"), None)));
        check("127.0.0.1:5000/a", Ok(("127.0.0.1:5000", "a", None, None)));
        check("localhost/a:b", Ok(("localhost", "a", Some("b"), None)));
        check(&format!("quay:443/a@{digest}"), Ok(("quay:443", "a", None, Some(&digest))));
        check(
            &format!("quay.io/a:1@{digest}"),
            Ok(("quay.io", "a", Some("1"), Some(digest.as_str()))),
        );
    }

    #[test]
    fn what_is_none_is_refused_with_the_reason() {
        for text in ["nginx", "ocp/release:1", "/quay.io/a", "1.0.0", "releases-1.0/first"] {
            let expected =
                format!("{text:?} names no registry: write HOST/REPOSITORY, with :TAG or @DIGEST");
            check(text, Err(&expected));
            assert!(!ImageReference::is_likely(text), "{text}");
        }
        let malformed = |text: &str, problem: &str| {
            check(text, Err(&format!("{text:?} is not a reference to an image: {problem}")));
        };
        malformed("quay.io/Release", "names of repositories are in lower case");
        malformed("quay.io/a@sha256:1", "invalid reference format");
        malformed(
            &format!("quay.io/a@sha512:{}", "0".repeat(128)),
            "only SHA-256 digests are supported",
        );
    }

    #[test]
    fn loopback_hosts_are_this_machine() {
        for host in ["localhost", "localhost:5000", "127.0.0.1:5000", "127.1.2.3"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in ["quay.io", "10.0.0.1:5000", "localhost.example.com"] {
            assert!(!is_loopback(host), "{host}");
        }
    }
}
