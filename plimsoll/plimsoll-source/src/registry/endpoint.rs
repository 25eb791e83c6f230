//! One repository at one host: its manifests, blobs and tags, with retries.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use bytes::Bytes;
use futures::{Stream, StreamExt as _, stream};
use oci_client::client::{Certificate, CertificateEncoding, Client, ClientConfig, ClientProtocol};
use oci_client::errors::OciDistributionError;
use oci_client::{Reference, RegistryOperation};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use tokio::time::{Instant, timeout};

use super::credentials::{self, Credentials};
use super::error::RegistryError;
use super::mirrors::Place;
use super::reference::is_loopback;
use super::retry::{Failures, Transient, explained, is_mismatch, is_without_tls, transient};
use super::{Conditions, RegistrySettings};
use crate::bounded::{WRITTEN_SIZE_MAX, read_file};
use crate::store::oci::DOCUMENT_SIZE_MAX;
use crate::store::oci::write::{BlobDescriptor, BlobFile};
use crate::store::{StoreError, unless_cancelled};

/// What manifests may be.
const MANIFEST_TYPES: [&str; 4] = [
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
];
/// How long a connection may take to be made.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(20);
/// How long the answer to a request for anything but a blob may take, and how long [`PROGRESS`] may take of
/// a blob. A registry that sends a byte now and then never sends nothing.
pub(super) const REQUEST_TIME_MAX: Duration = Duration::from_secs(5 * 60);
/// How long a registry may send nothing.
pub(super) const READ_TIME_MAX: Duration = Duration::from_secs(60);
/// The same where it says nothing while it is sent a blob.
const UPLOAD_TIME_MAX: Duration = Duration::from_secs(30 * 60);
/// Tags asked for at once.
const TAG_PAGE: usize = 1000;
/// Most tags of a repository.
const TAGS_MAX: usize = 100_000;
/// Bytes of a blob that are read at once.
const PIECE: usize = 256 << 10;
/// The error about a blob that is another one than it should be.
const MISMATCH: &str = "its content does not match its digest";
/// A transfer that broke off after as many bytes more goes on without counting the failure.
const PROGRESS: u64 = 1 << 20;

/// A repository at a host.
pub(super) struct Endpoint {
    client: Client,
    place: Place,
    credentials: Credentials,
    first_wait: Duration,
    request_time_max: Duration,
}

impl Endpoint {
    /// Connects, and logs in if the registry wants that.
    pub(super) async fn connect(
        settings: &RegistrySettings,
        conditions: &Conditions,
        place: Place,
        operation: RegistryOperation,
    ) -> Result<Self, RegistryError> {
        let reference = &place.reference;
        let credentials =
            credentials::find(reference, settings.auth_file.as_deref(), &conditions.environment)?;
        let (read_time_max, request_time_max) = match operation {
            RegistryOperation::Pull => (conditions.read_time_max, conditions.request_time_max),
            RegistryOperation::Push => (UPLOAD_TIME_MAX, UPLOAD_TIME_MAX),
        };
        let client = |is_plain| client(settings, read_time_max, is_plain);
        let host = reference.host();
        let may_be_plain = place.insecure || is_loopback(host);
        let mut endpoint = Self {
            client: client(settings.plain_http)?,
            place: place.clone(),
            credentials,
            first_wait: conditions.first_wait,
            request_time_max,
        };
        if may_be_plain && !settings.plain_http {
            match endpoint.log_in(operation).await {
                Ok(()) => return Ok(endpoint),
                Err(error) if is_without_tls(&error) => endpoint.client = client(true)?,
                // What passes by itself is tried again, the rest explained.
                Err(_) => {}
            }
        }
        endpoint.retry("", async || endpoint.log_in(operation).await).await?;
        Ok(endpoint)
    }

    async fn log_in(&self, operation: RegistryOperation) -> Result<(), OciDistributionError> {
        self.client.auth(&self.named(""), &self.credentials.auth, operation).await.map(drop)
    }

