//! ValidatingAdmissionPolicies on both clusters.
use k8s_testkit::{ClusterKind, clusters, poll};
use kube::Client;
use serde_json::{Value, json};

use super::{Answer, MAPS, ask, deleted, merge, parse};

const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
const BINDINGS: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings";

/// One case.
struct Case {
    /// Fields of the policy's spec, in JSON.
    policy: &'static str,
    /// Fields of the binding's spec, in JSON.
    binding: &'static str,
    /// Method and path.
    line: &'static str,
    /// Body, in JSON.
    body: &'static str,
    /// The answer, in JSON.
    expected: &'static str,
}

const fn case(
    policy: &'static str,
    binding: &'static str,
    line: &'static str,
    body: &'static str,
    expected: &'static str,
) -> Case {
    Case { policy, binding, line, body, expected }
}

const CREATE: &str = "POST MAPS?dryRun=All";
const MAP: &str = r#"{"metadata": {"name": "a", "labels": {"size": "5"}}, "data": {"k": "v"}}"#;

const CASES: &[Case] = &[
    case(
        r#"{"validations": [{"expression": "object.metadata.name == 'a'"}]}"#,
        "{}",
        CREATE,
        MAP,
        r##"{"body":null,"status":201,"warnings":[]}"##,
    ),
    case(
        r#"{"validations": [{"expression": "object.metadata.name == 'b'"}]}"#,
        "{}",
        CREATE,
        MAP,
        r##"{"body":{"apiVersion":"v1","code":422,"details":{"causes":[{"message":"ValidatingAdmissionPolicy 'case' with binding 'case' denied request: failed expression: object.metadata.name == 'b'"}],"kind":"configmaps","name":"a"},"kind":"Status","message":"configmaps \"a\" is forbidden: ValidatingAdmissionPolicy 'case' with binding 'case' denied request: failed expression: object.metadata.name == 'b'","metadata":{},"reason":"Invalid","status":"Failure"},"status":422,"warnings":[]}"##,
    ),
    case(
        r#"{"validations": [{"expression": "false", "message": "never"}]}"#,
        "{}",
        CREATE,
        MAP,
        r##"{"body":{"apiVersion":"v1","code":422,"details":{"causes":[{"message":"ValidatingAdmissionPolicy 'case' with binding 'case' denied request: never"}],"kind":"configmaps","name":"a"},"kind":"Status","message":"configmaps \"a\" is forbidden: ValidatingAdmissionPolicy 'case' with binding 'case' denied request: never","metadata":{},"reason":"Invalid","status":"Failure"},"status":422,"warnings":[]}"##,
    ),
    case(
        r#"{"validations": [{"expression": "false", "message": "never", "reason": "Forbidden"}]}"#,
        "{}",
        CREATE,
        MAP,
        r##"{"body":{"apiVersion":"v1","code":403,"details":{"causes":[{"message":"ValidatingAdmissionPolicy 'case' with binding 'case' denied request: never"}],"kind":"configmaps","name":"a"},"kind":"Status","message":"configmaps \"a\" is forbidden: ValidatingAdmissionPolicy 'case' with binding 'case' denied request: never","metadata":{},"reason":"Forbidden","status":"Failure"},"status":403,"warnings":[]}"##,
    ),
    case(
        r#"{"validations": [{"expression": "false", "reason": "RequestEntityTooLarge"}]}"#,
        "{}",
        CREATE,
        MAP,
        r##"{"body":{"apiVersion":"v1","code":413,"details":{"causes":[{"message":"ValidatingAdmissionPolicy 'case' with binding 'case' denied request: failed expression: false"}],"kind":"configmaps","name":"a"},"kind":"Status","message":"configmaps \"a\" is forbidden: ValidatingAdmissionPolicy 'case' with binding 'case' denied request: failed expression: false","metadata":{},"reason":"RequestEntityTooLarge","status":"Failure"},"status":413,"warnings":[]}"##,
    ),
    case(
        r#"{"validations": [{"expression": "false", "messageExpression": "'no ' + object.metadata.name", "message": "never"}]}"#,
        "{}",
        CREATE,
        MAP,
        r##"{"body":{"apiVersion":"v1","code":422,"details":{"causes":[{"message":"ValidatingAdmissionPolicy 'case' with binding 'case' denied request: no a"}],"kind":"configmaps","name":"a"},"kind":"Status","message":"configmaps \"a\" is forbidden: ValidatingAdmissionPolicy 'case' with binding 'case' denied request: no a","metadata":{},"reason":"Invalid","status":"Failure"},"status":422,"warnings":[]}"##,
    ),
    case(
        r#"{"validations": [{"expression": "false", "messageExpression": "object.nothing", "message": "never"}]}"#,
        "{}",
        CREATE,
        MAP,
        r##"{"body":{"apiVersion":"v1","code":422,"details":{"causes":[{"field":"spec.validations[0].messageExpression","message":"Invalid value: \"object.nothing\": must evaluate to string but got dyn","reason":"FieldValueInvalid"}],"group":"admissionregistration.k8s.io","kind":"ValidatingAdmissionPolicy","name":"case"},"kind":"Status","message":"ValidatingAdmissionPolicy.admissionregistration.k8s.io \"case\" is invalid: spec.validations[0].messageExpression: Invalid value: \"object.nothing\": must evaluate to string but got dyn","metadata":{},"reason":"Invalid","status":"Failure"},"status":422,"warnings":[]}"##,
    ),
    case(
        r#"{"validations": [{"expression": "object.spec.replicas < 3"}]}"#,
        "{}",
        CREATE,
        MAP,
        r##"{"body":{"apiVersion":"v1","code":422,"details":{"causes":[{"message":"ValidatingAdmissionPolicy 'case' with binding 'case' denied request: expression 'object.spec.replicas < 3' resulted in error: no such key: spec"}],"kind":"configmaps","name":"a"},"kind":"Status","message":"configmaps \"a\" is forbidden: ValidatingAdmissionPolicy 'case' with binding 'case' denied request: expression 'object.spec.replicas < 3' resulted in error: no such key: spec","metadata":{},"reason":"Invalid","status":"Failure"},"status":422,"warnings":[]}"##,
    ),
    case(
        r#"{"failurePolicy": "Ignore", "validations": [{"expression": "object.spec.replicas < 3"}]}"#,
        "{}",
        CREATE,
        MAP,
        r##"{"body":null,"status":201,"warnings":[]}"##,
    ),
    case(
        r#"{"validations": [{"expression": "true"}, {"expression": "false", "message": "second"}, {"expression": "false", "message": "third"}]}"#,
        "{}",
        CREATE,
        MAP,
        r##"{"body":{"apiVersion":"v1","code":422,"details":{"causes":[{"message":"ValidatingAdmissionPolicy 'case' with binding 'case' denied request: second"}],"kind":"configmaps","name":"a"},"kind":"Status","message":"configmaps \"a\" is forbidden: ValidatingAdmissionPolicy 'case' with binding 'case' denied request: second","metadata":{},"reason":"Invalid","status":"Failure"},"status":422,"warnings":[]}"##,
    ),
    case(
        r#"{"variables": [{"name": "size", "expression": "int(object.metadata.labels.size)"}, {"name": "twice", "expression": "variables.size * 2"}],
            "validations": [{"expression": "variables.twice < 10", "messageExpression": "'too large: ' + string(variables.twice)"}]}"#,
        "{}",
        CREATE,
        MAP,
        r##"{"body":{"apiVersion":"v1","code":422,"details":{"causes":[{"message":"ValidatingAdmissionPolicy 'case' with binding 'case' denied request: too large: 10"}],"kind":"configmaps","name":"a"},"kind":"Status","message":"configmaps \"a\" is forbidden: ValidatingAdmissionPolicy 'case' with binding 'case' denied request: too large: 10","metadata":{},"reason":"Invalid","status":"Failure"},"status":422,"warnings":[]}"##,
    ),
    case(
        r#"{"variables": [{"name": "broken", "expression": "object.spec.x"}], "validations": [{"expression": "variables.broken == 1"}]}"#,
        "{}",
        CREATE,
        MAP,
        r##"{"body":{"apiVersion":"v1","code":422,"details":{"causes":[{"message":"ValidatingAdmissionPolicy 'case' with binding 'case' denied request: expression 'variables.broken == 1' resulted in error: composited variable \"broken\" fails to evaluate: no such key: spec"}],"kind":"configmaps","name":"a"},"kind":"Status","message":"configmaps \"a\" is forbidden: ValidatingAdmissionPolicy 'case' with binding 'case' denied request: expression 'variables.broken == 1' resulted in error: composited variable \"broken\" fails to evaluate: no such key: spec","metadata":{},"reason":"Invalid","status":"Failure"},"status":422,"warnings":[]}"##,
    ),
    case(
        r#"{"matchConditions": [{"name": "other", "expression": "object.metadata.name != 'a'"}], "validations": [{"expression": "false"}]}"#,
        "{}",
        CREATE,
        MAP,
        r##"{"body":null,"status":201,"warnings":[]}"##,
    ),
    case(
        r#"{"matchConditions": [{"name": "broken", "expression": "object.spec.x == 1"}], "validations": [{"expression": "false"}]}"#,
        "{}",
        CREATE,
        MAP,
        r##"{"body":{"apiVersion":"v1","code":422,"details":{"causes":[{"message":"ValidatingAdmissionPolicy 'case' with binding 'case' denied request: expression 'object.spec.x == 1' resulted in error: no such key: spec"}],"kind":"configmaps","name":"a"},"kind":"Status","message":"configmaps \"a\" is forbidden: ValidatingAdmissionPolicy 'case' with binding 'case' denied request: expression 'object.spec.x == 1' resulted in error: no such key: spec","metadata":{},"reason":"Invalid","status":"Failure"},"status":422,"warnings":[]}"##,
    ),
    case(
        r#"{"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}, "validations": [{"expression": "params.data.limit == '4'", "messageExpression": "'limit is ' + params.data.limit"}]}"#,
        r#"{"paramRef": {"name": "limits", "namespace": "default", "parameterNotFoundAction": "Deny"}}"#,
        CREATE,
        MAP,
        r##"{"body":{"apiVersion":"v1","code":422,"details":{"causes":[{"message":"ValidatingAdmissionPolicy 'case' with binding 'case' denied request: limit is 3"}],"kind":"configmaps","name":"a"},"kind":"Status","message":"configmaps \"a\" is forbidden: ValidatingAdmissionPolicy 'case' with binding 'case' denied request: limit is 3","metadata":{},"reason":"Invalid","status":"Failure"},"status":422,"warnings":[]}"##,
    ),
    case(
        r#"{"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}, "validations": [{"expression": "false"}]}"#,
        r#"{"paramRef": {"name": "absent", "namespace": "default", "parameterNotFoundAction": "Deny"}}"#,
        CREATE,
        MAP,
        r##"{"body":{"apiVersion":"v1","code":422,"details":{"causes":[{"message":"ValidatingAdmissionPolicy 'case' with binding 'case' denied request: failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction"}],"kind":"configmaps","name":"a"},"kind":"Status","message":"configmaps \"a\" is forbidden: ValidatingAdmissionPolicy 'case' with binding 'case' denied request: failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction","metadata":{},"reason":"Invalid","status":"Failure"},"status":422,"warnings":[]}"##,
    ),
    case(
        r#"{"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}, "validations": [{"expression": "false"}]}"#,
        r#"{"paramRef": {"name": "absent", "namespace": "default", "parameterNotFoundAction": "Allow"}}"#,
        CREATE,
        MAP,
        r##"{"body":null,"status":201,"warnings":[]}"##,
    ),
    case(
        r#"{"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}, "validations": [{"expression": "params.data.limit == '4'"}]}"#,
        r#"{"paramRef": {"selector": {"matchLabels": {"kind": "limits"}}, "parameterNotFoundAction": "Deny"}}"#,
        CREATE,
        MAP,
        r##"{"body":{"apiVersion":"v1","code":422,"details":{"causes":[{"message":"ValidatingAdmissionPolicy 'case' with binding 'case' denied request: failed expression: params.data.limit == '4'"}],"kind":"configmaps","name":"a"},"kind":"Status","message":"configmaps \"a\" is forbidden: ValidatingAdmissionPolicy 'case' with binding 'case' denied request: failed expression: params.data.limit == '4'","metadata":{},"reason":"Invalid","status":"Failure"},"status":422,"warnings":[]}"##,
    ),
    case(
        r#"{"validations": [{"expression": "false", "message": "never"}]}"#,
        r#"{"validationActions": ["Warn", "Audit"]}"#,
        CREATE,
        MAP,
        r##"{"body":null,"status":201,"warnings":["299 - \"Validation failed for ValidatingAdmissionPolicy 'case' with binding 'case': never\""]}"##,
    ),
    case(
        r#"{"validations": [{"expression": "false", "message": "never"}]}"#,
        r#"{"validationActions": ["Warn"], "matchResources": {"objectSelector": {"matchLabels": {"size": "6"}}}}"#,
        CREATE,
        MAP,
        r##"{"body":null,"status":201,"warnings":[]}"##,
    ),
    case(
        r#"{"validations": [{"expression": "false", "messageExpression": "request.operation + ' ' + request.namespace + ' ' + request.name + ' ' + request.resource.resource + ' ' + string(request.dryRun) + ' ' + request.options.kind"}]}"#,
        "{}",
        CREATE,
        MAP,
        r##"{"body":{"apiVersion":"v1","code":422,"details":{"causes":[{"message":"ValidatingAdmissionPolicy 'case' with binding 'case' denied request: CREATE default a configmaps true CreateOptions"}],"kind":"configmaps","name":"a"},"kind":"Status","message":"configmaps \"a\" is forbidden: ValidatingAdmissionPolicy 'case' with binding 'case' denied request: CREATE default a configmaps true CreateOptions","metadata":{},"reason":"Invalid","status":"Failure"},"status":422,"warnings":[]}"##,
    ),
    case(
        r#"{"validations": [{"expression": "false", "messageExpression": "namespaceObject.metadata.name + ' ' + namespaceObject.status.phase"}]}"#,
        "{}",
        CREATE,
        MAP,
        r##"{"body":{"apiVersion":"v1","code":422,"details":{"causes":[{"message":"ValidatingAdmissionPolicy 'case' with binding 'case' denied request: default Active"}],"kind":"configmaps","name":"a"},"kind":"Status","message":"configmaps \"a\" is forbidden: ValidatingAdmissionPolicy 'case' with binding 'case' denied request: default Active","metadata":{},"reason":"Invalid","status":"Failure"},"status":422,"warnings":[]}"##,
    ),
    case(
        r#"{"validations": [{"expression": "oldObject.data.k == object.data.k", "messageExpression": "oldObject.data.k + ' became ' + object.data.k"}]}"#,
        "{}",
        "PATCH MAPS/old",
        r#"{"data": {"k": "w"}}"#,
        r##"{"body":{"apiVersion":"v1","code":422,"details":{"causes":[{"message":"ValidatingAdmissionPolicy 'case' with binding 'case' denied request: v became w"}],"kind":"configmaps","name":"old"},"kind":"Status","message":"configmaps \"old\" is forbidden: ValidatingAdmissionPolicy 'case' with binding 'case' denied request: v became w","metadata":{},"reason":"Invalid","status":"Failure"},"status":422,"warnings":[]}"##,
    ),
    case(
        r#"{"validations": [{"expression": "object != null || oldObject.data.k != 'v'", "message": "it stays"}]}"#,
        "{}",
        "DELETE MAPS/old",
        "null",
        r##"{"body":{"apiVersion":"v1","code":422,"details":{"causes":[{"message":"ValidatingAdmissionPolicy 'case' with binding 'case' denied request: it stays"}],"kind":"configmaps","name":"old"},"kind":"Status","message":"configmaps \"old\" is forbidden: ValidatingAdmissionPolicy 'case' with binding 'case' denied request: it stays","metadata":{},"reason":"Invalid","status":"Failure"},"status":422,"warnings":[]}"##,
    ),
    case(
        r#"{"validations": [{"expression": "authorizer.group('').resource('secrets').check('get').allowed() && authorizer.requestResource.check('create').allowed()"}]}"#,
        "{}",
        CREATE,
        MAP,
        r##"{"body":null,"status":201,"warnings":[]}"##,
    ),
    case(
        r#"{"auditAnnotations": [{"key": "k", "valueExpression": "object.nothing"}], "validations": [{"expression": "true"}]}"#,
        "{}",
        CREATE,
        MAP,
        r##"{"body":{"apiVersion":"v1","code":422,"details":{"causes":[{"field":"spec.auditAnnotations[0].valueExpression","message":"Invalid value: \"object.nothing\": must evaluate to one of [string null_type] but got dyn","reason":"FieldValueInvalid"}],"group":"admissionregistration.k8s.io","kind":"ValidatingAdmissionPolicy","name":"case"},"kind":"Status","message":"ValidatingAdmissionPolicy.admissionregistration.k8s.io \"case\" is invalid: spec.auditAnnotations[0].valueExpression: Invalid value: \"object.nothing\": must evaluate to one of [string null_type] but got dyn","metadata":{},"reason":"Invalid","status":"Failure"},"status":422,"warnings":[]}"##,
    ),
    case(
        r#"{"matchConstraints": {"resourceRules": [{"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "resourceNames": ["b"]}]}, "validations": [{"expression": "false"}]}"#,
        "{}",
        CREATE,
        MAP,
        r##"{"body":null,"status":201,"warnings":[]}"##,
    ),
    case(
        r#"{"matchConstraints": {"resourceRules": [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]}], "excludeResourceRules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}]}, "validations": [{"expression": "false"}]}"#,
        "{}",
        CREATE,
        MAP,
        r##"{"body":null,"status":201,"warnings":[]}"##,
    ),
];

