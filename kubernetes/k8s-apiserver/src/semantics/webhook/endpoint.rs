//! The `clientConfig` of a webhook.
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Uri;
use serde_json::Value;

/// The port of HTTPS.
const HTTPS_PORT: u16 = 443;

/// The service of a webhook's `clientConfig`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Service {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) port: u16,
}

/// The address of a webhook and how to verify it.
#[derive(Clone, Debug)]
pub(crate) struct Endpoint {
    url: String,
    host: String,
    port: u16,
    service: Option<Service>,
    /// The trusted certificate authorities in PEM; if empty, those of the system.
    ca_bundle: Vec<u8>,
    timeout: Duration,
}

impl Endpoint {
    /// Reads a `clientConfig`.
    ///
    /// # Errors
    /// When it names neither a URL nor a service.
    ///
    /// Upstream: k8s.io/apiserver/pkg/util/webhook/client.go: HookClient
    pub(crate) fn read(config: &Value, timeout: Duration) -> Result<Self, String> {
        let ca_bundle = config["caBundle"]
            .as_str()
            .and_then(|text| STANDARD.decode(text).ok())
            .unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        if let Some(service) = config.get("service").filter(|service| service.is_object()) {
            let service = Service {
                namespace: text(&service["namespace"]),
                name: text(&service["name"]),
                port: service["port"]
                    .as_u64()
                    .and_then(|port| u16::try_from(port).ok())
                    .unwrap_or(HTTPS_PORT),
            };
            let host = format!("{}.{}.svc", service.name, service.namespace);
            let path = config["service"]["path"].as_str().unwrap_or_default();
            return Ok(Self {
                url: format!("https://{host}:{}{}", service.port, clean(path)),
                host,
                port: service.port,
                service: Some(service),
                ca_bundle,
                timeout,
            });
        }
        let url = text(&config["url"]);
        if url.is_empty() {
            return Err("webhook configuration must have either service or URL".to_owned());
        }
        let parsed: Uri = url.parse().map_err(|error| format!("Unparsable URL: {error}"))?;
        let host = parsed.host().unwrap_or_default().to_owned();
        let port = parsed.port_u16().unwrap_or(HTTPS_PORT);
        let authority = parsed.authority().map_or("", http::uri::Authority::as_str);
        let url = format!("https://{authority}{}", clean(parsed.path()));
        Ok(Self { url, host, port, service: None, ca_bundle, timeout })
    }

    /// The URL of requests, with their timeout as a parameter.
    pub(crate) fn request_url(&self) -> String {
        format!("{}?timeout={}s", self.url, self.timeout.as_secs())
    }

    /// The timeout of a request.
    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// The host name that its certificate has to be issued for.
    pub(crate) fn host(&self) -> &str {
        self.host.trim_start_matches('[').trim_end_matches(']')
    }

    /// Host and port.
    pub(crate) fn authority(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// The service, if it is configured by one.
    pub(crate) fn service(&self) -> Option<&Service> {
        self.service.as_ref()
    }

    /// Certificates in PEM.
    pub(crate) fn ca_bundle(&self) -> &[u8] {
        &self.ca_bundle
    }
}

/// The shortest path that is equivalent, as Go's client sends it: without empty segments and those
/// of dots.
///
/// Upstream: k8s.io/client-go/rest/request.go: NewRequest
fn clean(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => {
                kept.pop();
            }
            segment => kept.push(segment),
        }
    }
    format!("/{}", kept.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_config_says_where_a_webhook_is() {
        for (config, expected) in [
            (
                r#"{"url": "https://hook.example.com"}"#,
                "https://hook.example.com/?timeout=10s hook.example.com hook.example.com:443",
            ),
            (
                r#"{"url": "https://127.0.0.1:8443//a/./b/../c/"}"#,
                "https://127.0.0.1:8443/a/c?timeout=10s 127.0.0.1 127.0.0.1:8443",
            ),
            (
                r#"{"url": "https://[::1]:8443/../a"}"#,
                "https://[::1]:8443/a?timeout=10s ::1 [::1]:8443",
            ),
            (
                r#"{"service": {"namespace": "n", "name": "s", "path": "/p/"}}"#,
                "https://s.n.svc:443/p?timeout=10s s.n.svc s.n.svc:443",
            ),
            (
                r#"{"service": {"namespace": "n", "name": "s", "port": 9443}}"#,
                "https://s.n.svc:9443/?timeout=10s s.n.svc s.n.svc:9443",
            ),
        ] {
            let config = serde_json::from_str(config).unwrap();
            let endpoint = Endpoint::read(&config, Duration::from_secs(10)).unwrap();
            let found =
                format!("{} {} {}", endpoint.request_url(), endpoint.host(), endpoint.authority());
            assert_eq!(found, expected);
        }
        assert!(Endpoint::read(&Value::Null, Duration::ZERO).is_err());
    }
}