    /// The manifest of a tag or a digest: its bytes.
    pub(super) async fn manifest(&self, image: &str) -> Result<Bytes, RegistryError> {
        let named = self.named(image);
        let auth = &self.credentials.auth;
        let pulled = self.retry(image, async || {
            self.client.pull_manifest_raw(&named, auth, &MANIFEST_TYPES).await
        });
        let (bytes, _) = pulled.await?;
        if bytes.len() as u64 > DOCUMENT_SIZE_MAX {
            let size = DOCUMENT_SIZE_MAX >> 20;
            return Err(self.content(image, &format!("its manifest is larger than {size} MiB")));
        }
        Ok(bytes)
    }

    /// Fetches a blob into a file. What broke off goes on where it did, if the registry can do that.
    pub(super) async fn blob(
        &self,
        blob: &BlobDescriptor,
        to: &mut BlobFile,
        cancelled: &AtomicBool,
    ) -> Result<(), RegistryError> {
        let BlobDescriptor { digest, size, .. } = blob;
        let mut failures = Failures::none(self.first_wait);
        let mut is_resumed = false;
        loop {
            let before = to.size();
            is_resumed |= before > 0;
            let (failure, error) = match self.piece(blob, to, cancelled).await {
                Ok(()) if to.size() == *size && to.digest() == *digest => return Ok(()),
                Ok(()) if to.size() < *size => {
                    (Transient::Interruption, self.content(digest, "it breaks off again and again"))
                }
                // What was resumed may be put together wrongly: once more from its beginning.
                Ok(()) if is_resumed => {
                    is_resumed = false;
                    to.restart().map_err(|error| self.unwritten(&error))?;
                    (Transient::Interruption, self.content(digest, MISMATCH))
                }
                Ok(()) => {
                    return Err(self.content(digest, MISMATCH));
                }
                Err(PieceError::Final(error)) => return Err(error),
                Err(PieceError::Request(error)) => match transient(&error) {
                    Some(failure) => (failure, self.explain(&error, digest)),
                    None => return Err(self.explain(&error, digest)),
                },
            };
            if to.size() >= before + PROGRESS {
                failures.forget();
            }
            if !failures.may_retry(failure).await {
                return Err(error);
            }
        }
    }

    /// Fetches what is missing of a blob, as far as one request leads.
    async fn piece(
        &self,
        blob: &BlobDescriptor,
        to: &mut BlobFile,
        cancelled: &AtomicBool,
    ) -> Result<(), PieceError> {
        use oci_client::client::BlobResponse;
        let BlobDescriptor { digest, size, .. } = blob;
        let named = self.named(digest);
        let mut stream = if to.size() == 0 {
            self.client.pull_blob_stream(&named, digest.as_str()).await?.stream
        } else {
            let partial =
                self.client.pull_blob_stream_partial(&named, digest.as_str(), to.size(), None);
            match partial.await? {
                BlobResponse::Partial(stream) => stream.stream,
                BlobResponse::Full(stream) => {
                    to.restart().map_err(|error| PieceError::Final(self.unwritten(&error)))?;
                    stream.stream
                }
            }
        };
        let mut pace = Pace { since: Instant::now(), size: to.size() };
        while let Some(bytes) = stream.next().await {
            unless_cancelled(cancelled)
                .map_err(|error| PieceError::Final(RegistryError::Layout(error)))?;
            let bytes = match bytes {
                Ok(bytes) => bytes,
                // Compared once more, with all that was there before.
                Err(error) if is_mismatch(&error) => return Ok(()),
                Err(error) => return Err(OciDistributionError::IoError(error).into()),
            };
            to.push(&bytes).map_err(|error| PieceError::Final(self.unwritten(&error)))?;
            if to.size() > *size {
                let problem = format!("it is larger than the {size} bytes that its image says");
                return Err(PieceError::Final(self.content(digest, &problem)));
            }
            if pace.is_too_slow(Instant::now(), to.size(), self.request_time_max) {
                return Err(OciDistributionError::IoError(late(self.request_time_max)).into());
            }
        }
        Ok(())
    }

    /// Whether the repository has a blob.
    pub(super) async fn has_blob(&self, digest: &str) -> Result<bool, RegistryError> {
        let named = self.named(digest);
        self.retry(digest, async || self.client.blob_exists(&named, digest).await).await
    }

