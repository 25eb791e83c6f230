//! Providers of certificates.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Who issues the certificates of webhooks and API services, and tells callers whom to trust.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum CertificateProvider {
    /// The controller that installs the bundle.
    #[default]
    BuiltIn,
    /// cert-manager, with an Issuer that signs for itself.
    CertManager,
    /// The service CA of OpenShift.
    ServiceCa,
    /// None: another client fills Secrets and `caBundle`.
    None,
}

impl CertificateProvider {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::None, Self::CertManager, Self::ServiceCa, Self::BuiltIn];

    /// Returns its name on command lines.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::CertManager => "cert-manager",
            Self::ServiceCa => "service-ca",
            Self::BuiltIn => "built-in",
        }
    }

    /// Returns whether it is the one that is taken if none is named.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl fmt::Display for CertificateProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
