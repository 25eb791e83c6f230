//! The order of API versions: stable before beta before alpha, then newer before older.
use std::cmp::{Ordering, Reverse};

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Rank<'a> {
    Numbered { stability: Stability, major: Reverse<u64>, minor: Reverse<u64> },
    Other(&'a str),
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Stability {
    Stable,
    Beta,
    Alpha,
}

fn rank(version: &str) -> Rank<'_> {
    parse(version).unwrap_or(Rank::Other(version))
}

fn parse(version: &str) -> Option<Rank<'_>> {
    let rest = version.strip_prefix('v')?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let (major, rest) = rest.split_at(digits);
    let (stability, minor) = if rest.is_empty() {
        (Stability::Stable, "0")
    } else if let Some(minor) = rest.strip_prefix("beta") {
        (Stability::Beta, minor)
    } else {
        (Stability::Alpha, rest.strip_prefix("alpha")?)
    };
    Some(Rank::Numbered {
        stability,
        major: Reverse(major.parse().ok()?),
        minor: Reverse(minor.parse().ok()?),
    })
}

/// Compares two versions; the preferred one comes first.
///
/// Upstream: k8s.io/apimachinery/pkg/version/helpers.go: CompareKubeAwareVersionStrings
pub fn compare(left: &str, right: &str) -> Ordering {
    rank(left).cmp(&rank(right))
}

/// Whether a version is neither alpha nor beta.
pub fn is_stable(version: &str) -> bool {
    matches!(rank(version), Rank::Numbered { stability: Stability::Stable, .. })
}

#[cfg(test)]
mod tests {
    #[test]
    fn stable_versions_come_first_and_newer_before_older() {
        let mut versions =
            vec!["foo1", "v1alpha1", "v2", "v10", "v1beta2", "v11beta1", "v1", "foo10"];
        versions.sort_by(|left, right| super::compare(left, right));
        assert_eq!(
            versions,
            ["v10", "v2", "v1", "v11beta1", "v1beta2", "v1alpha1", "foo1", "foo10"]
        );
    }
}