    /// Sends a blob; `open` opens it and tells its size.
    pub(super) async fn push_blob(
        &self,
        digest: &str,
        open: impl Fn() -> Result<(File, u64), StoreError>,
    ) -> Result<(), RegistryError> {
        let named = self.named(digest);
        let mut failures = Failures::none(self.first_wait);
        loop {
            let (file, size) = open()?;
            let pushed =
                self.client.push_blob_stream(&named, pieces(file), digest, Some(size)).await;
            match pushed {
                Ok(_) => return Ok(()),
                Err(error) => match transient(&error) {
                    Some(failure) if failures.may_retry(failure).await => {}
                    _ => return Err(self.explain(&error, digest)),
                },
            }
        }
    }

    /// Sends a manifest, under a tag or its digest.
    pub(super) async fn push_manifest(
        &self,
        image: &str,
        bytes: &Bytes,
        media_type: &str,
    ) -> Result<(), RegistryError> {
        let media_type = media_type
            .parse()
            .map_err(|_| self.content(image, &format!("{media_type:?} is no media type")))?;
        let named = self.named(image);
        let push = async || {
            let (bytes, media_type): (Bytes, _) = (bytes.clone(), Clone::clone(&media_type));
            self.client.push_manifest_raw(&named, bytes, media_type).await
        };
        self.retry(image, push).await.map(drop)
    }

    /// The tags of the repository, sorted.
    pub(super) async fn tags(&self) -> Result<Vec<String>, RegistryError> {
        let named = self.named("");
        let auth = &self.credentials.auth;
        let mut tags = BTreeSet::new();
        let mut last: Option<String> = None;
        loop {
            let page = self.retry("", async || {
                self.client.list_tags(&named, auth, Some(TAG_PAGE), last.as_deref()).await
            });
            let page = page.await?.tags;
            let (before, length) = (tags.len(), page.len());
            last = page.last().cloned();
            tags.extend(page);
            // Some registries give all of them, whatever they are asked for.
            if length < TAG_PAGE || tags.len() == before || tags.len() > TAGS_MAX {
                return Ok(tags.into_iter().collect());
            }
        }
    }

    /// Makes a request until it succeeds, or fails for good.
    async fn retry<T>(
        &self,
        image: &str,
        mut request: impl AsyncFnMut() -> Result<T, OciDistributionError>,
    ) -> Result<T, RegistryError> {
        let mut failures = Failures::none(self.first_wait);
        loop {
            let answer = timeout(self.request_time_max, request()).await;
            let late = |_| Err(OciDistributionError::IoError(late(self.request_time_max)));
            match answer.unwrap_or_else(late) {
                Ok(result) => return Ok(result),
                Err(error) => match transient(&error) {
                    Some(failure) if failures.may_retry(failure).await => {}
                    _ => return Err(self.explain(&error, image)),
                },
            }
        }
    }

    /// A tag or digest of the repository as the library names it.
    fn named(&self, image: &str) -> Reference {
        let (host, repository) = (self.place.reference.host(), self.place.reference.repository());
        let (host, repository) = (host.to_owned(), repository.to_owned());
        if image.contains(':') {
            Reference::with_digest(host, repository, image.to_owned())
        } else {
            Reference::with_tag(host, repository, image.to_owned())
        }
    }

    /// A tag or digest of the repository, for people.
    fn shown(&self, image: &str) -> String {
        let name = self.place.reference.name();
        match image {
            "" => name,
            _ if image.contains(':') => format!("{name}@{image}"),
            _ => format!("{name}:{image}"),
        }
    }

    fn explain(&self, error: &OciDistributionError, image: &str) -> RegistryError {
        let host = self.place.reference.host();
        explained(error, host, &self.shown(image), &self.credentials.origin)
    }

    pub(super) fn content(&self, image: &str, problem: &str) -> RegistryError {
        RegistryError::Content { reference: self.shown(image), problem: problem.to_owned() }
    }

    fn unwritten(&self, error: &io::Error) -> RegistryError {
        RegistryError::Setup(format!("failed to write a blob: {error}"))
    }
}

