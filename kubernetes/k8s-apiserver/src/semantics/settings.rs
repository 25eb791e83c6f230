//! What flags of kube-apiserver set for a whole cluster.
use std::collections::BTreeSet;
use std::fmt;
use std::net::Ipv4Addr;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// The settings of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterSettings {
    /// Where services get their addresses from.
    pub service_range: ServiceRange,
    /// Admission plug-ins that take no part in writes.
    pub disabled_plugins: BTreeSet<AdmissionPlugin>,
    /// New namespaces get no service account `default` and no config map `kube-root-ca.crt`, as where
    /// no kube-controller-manager runs.
    pub empty_namespaces: bool,
}

impl ClusterSettings {
    /// Whether a plug-in takes part in writes.
    pub(crate) fn has(&self, plugin: AdmissionPlugin) -> bool {
        !self.disabled_plugins.contains(&plugin)
    }
}

/// A built-in admission plug-in that can be disabled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AdmissionPlugin {
    /// Pods get 300 seconds of toleration for nodes that are not ready or unreachable.
    DefaultTolerationSeconds,
    /// Pods need an existing service account, and its token is mounted.
    ServiceAccount,
    /// Volumes and claims get a finalizer that keeps them while they are in use.
    StorageObjectInUseProtection,
}

impl AdmissionPlugin {
    /// The plug-in with this name; none if there is none that could be disabled.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "DefaultTolerationSeconds" => Some(Self::DefaultTolerationSeconds),
            "ServiceAccount" => Some(Self::ServiceAccount),
            "StorageObjectInUseProtection" => Some(Self::StorageObjectInUseProtection),
            _ => None,
        }
    }
}

/// A range of IPv4 addresses of services, such as `10.96.0.0/16`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServiceRange {
    network: Ipv4Addr,
    prefix_len: u8,
}

/// A text is not a range of IPv4 addresses of at least four.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a range of IPv4 addresses with a prefix of 1 to 30 bits, such as 10.96.0.0/16")]
pub struct InvalidServiceRange;

impl Default for ServiceRange {
    fn default() -> Self {
        Self { network: Ipv4Addr::new(10, 96, 0, 0), prefix_len: 16 }
    }
}

impl ServiceRange {
    /// The addresses that services can have, as numbers: the range without its ends.
    pub(crate) fn addresses(self) -> RangeInclusive<u32> {
        let first = u32::from(self.network);
        let last = first | (u32::MAX >> self.prefix_len);
        first + 1..=last - 1
    }

    /// The first address, which the service `kubernetes` has.
    pub(crate) fn first(self) -> Ipv4Addr {
        Ipv4Addr::from(*self.addresses().start())
    }

    /// Whether a service can have an address.
    pub(crate) fn contains(self, address: Ipv4Addr) -> bool {
        self.addresses().contains(&u32::from(address))
    }
}

impl fmt::Display for ServiceRange {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.network, self.prefix_len)
    }
}

impl FromStr for ServiceRange {
    type Err = InvalidServiceRange;

    fn from_str(text: &str) -> Result<Self, InvalidServiceRange> {
        let (address, bits) = text.split_once('/').ok_or(InvalidServiceRange)?;
        let address: Ipv4Addr = address.parse().map_err(|_| InvalidServiceRange)?;
        let prefix_len: u8 = bits.parse().map_err(|_| InvalidServiceRange)?;
        if !(1..=30).contains(&prefix_len) {
            return Err(InvalidServiceRange);
        }
        let network = Ipv4Addr::from(u32::from(address) & !(u32::MAX >> prefix_len));
        Ok(Self { network, prefix_len })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_its_network_and_has_no_ends() {
        let cases = [
            ("10.96.0.0/16", Ok(("10.96.0.0/16", "10.96.0.1", "10.96.255.254"))),
            ("10.0.0.7/24", Ok(("10.0.0.0/24", "10.0.0.1", "10.0.0.254"))),
            ("10.0.0.0/30", Ok(("10.0.0.0/30", "10.0.0.1", "10.0.0.2"))),
            ("10.0.0.0/31", Err(InvalidServiceRange)),
            ("10.0.0.0/0", Err(InvalidServiceRange)),
            ("10.0.0.0", Err(InvalidServiceRange)),
            ("fd00::/112", Err(InvalidServiceRange)),
        ];
        for (text, expected) in cases {
            let range = text.parse::<ServiceRange>();
            let shown = range.map(|range| {
                let [first, last] = [*range.addresses().start(), *range.addresses().end()]
                    .map(|bits| Ipv4Addr::from(bits).to_string());
                (range.to_string(), first, last)
            });
            let expected = expected
                .map(|(range, first, last)| (range.to_owned(), first.to_owned(), last.to_owned()));
            assert_eq!(shown, expected, "{text}");
        }
    }
}