fn policy(name: &str, spec: &Value) -> Value {
    let mut complete = json!({
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [
            {"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]},
        ]},
    });
    merge(&mut complete, spec);
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": complete,
    })
}

fn binding(name: &str, spec: &Value) -> Value {
    let mut complete = json!({
        "policyName": name,
        "validationActions": ["Deny"],
        "matchResources": {"objectSelector": {"matchExpressions": [{"key": "probe", "operator": "DoesNotExist"}]}},
    });
    merge(&mut complete, spec);
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": complete,
    })
}

/// Creates a policy and its binding; returns the refusal if one of them is refused.
async fn create(client: &Client, policy: &Value, binding: &Value) -> Result<(), Answer> {
    for (path, object) in [(BINDINGS, binding), (POLICIES, policy)] {
        let answer = ask(client, &format!("POST {path}"), object).await;
        if answer.status != 201 {
            return Err(answer);
        }
    }
    Ok(())
}

/// Waits until a policy that was created after that of a case refuses a probe.
///
/// If the case has parameters, the probe has parameters of the same kind: it is refused with an error
/// until the server has listed them.
async fn wait_for_probe(client: &Client, index: usize, param_kind: Option<&Value>) {
    let message = format!("probe {index}");
    let mut spec = json!({"validations": [{"expression": "false", "message": message}]});
    let mut bound =
        json!({"matchResources": {"objectSelector": {"matchLabels": {"probe": "yes"}}}});
    if let Some(param_kind) = param_kind {
        spec["paramKind"] = param_kind.clone();
        bound["paramRef"] =
            json!({"name": "limits", "namespace": "default", "parameterNotFoundAction": "Deny"});
    }
    create(client, &policy("probe", &spec), &binding("probe", &bound))
        .await
        .expect("the probe is as it should be");
    let map = json!({"metadata": {"name": "probe", "labels": {"probe": "yes"}}});
    let has_effect = || async {
        let answer = ask(client, &format!("POST {MAPS}?dryRun=All"), &map).await;
        answer.body["message"].as_str()?.ends_with(&message).then_some(())
    };
    poll("the effect of the policy", has_effect).await.expect("it takes effect");
}