/// How fast a blob comes.
struct Pace {
    since: Instant,
    size: u64,
}

impl Pace {
    /// Whether less than [`PROGRESS`] came within a time.
    fn is_too_slow(&mut self, now: Instant, size: u64, time_max: Duration) -> bool {
        if size >= self.size + PROGRESS {
            *self = Self { since: now, size };
        }
        now.duration_since(self.since) > time_max
    }
}

fn late(time_max: Duration) -> io::Error {
    let problem = format!("no complete answer within {} s", time_max.as_secs_f64());
    io::Error::new(io::ErrorKind::TimedOut, problem)
}

/// Why one request for a blob did not get all of it.
enum PieceError {
    Request(OciDistributionError),
    Final(RegistryError),
}

impl From<OciDistributionError> for PieceError {
    fn from(error: OciDistributionError) -> Self {
        Self::Request(error)
    }
}

/// The content of a file, piece by piece.
fn pieces(file: File) -> impl Stream<Item = Result<Bytes, OciDistributionError>> + Send + 'static {
    stream::unfold(Some(file), async |file| {
        let mut file = file?;
        let mut piece = vec![0; PIECE];
        match file.read(&mut piece) {
            Ok(0) => None,
            Ok(read) => {
                piece.truncate(read);
                Some((Ok(Bytes::from(piece)), Some(file)))
            }
            Err(error) => Some((Err(OciDistributionError::IoError(error)), None)),
        }
    })
}

/// A client for a registry that speaks plain HTTP, or does not.
fn client(
    settings: &RegistrySettings,
    read_time_max: Duration,
    is_plain: bool,
) -> Result<Client, RegistryError> {
    // One TLS provider for the process; a second installation is a no-op.
    let _ = rustls::crypto::ring::default_provider().install_default();
    // Without any, the library would panic.
    if rustls_native_certs::load_native_certs().certs.is_empty() {
        let problem = "this system has no CA certificates; name a file of them in SSL_CERT_FILE";
        return Err(RegistryError::Setup(problem.to_owned()));
    }
    let authorities = match &settings.ca_file {
        Some(path) => authorities(path)?,
        None => Vec::new(),
    };
    let config = ClientConfig {
        protocol: if is_plain { ClientProtocol::Http } else { ClientProtocol::Https },
        use_monolithic_push: true,
        extra_root_certificates: authorities,
        connect_timeout: Some(CONNECT_TIME_MAX),
        read_timeout: Some(read_time_max),
        user_agent: "plimsoll",
        ..ClientConfig::default()
    };
    Client::try_from(config).map_err(|error| RegistryError::Setup(error.to_string()))
}

fn authorities(path: &Path) -> Result<Vec<Certificate>, RegistryError> {
    let unusable = |problem: String| RegistryError::Configuration {
        what: "certificates",
        path: path.to_owned(),
        problem,
    };
    let bytes = read_file(path, WRITTEN_SIZE_MAX).map_err(|error| unusable(error.to_string()))?;
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    match certificates {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates
            .into_iter()
            .map(|it| Certificate { encoding: CertificateEncoding::Der, data: it.to_vec() })
            .collect()),
        Ok(_) => Err(unusable("no certificate in PEM form is in it".to_owned())),
        Err(error) => Err(unusable(format!("it is not in PEM form: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    //! When a blob comes too slowly.

    use super::*;

    #[test]
    fn a_blob_that_makes_no_progress_is_too_slow() {
        let (begun, time_max) = (Instant::now(), Duration::from_secs(10));
        let after = |seconds| begun + Duration::from_secs(seconds);
        let mut pace = Pace { since: begun, size: 0 };
        let mut check = |seconds, size, expected| {
            assert_eq!(
                pace.is_too_slow(after(seconds), size, time_max),
                expected,
                "{seconds} {size}"
            );
        };
        check(10, PROGRESS - 1, false);
        check(10, PROGRESS, false);
        check(20, PROGRESS + 1, false);
        check(21, PROGRESS + 1, true);
        check(21, 2 * PROGRESS, false);
    }
}
