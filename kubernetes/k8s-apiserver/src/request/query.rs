//! The query of a URL.
use std::collections::BTreeSet;

use percent_encoding::percent_decode_str;

/// The parameters of a query, decoded, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    /// Reads a query string; empty and malformed pairs are skipped.
    ///
    /// Upstream: k8s.io/apiserver/pkg/endpoints/request/requestinfo.go: NewRequestInfo
    pub(crate) fn parse(text: &str) -> Self {
        let pairs = text.split('&').filter(|pair| !pair.is_empty() && !is_malformed(pair));
        let pairs = pairs.map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decoded(name), decoded(value))
        });
        Self(pairs.collect())
    }

    /// The value of a parameter; of repeated ones the first counts.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// All values of a parameter.
    pub(crate) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// The parameters that count: the first one of each name.
    pub(crate) fn first_of_each(&self) -> impl Iterator<Item = (&str, &str)> {
        let mut seen = BTreeSet::new();
        let pairs = self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        pairs.filter(move |(name, _)| seen.insert(*name))
    }
}

/// Whether a pair is malformed, in which case it is ignored.
fn is_malformed(pair: &str) -> bool {
    let is_hex = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_hexdigit);
    let bytes = pair.as_bytes();
    bytes.iter().enumerate().any(|(at, byte)| {
        let is_encoded = is_hex(bytes.get(at + 1)) && is_hex(bytes.get(at + 2));
        *byte == b';' || (*byte == b'%' && !is_encoded)
    })
}

fn decoded(text: &str) -> String {
    let spaced = text.replace('+', " ");
    percent_decode_str(&spaced).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_decoded_and_the_first_of_a_name_counts() {
        for (text, name, expected) in [
            ("", "a", None),
            ("&&", "", None),
            ("a", "a", Some("")),
            ("%61=b+c%2Bd", "a", Some("b c+d")),
            ("a=1&%61=2", "a", Some("1")),
            ("a=%zz&a=2", "a", Some("2")),
            ("a=1;b&a=2", "a", Some("2")),
            ("a=%5", "a", None),
        ] {
            let query = Query::parse(text);
            assert_eq!(query.get(name), expected, "{text}");
            let counted = query.first_of_each().find(|(found, _)| *found == name);
            assert_eq!(counted.map(|(_, value)| value), expected, "{text}");
        }
    }
}