async fn run(kind: ClusterKind) -> Vec<(String, Value)> {
    let cluster = kind.start().await.expect("the cluster starts");
    let client = cluster.client();
    for map in [
        json!({"metadata": {"name": "old"}, "data": {"k": "v"}}),
        json!({"metadata": {"name": "limits", "labels": {"kind": "limits"}}, "data": {"limit": "3"}}),
    ] {
        let answer = ask(&client, &format!("POST {MAPS}"), &map).await;
        assert_eq!(answer.status, 201, "{}", answer.body);
    }
    let mut answers = Vec::new();
    for (index, case) in CASES.iter().enumerate() {
        let spec = parse(case.policy);
        let created =
            create(&client, &policy("case", &spec), &binding("case", &parse(case.binding))).await;
        let mut configured = vec![format!("{BINDINGS}/case")];
        let Answer { status, warnings, mut body } = match created {
            Err(refusal) => refusal,
            Ok(()) => {
                configured.push(format!("{POLICIES}/case"));
                configured.extend([format!("{BINDINGS}/probe"), format!("{POLICIES}/probe")]);
                wait_for_probe(&client, index, spec.get("paramKind")).await;
                ask(&client, &case.line.replace("MAPS", MAPS), &parse(case.body)).await
            }
        };
        if body["kind"] != "Status" {
            body = Value::Null;
        }
        let name = format!("{index} {}", case.policy.replace('\n', " "));
        answers.push((name, json!({"status": status, "warnings": warnings, "body": body})));
        for path in configured {
            deleted(&client, &path).await;
        }
    }
    answers
}

/// Every case has the same answer on every cluster, and the one that is written down.
#[tokio::test(flavor = "multi_thread")]
async fn policies_decide_alike_on_all_clusters() {
    let mut wrong = Vec::new();
    for kind in clusters() {
        for ((name, found), case) in run(kind).await.into_iter().zip(CASES) {
            let expected = parse(case.expected);
            if found != expected {
                wrong.push(format!("{kind}: {name}\n  found    {found}\n  expected {expected}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
