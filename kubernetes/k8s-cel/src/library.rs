//! What functions do: those of the language, of cel-go's extensions and of Kubernetes.
//!
//! The types of the values decide which signature is meant, as when cel-go dispatches dynamically;
//! a checked expression leads to the same function.
mod arithmetic;
pub(crate) mod authorizer;
pub(crate) mod collection;
mod conversion;
pub(crate) mod format;
pub(crate) mod named_format;
mod network;
mod optional;
pub(crate) mod pattern;
mod quantity;
pub(crate) mod strings;
pub(crate) mod time;
mod url;
mod version;

use regex::Regex;

use crate::{EvaluationError, Value};

/// What a function returns.
pub(crate) type Outcome = Result<Value, EvaluationError>;

/// A value of a Kubernetes library.
#[derive(Clone, Debug)]
pub enum Opaque {
    /// `authorizer` and what its methods return.
    Authorization(Box<authorizer::Check>),
    /// `quantity('1Gi')`
    Quantity(quantity::Quantity),
    /// `ip('10.0.0.1')`
    Ip(std::net::IpAddr),
    /// `cidr('10.0.0.0/8')`
    Cidr(network::Cidr),
    /// `url('https://example.com')`
    Url(url::Url),
    /// `semver('1.2.3')`
    Version(semver::Version),
    /// `format.dns1123Label()`
    Format(&'static named_format::NamedFormat),
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

/// A family of functions: nothing if it has none that fits the values.
type Family = fn(&str, &[Value]) -> Option<Outcome>;

/// Calls a function; `pattern` is the compiled pattern where it is constant.
pub(crate) fn call(function: &str, arguments: &[Value], pattern: Option<&Regex>) -> Outcome {
    let families: [Family; 12] = [
        arithmetic::call,
        conversion::call,
        strings::call,
        collection::call,
        optional::call,
        time::call,
        network::call,
        quantity::call,
        version::call,
        url::call,
        named_format::call,
        authorizer::call,
    ];
    if let Some(outcome) = pattern::call(function, arguments, pattern) {
        return outcome;
    }
    let found = families.iter().find_map(|family| family(function, arguments));
    found.unwrap_or_else(|| Err(no_overload(function, arguments)))
}

/// The error of a call that no signature fits.
pub(crate) fn no_overload(function: &str, arguments: &[Value]) -> EvaluationError {
    // Operators are one function each, which knows of no signatures.
    if function.contains('_') && !function.contains(char::is_alphabetic) {
        return EvaluationError::no_such_overload();
    }
    // So are these, which tell no types.
    if matches!(function, "size" | "type" | "@in") {
        return EvaluationError::new(format!("no such overload: {function}"));
    }
    let types: Vec<String> = arguments.iter().map(Value::type_name).collect();
    EvaluationError::new(format!("no such overload: {function}({})", types.join(", ")))
}

/// Shorthand for an error with a message.
pub(crate) fn failed(message: impl Into<String>) -> Option<Outcome> {
    Some(Err(EvaluationError::new(message)))
}
