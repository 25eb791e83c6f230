//! A kubeconfig that points clients at a listening server.
use serde_json::{Value, json};

use crate::ApiServer;
use crate::access::certificates::encode;

/// Name of the cluster, context and user in a kubeconfig.
const NAME: &str = "embedded";

/// The text of a kubeconfig file for a server without TLS at `server_url`, such as
/// `http://127.0.0.1:8080`.
pub fn kubeconfig(server_url: &str) -> String {
    render(&json!({"server": server_url}), &json!({}))
}

impl ApiServer {
    /// The text of a kubeconfig file that makes its users administrators of this server, which
    /// listens at `server_url`, such as `https://127.0.0.1:6443`.
    ///
    /// For a URL of TLS it contains the certificate of the cluster's authority and one of the
    /// administrator. Without TLS it contains no credentials, since clients would not send them.
    pub fn kubeconfig(&self, server_url: &str) -> String {
        if !server_url.starts_with("https:") {
            return kubeconfig(server_url);
        }
        let certificates = self.shared().access.certificates();
        let (certificate, key) = certificates
            .administrator()
            .expect("all that the administrator's certificate says is ours");
        render(
            &json!({
                "server": server_url,
                "certificate-authority-data": encode(certificates.authority()),
            }),
            &json!({
                "client-certificate-data": encode(&certificate),
                "client-key-data": encode(&key),
            }),
        )
    }

    /// The certificate of the cluster's authority, in PEM.
    pub fn certificate_authority(&self) -> &str {
        self.shared().access.certificates().authority()
    }
}

fn render(cluster: &Value, user: &Value) -> String {
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": NAME, "cluster": cluster}],
        "contexts": [{"name": NAME, "context": {"cluster": NAME, "user": NAME}}],
        "users": [{"name": NAME, "user": user}],
        "current-context": NAME,
        "preferences": {},
    });
    format!("{config:#}\n")
}
