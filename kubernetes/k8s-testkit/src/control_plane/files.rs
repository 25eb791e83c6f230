//! The files that the programs of a control plane need.

use std::io;
use std::path::{Path, PathBuf};

use serde_json::json;
use tempfile::TempDir;

use crate::audit;
use crate::error::StartError;

/// Where the API server puts its certificate.
pub(super) const CERTIFICATES: &str = "api-server";
/// The certificate that the API server makes for itself.
pub(super) const CERTIFICATE: &str = "api-server/apiserver.crt";
/// The key of that certificate. It signs the tokens of service accounts too: that spares making one.
pub(super) const KEY: &str = "api-server/apiserver.key";
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
        "certificate-authority": root.join(CERTIFICATE),
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
