//! Who asks, and as whom.
use k8s_apiserver::{AccessOptions, Authorization, FallbackUser, StaticToken, UserInfo};

use super::Subject;

const WHOAMI: &str = "POST /apis/authentication.k8s.io/v1/selfsubjectreviews";

fn options() -> AccessOptions {
    AccessOptions {
        tokens: vec![StaticToken {
            token: "secret".to_owned(),
            user: UserInfo::new("carol", ["devs"]),
        }],
        ..AccessOptions::default()
    }
}

#[test]
fn requests_come_from_whom_they_say_or_else_from_whom_the_options_say() {
    let subject = Subject::new(options());
    let cases = [
        ("", 201, r#""username":"system:admin""#),
        ("bob", 201, r#""username":"bob""#),
        ("token:secret", 201, r#"["devs","system:authenticated"],"username":"carol""#),
        ("token:wrong", 401, "Unauthorized"),
        ("token:a.b.c", 401, "Unauthorized"),
        ("as:bob,devs", 201, r#"["devs","system:authenticated"],"username":"bob""#),
        (
            "as:system:serviceaccount:default:robot",
            201,
            r#"["system:serviceaccounts","system:serviceaccounts:default","system:authenticated"]"#,
        ),
        (
            "as:system:anonymous",
            403,
            r#"User "system:anonymous" cannot create resource "selfsubjectreviews" in API group "authentication.k8s.io" at the cluster scope"#,
        ),
    ];
    for (who, status, part) in cases {
        subject.check(who, WHOAMI, "{}", status, part);
    }
    let anonymous = AccessOptions { in_process: FallbackUser::Anonymous, ..options() };
    let subject = Subject::new(anonymous);
    subject.check("", "GET /api/v1/pods", "", 403, r#"User "system:anonymous" cannot list"#);
    subject.check("", "GET /healthz", "", 200, "ok");
}

#[test]
fn without_authorization_everybody_may_do_everything() {
    let subject = Subject::new(AccessOptions {
        authorization: Authorization::AlwaysAllow,
        in_process: FallbackUser::Anonymous,
        ..options()
    });
    subject.check("", "GET /api/v1/pods", "", 200, "");
    subject.check("bob", "GET /nowhere", "", 404, "");
    subject.check(
        "bob",
        "POST /apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
        r#"{"spec": {"namespace": "default"}}"#,
        201,
        r#"{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}"#,
    );
    subject.check("token:wrong", "GET /api/v1/pods", "", 401, "Unauthorized");
}

/// A request for a certificate, as PEM in base64.
const REQUEST: &str = "\
    LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIRk1HNENBUUF3RERFS01BZ0dBMVVF\
    QXd3QllUQlpNQk1HQnlxR1NNNDlBZ0VHQ0NxR1NNNDlBd0VIQTBJQQpCQU1RK2VVRGswdkpYNXRWbzkx\
    WEg2U1E3WFdTN2hPcjVjclVGZDUwQ0lKUG1rSUdtT3h2RTc0OEk0cXlRM0N5Cms1YlZ6YXhZNkxpcm5v\
    c2JHd3hWcVhLZ0FEQUtCZ2dxaGtqT1BRUURBZ05IQURCRUFpQkFGeDNPUVBFamJ5UU0KZTE1Y1dUZHF1\
    bURQeU1jTUxCbmFxMWJGZFk3UmNRSWdNZVkzSGZuS3lic1plalhabUYzWXVITXpCdFVjTzdRbApieUNQ\
    NHp0bU40MD0KLS0tLS1FTkQgQ0VSVElGSUNBVEUgUkVRVUVTVC0tLS0tCg==\
";

#[test]
fn requests_for_certificates_carry_who_asks() {
    let subject = Subject::new(options());
    let request = r#"{"metadata": {"name": "a"}, "spec": {"request": "REQUEST",
        "signerName": "example.com/a", "usages": ["client auth"], "username": "eve"}}"#;
    subject.check(
        "",
        "POST /apis/certificates.k8s.io/v1/certificatesigningrequests",
        &request.replace("REQUEST", REQUEST),
        201,
        r#""username":"system:admin""#,
    );
}
