//! Values of types that Kubernetes' libraries add to the language.
//!
//! Upstream: k8s.io/apiserver/pkg/cel/quantity.go: Quantity
//! Upstream: k8s.io/apiserver/pkg/cel/cidr.go: CIDR
//! Upstream: k8s.io/apiserver/pkg/cel/ip.go: IP
//! Upstream: k8s.io/apiserver/pkg/cel/url.go: URL
//! Upstream: k8s.io/apiserver/pkg/cel/semver.go: Semver
//! Upstream: k8s.io/apiserver/pkg/cel/format.go: Format
use std::fmt;
use std::net::IpAddr;

use super::authorization::AuthorizationCheck;
use crate::Value;

/// A value of a Kubernetes library.
#[derive(Clone, Debug)]
pub enum Opaque {
    /// `authorizer` and what its methods return.
    Authorization(Box<AuthorizationCheck>),
    /// `quantity('1Gi')`
    Quantity(Quantity),
    /// `ip('10.0.0.1')`
    Ip(IpAddr),
    /// `cidr('10.0.0.0/8')`
    Cidr(Cidr),
    /// `url('https://example.com')`
    Url(Url),
    /// `semver('1.2.3')`
    Version(semver::Version),
    /// `format.dns1123Label()`
    Format(&'static NamedFormat),
}

impl Opaque {
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Self::Authorization(check) => check.type_name(),
            Self::Quantity(_) => "kubernetes.Quantity",
            Self::Ip(_) => "net.IP",
            Self::Cidr(_) => "net.CIDR",
            Self::Url(_) => "kubernetes.URL",
            Self::Version(_) => "kubernetes.Semver",
            Self::Format(_) => "kubernetes.NamedFormat",
        }
    }

    pub(crate) fn size(&self) -> Option<u64> {
        match self {
            Self::Ip(address) => Some(if address.is_ipv4() { 4 } else { 16 }),
            Self::Cidr(range) => Some(u64::from(range.length.div_ceil(8))),
            Self::Authorization(_)
            | Self::Quantity(_)
            | Self::Url(_)
            | Self::Version(_)
            | Self::Format(_) => None,
        }
    }

    pub(crate) fn equals(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Quantity(left), Self::Quantity(right)) => left == right,
            (Self::Ip(left), Self::Ip(right)) => left == right,
            (Self::Cidr(left), Self::Cidr(right)) => left == right,
            (Self::Url(left), Self::Url(right)) => left == right,
            (Self::Version(left), Self::Version(right)) => left.cmp_precedence(right).is_eq(),
            (Self::Format(left), Self::Format(right)) => left.name == right.name,
            _ => false,
        }
    }

    pub(crate) fn into_value(self) -> Value {
        Value::Opaque(std::sync::Arc::new(self))
    }
}

/// A quantity, in thousand-millionths.
///
/// Kubernetes keeps arbitrary precision above; here amounts end at 2^127 of these units, which is
/// some 10^29.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Quantity {
    pub(crate) nano: i128,
    /// Whether it was written as a whole number of its unit.
    pub(crate) whole: bool,
}

/// A range of addresses, with the address that it was written with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cidr {
    pub(crate) address: IpAddr,
    pub(crate) length: u8,
}

impl fmt::Display for Cidr {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.address, self.length)
    }
}

impl Cidr {
    pub(crate) fn masked(self) -> Self {
        let address = match self.address {
            IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.length)).unwrap_or(0);
                IpAddr::from((u32::from(address) & mask).to_be_bytes())
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.length)).unwrap_or(0);
                IpAddr::from((u128::from(address) & mask).to_be_bytes())
            }
        };
        Self { address, length: self.length }
    }

    pub(crate) fn contains(self, address: IpAddr) -> bool {
        self.address.is_ipv4() == address.is_ipv4()
            && self.masked() == (Self { address, length: self.length }).masked()
    }
}

/// The parts of a URL that expressions ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    pub(crate) scheme: String,
    pub(crate) host: String,
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) whole: String,
}

/// A format that text can be checked against.
#[derive(Debug)]
pub struct NamedFormat {
    /// The name that `format.named` knows it by.
    pub(crate) name: &'static str,
    pub(crate) pattern_size: u64,
    pub(crate) check: fn(&str) -> Vec<String>,
}

impl NamedFormat {
    /// The size of the pattern that checking costs as much as.
    pub(crate) fn pattern_size(&self) -> u64 {
        self.pattern_size
    }
}
