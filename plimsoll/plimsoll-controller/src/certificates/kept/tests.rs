//! Tests of when certificates are renewed, and of the authorities that are trusted in the meantime.

use super::super::issue::issue;
use super::*;

const SERVICE: &str = "crane-service";

fn day(number: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_hours(24 * number)
}

fn names(namespace: &str) -> Vec<String> {
    let host = format!("{SERVICE}.{namespace}");
    vec![host.clone(), format!("{host}.svc"), format!("{host}.svc.cluster.local")]
}

fn made(kept: &KeptCertificate, renewal: Renewal, now: Timestamp) -> KeptCertificate {
    issue(kept, renewal, SERVICE, &names("harbour"), now).expect("it can be made")
}

fn first(now: Timestamp) -> KeptCertificate {
    made(&KeptCertificate::default(), Renewal::Authority, now)
}

/// Checks whether a certificate is renewed, and that the renewed one is not.
fn check(what: &str, kept: &KeptCertificate, names: &[String], now: Timestamp, expected: Renewal) {
    assert_eq!(kept.renewal(names, now), expected, "{what}");
    if expected != Renewal::NotDue {
        let renewed = issue(kept, expected, SERVICE, names, now).expect("it can be made");
        assert_eq!(renewed.renewal(names, now), Renewal::NotDue, "{what}, renewed");
    }
}

#[test]
fn what_ends_is_renewed() {
    let good = first(day(1000));
    let own = names("harbour");
    for (what, now, expected) in [
        ("new", day(1000), Renewal::NotDue),
        ("a clock that differs", day(1000) - SignedDuration::from_hours(20), Renewal::NotDue),
        ("before it is due", day(1059), Renewal::NotDue),
        ("due", day(1061), Renewal::Certificate),
        ("ended", day(2000), Renewal::Certificate),
        ("before it begins", day(990), Renewal::Certificate),
        ("the authority before it is due", day(1000 + 3284), Renewal::Certificate),
        ("the authority due", day(1000 + 3286), Renewal::Authority),
    ] {
        check(what, &good, &own, now, expected);
    }
}

#[test]
fn what_is_broken_is_renewed() {
    let good = first(day(1000));
    let other = first(day(1000));
    let with = |change: &dyn Fn(&mut KeptCertificate)| {
        let mut kept = good.clone();
        change(&mut kept);
        kept
    };
    let own = names("harbour");
    check("another name", &good, &names("pier"), day(1000), Renewal::Certificate);
    for (what, kept, expected) in [
        ("nothing", KeptCertificate::default(), Renewal::Authority),
        ("no certificate", with(&|it| it.certificate.clear()), Renewal::Certificate),
        ("text", with(&|it| it.certificate = "x".into()), Renewal::Certificate),
        ("no key", with(&|it| it.key.clear()), Renewal::Certificate),
        ("another key", with(&|it| it.key.clone_from(&other.key)), Renewal::Certificate),
        (
            "of another authority",
            with(&|it| {
                it.certificate.clone_from(&other.certificate);
                it.key.clone_from(&other.key);
            }),
            Renewal::Certificate,
        ),
        ("no authority", with(&|it| it.authorities.clear()), Renewal::Authority),
        ("no authority's key", with(&|it| it.authority_key.clear()), Renewal::Authority),
        ("no end", with(&|it| it.authority_not_after = None), Renewal::Authority),
    ] {
        check(what, &kept, &own, day(1000), expected);
    }
}

#[test]
fn whoever_trusts_one_trusts_the_next() {
    let before = first(day(1000));
    let own = names("harbour");
    let trusting = |certificate: &KeptCertificate, authorities: &KeptCertificate| {
        let mut client = certificate.clone();
        client.authorities.clone_from(&authorities.authorities);
        client
    };
    // The same authority: callers do not have to change.
    let renewed = made(&before, Renewal::Certificate, day(1061));
    assert_eq!(renewed.authorities, before.authorities);
    assert_ne!(renewed.key, before.key);
    // Another authority: the previous one is still trusted, the one before it is not.
    let replaced = made(&renewed, Renewal::Authority, day(1062));
    assert!(trusting(&renewed, &replaced).serves(&own, day(1062)));
    assert!(replaced.serves(&own, day(1062)));
    assert!(!trusting(&replaced, &renewed).serves(&own, day(1062)));
    let again = made(&replaced, Renewal::Authority, day(1063));
    assert!(trusting(&replaced, &again).serves(&own, day(1063)));
    assert!(!trusting(&renewed, &again).serves(&own, day(1063)));
    // An authority whose key belongs to another one cannot sign.
    let mut broken = before.clone();
    broken.authority_key.clone_from(&replaced.authority_key);
    assert_eq!(broken.renewal(&own, day(1000)), Renewal::NotDue);
    let repaired = made(&broken, Renewal::Certificate, day(1061));
    assert_ne!(repaired.authority_key, broken.authority_key);
    assert!(repaired.serves(&own, day(1061)));
}

#[test]
fn a_secret_holds_all_of_it() {
    let made = first(day(1000));
    let secret = made.secret("harbour", "crane-service-cert", "crane");
    assert_eq!(KeptCertificate::of(&secret), made);
    assert_eq!(secret.labels().get("olm.io/operator").map(String::as_str), Some("crane"));
    assert_eq!(KeptCertificate::of(&Secret::default()), KeptCertificate::default());
}
