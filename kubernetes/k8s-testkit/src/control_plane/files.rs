//! The files that the programs of a control plane need.

use std::io;
use std::path::{Path, PathBuf};

use serde_json::json;
use tempfile::TempDir;

use super::certificates::Certificates;
use crate::audit;
use crate::error::StartError;

/// The certificate that the one of the API server is verified with.
pub(super) const AUTHORITY: &str = "ca.crt";
/// The certificate of the API server.
pub(super) const CERTIFICATE: &str = "apiserver.crt";
/// The private key of that certificate. It signs the tokens of service accounts too.
pub(super) const PRIVATE_KEY: &str = "apiserver.key";
/// The public key of that certificate, which verifies the tokens of service accounts.
pub(super) const PUBLIC_KEY: &str = "apiserver.pub";
/// Who may log in with which token.
pub(super) const TOKENS: &str = "tokens.csv";
/// What the API server records of requests.
pub(super) const AUDIT_POLICY: &str = "audit-policy.json";
/// Where it records them.
pub(super) const AUDIT_LOG: &str = "audit.log";

/// Logs in as a member of `system:masters`, on loopback and as long as the test runs.
const TOKEN: &str = "plimsoll-test";

/// The directory that all of it lies in.
pub(super) fn directory() -> Result<TempDir, StartError> {
    tempfile::Builder::new()
        .prefix("plimsoll-control-plane-")
        .tempdir()
        .map_err(|source| StartError::Prepare { action: "create a temporary directory", source })
}

/// Writes the certificates of the API server.
pub(super) fn write_certificates(root: &Path) -> Result<(), StartError> {
    let action = "write the certificates of the API server";
    let certificates = Certificates::new().map_err(|source| StartError::Prepare {
        action: "make the certificates of the API server",
        source: io::Error::other(source),
    })?;
    write(&root.join(AUTHORITY), &certificates.authority, action)?;
    write(&root.join(CERTIFICATE), &certificates.server, action)?;
    write(&root.join(PRIVATE_KEY), &certificates.private_key, action)?;
    write(&root.join(PUBLIC_KEY), &certificates.public_key, action)
}

/// Writes who may log in.
pub(super) fn write_tokens(root: &Path) -> Result<(), StartError> {
    let line = format!("{TOKEN},plimsoll-test,plimsoll-test,\"system:masters\"\n");
    write(&root.join(TOKENS), &line, "write the tokens of the API server")
}

/// Writes what is recorded of requests.
pub(super) fn write_audit_policy(root: &Path) -> Result<(), StartError> {
    let policy = format!("{:#}\n", audit::policy());
    write(&root.join(AUDIT_POLICY), &policy, "write the audit policy of the API server")
}

/// Writes the kubeconfig for a server on `port`.
pub(super) fn write_kubeconfig(root: &Path, port: u16) -> Result<PathBuf, StartError> {
    let name = "control-plane";
    let cluster = json!({
        "server": format!("https://127.0.0.1:{port}"),
        "certificate-authority": root.join(AUTHORITY),
    });
    let kubeconfig = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{ "name": name, "cluster": cluster }],
        "users": [{ "name": name, "user": { "token": TOKEN } }],
        "contexts": [{ "name": name, "context": { "cluster": name, "user": name } }],
        "current-context": name,
    });
    let path = root.join("kubeconfig");
    write(&path, &format!("{kubeconfig:#}\n"), "write the kubeconfig")?;
    Ok(path)
}

fn write(path: &Path, text: &str, action: &'static str) -> Result<(), StartError> {
    let prepare = |source: io::Error| StartError::Prepare { action, source };
    std::fs::write(path, text).map_err(prepare)
}
