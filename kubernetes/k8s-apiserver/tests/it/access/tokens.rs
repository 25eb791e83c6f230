//! Tokens of service accounts: what they say, and how long they are good.
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use k8s_apiserver::{AccessOptions, KeySource};
use serde_json::Value;

use super::Subject;

const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const WHOAMI: &str = "POST /apis/authentication.k8s.io/v1/selfsubjectreviews";

fn issue(subject: &Subject, account: &str, body: &str) -> String {
    let answer =
        subject.check("", &format!("POST {ACCOUNTS}/{account}/token"), body, 201, "TokenRequest");
    format!("token:{}", answer["status"]["token"].as_str().unwrap())
}

#[test]
fn a_token_is_good_for_its_time_and_audience() {
    let subject = Subject::new(AccessOptions::default());
    let token = issue(&subject, "default", "{}");
    let user = r#""username":"system:serviceaccount:default:default""#;
    subject.check(&token, WHOAMI, "{}", 201, user);
    subject.check(
        &token,
        "GET /api/v1/namespaces/default/pods",
        "",
        403,
        r#"User "system:serviceaccount:default:default" cannot list resource "pods""#,
    );
    subject.advance(3_600 + 60);
    subject.check(&token, WHOAMI, "{}", 201, user);
    subject.advance(1);
    subject.check(&token, WHOAMI, "{}", 401, "Unauthorized");
    let review = "POST /apis/authentication.k8s.io/v1/tokenreviews";
    let body = |token: &str| {
        let text = token.trim_start_matches("token:");
        format!(r#"{{"spec": {{"token": "{text}", "audiences": ["x"]}}}}"#)
    };
    let other = issue(&subject, "default", r#"{"spec": {"audiences": ["x", "y"]}}"#);
    subject.check(&other, WHOAMI, "{}", 401, "");
    subject.check("", review, &body(&other), 201, r#""audiences":["x"],"authenticated":true"#);
    subject.check("", review, &body(&token), 201, r#"is invalid for the target audiences [\"x\"]"#);
}

#[test]
fn a_token_is_only_good_on_its_server() {
    let [one, other] = [(), ()].map(|()| Subject::new(AccessOptions::default()));
    let token = issue(&one, "default", "{}");
    one.check(&token, WHOAMI, "{}", 201, "");
    other.check(&token, WHOAMI, "{}", 401, "Unauthorized");
    let seeded = || AccessOptions { keys: KeySource::Seed(7), ..AccessOptions::default() };
    let [one, other] = [(), ()].map(|()| Subject::new(seeded()));
    let token = issue(&one, "default", "{}");
    other.check(&token, WHOAMI, "{}", 201, "");
}

#[test]
fn a_token_ends_with_what_it_is_bound_to() {
    let subject = Subject::new(AccessOptions::default());
    let pod =
        r#"{"metadata": {"name": "p"}, "spec": {"containers": [{"name": "a", "image": "b"}]}}"#;
    subject.check("", "POST /api/v1/namespaces/default/pods", pod, 201, "");
    let secret = r#"{"metadata": {"name": "s"}}"#;
    subject.check("", "POST /api/v1/namespaces/default/secrets", secret, 201, "");
    subject.check("", &format!("POST {ACCOUNTS}"), r#"{"metadata": {"name": "robot"}}"#, 201, "");
    let bound = |kind: &str, name: &str| {
        format!(
            r#"{{"spec": {{"boundObjectRef": {{"apiVersion": "v1", "kind": "{kind}", "name": "{name}"}}}}}}"#
        )
    };
    let cases = [
        ("default", bound("Pod", "p"), "/api/v1/namespaces/default/pods/p?gracePeriodSeconds=0"),
        ("default", bound("Secret", "s"), "/api/v1/namespaces/default/secrets/s"),
        ("robot", "{}".to_owned(), "/api/v1/namespaces/default/serviceaccounts/robot"),
    ];
    for (account, body, path) in cases {
        let token = issue(&subject, account, &body);
        subject.check(&token, WHOAMI, "{}", 201, "");
        subject.check("", &format!("DELETE {path}"), "", 200, "");
        subject.check(&token, WHOAMI, "{}", 401, "Unauthorized");
    }
}

#[test]
fn the_same_seed_and_clock_issue_the_same_token() {
    let seeded = || AccessOptions { keys: KeySource::Seed(7), ..AccessOptions::default() };
    let issued = || issue(&Subject::new(seeded()), "default", "{}");
    assert_eq!(issued(), issued());
}

#[test]
fn whoever_may_read_them_finds_the_issuer_and_its_keys() {
    let subject = Subject::new(AccessOptions::default());
    let token = issue(&subject, "default", "{}");
    let encoded = token.trim_start_matches("token:").split('.').next().unwrap();
    let header: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(encoded).unwrap()).unwrap();
    let keys = subject.check(&token, "GET /openid/v1/jwks", "", 200, r#""kty":"OKP""#);
    assert_eq!(keys["keys"][0]["kid"], header["kid"]);
    let found = subject.check(&token, "GET /.well-known/openid-configuration", "", 200, "jwks_uri");
    assert!(found["jwks_uri"].as_str().unwrap().ends_with("/openid/v1/jwks"), "{found}");
    subject.check("bob", "GET /openid/v1/jwks", "", 403, "");
}
