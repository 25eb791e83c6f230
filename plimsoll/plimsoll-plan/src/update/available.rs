//! Which updates a payload store offers from a release: the edges of its update graph
//! (CV-16.6, CV-29).
//!
//! An edge leads from one release to another when either names the other in its metadata:
//! `previous` of the later one, `next` of the earlier one.

use plimsoll_api::Reason;
use plimsoll_api::config::Release;
use plimsoll_content::payload::ReleaseHeader;
use semver::Version;

/// What `RetrievedUpdates` tells: nothing, or why there is no telling.
pub type Retrieved = Result<(), (Reason, String)>;

/// The updates from a release, newest first, and whether they could be found out. `left` is the version that
/// an update to the release comes from, `None` once that is completed: what leads on from there may repair it.
/// A channel, if one is configured, must have the release and limits what is offered.
pub fn available(
    current: &Release,
    left: Option<&str>,
    channel: &str,
    heads: &[ReleaseHeader],
) -> (Vec<Release>, Retrieved) {
    let own = heads
        .iter()
        .find(|head| head.image == current.image)
        .or_else(|| heads.iter().find(|head| head.release.version == current.version));
    let in_channel = |head: &&ReleaseHeader| {
        channel.is_empty() || head.release.channels.iter().any(|name| name == channel)
    };
    if !channel.is_empty() && own.filter(in_channel).is_none() {
        let message = format!(
            "Unable to retrieve available updates: currently reconciling cluster version {} not \
             found in the {channel:?} channel",
            current.version
        );
        return (Vec::new(), Err((Reason::VersionNotFound, message)));
    }
    let next = own.map(|own| own.release.next.as_slice()).unwrap_or_default();
    let own_version = Version::parse(&current.version).ok();
    // Going back is requested and not offered: it is refused but for the release before.
    let is_lower = |version: &str| {
        let version = Version::parse(version).ok();
        version.is_some() && own_version.is_some() && version < own_version
    };
    let leads_on = |previous: &[String]| {
        previous.iter().any(|it| *it == current.version || Some(it.as_str()) == left)
    };
    let is_edge = |head: &&ReleaseHeader| {
        head.image != current.image
            && head.release.version != current.version
            && !is_lower(&head.release.version)
            && (next.contains(&head.release.version) || leads_on(&head.release.previous))
    };
    let mut offered: Vec<Release> =
        heads.iter().filter(in_channel).filter(is_edge).map(ReleaseHeader::named).collect();
    offered.sort_by(|left, right| {
        let order = |release: &Release| Version::parse(&release.version).ok();
        order(right).cmp(&order(left)).then_with(|| left.image.cmp(&right.image))
    });
    offered.dedup();
    (offered, Ok(()))
}

#[cfg(test)]
mod tests {
    //! Edges from either end, channels, order.

    use plimsoll_api::config::Release;
    use plimsoll_content::payload::{ReleaseHeader, ReleaseInfo};

    use super::available;

    /// `version[<previous,..][>next,..][#channel,..]`
    fn head(text: &str) -> ReleaseHeader {
        let part = |mark: char| -> Vec<String> {
            let rest = text.split_once(mark).map_or("", |(_, rest)| rest);
            let part = rest.split(['<', '>', '#']).next().unwrap_or_default();
            part.split(',').filter(|it| !it.is_empty()).map(str::to_owned).collect()
        };
        let version = text.split(['<', '>', '#']).next().unwrap_or_default().to_owned();
        ReleaseHeader {
            image: format!("image@{version}"),
            release: ReleaseInfo {
                version,
                previous: part('<'),
                next: part('>'),
                channels: part('#'),
                ..ReleaseInfo::default()
            },
        }
    }

    #[track_caller]
    fn check(heads: &str, channel: &str, expected: &str) {
        check_left(None, heads, channel, expected);
    }

    #[track_caller]
    fn check_left(left: Option<&str>, heads: &str, channel: &str, expected: &str) {
        let heads: Vec<ReleaseHeader> = heads.split_whitespace().map(head).collect();
        let current = Release {
            version: "4.3.2".to_owned(),
            image: "image@4.3.2".to_owned(),
            ..Release::default()
        };
        let (offered, retrieved) = available(&current, left, channel, &heads);
        let mut reported: Vec<String> =
            offered.into_iter().map(|release| release.version).collect();
        reported.extend(retrieved.err().map(|(reason, _)| reason.to_string()));
        assert_eq!(reported.join(" "), expected, "{heads:?}");
    }

    #[test]
    fn an_edge_is_named_at_either_end() {
        check("4.3.2 4.3.3<4.3.2 4.3.10<4.3.1,4.3.2 4.3.11<4.3.10", "", "4.3.10 4.3.3");
        check("4.3.2>4.3.3,4.3.9 4.3.3", "", "4.3.3");
        check("4.3.3<4.3.2", "", "4.3.3");
        check("4.3.2", "", "");
    }

    #[test]
    fn a_lower_version_is_not_offered() {
        check("4.3.2>4.3.1 4.3.1 4.3.2-rc.1<4.3.2 4.3.3<4.3.2", "", "4.3.3");
    }

    #[test]
    fn what_leads_on_from_the_release_before_is_offered_until_the_update_is_completed() {
        let heads = "4.3.1 4.3.2<4.3.1 4.3.3<4.3.1 4.3.0<4.3.1 4.3.4<4.3.3";
        check_left(Some("4.3.1"), heads, "", "4.3.3");
        check_left(None, heads, "", "");
        check_left(Some("4.3.1"), "4.3.2#fast 4.3.3<4.3.1#fast 4.3.4<4.3.1", "fast", "4.3.3");
    }

    #[test]
    fn a_channel_limits_what_is_offered() {
        check("4.3.2#fast 4.3.3<4.3.2#fast 4.3.4<4.3.2#slow", "fast", "4.3.3");
        check("4.3.2#fast 4.3.3<4.3.2#fast", "slow", "VersionNotFound");
    }
}
