//! A kubeconfig that points clients at a listening server.
use serde_json::json;

/// Name of the cluster, context and user in what [`kubeconfig`] writes.
const NAME: &str = "embedded";

/// The text of a kubeconfig file for a server at `server_url`, such as `http://127.0.0.1:8080`.
pub fn kubeconfig(server_url: &str) -> String {
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": NAME, "cluster": {"server": server_url}}],
        "contexts": [{"name": NAME, "context": {"cluster": NAME, "user": NAME}}],
        "users": [{"name": NAME, "user": {}}],
        "current-context": NAME,
        "preferences": {},
    });
    format!("{config:#}\n")
}
