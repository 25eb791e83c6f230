//! Who may do what, asked of every cluster: the same question, the same answer.
//!
//! The administrator acts as others (`Impersonate-User`), which both kinds of cluster authorize by
//! the same roles. `SETUP` is written first; the cases do not depend on each other.
use http::Request;
use http_body_util::BodyExt as _;
use k8s_testkit::{ClusterKind, clusters, poll};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

/// What is written before the cases: path and object.
const SETUP: &[(&str, &str)] = &[
    (
        "clusterroles",
        r#"{"metadata": {"name": "writer"}, "rules": [{"verbs": ["create", "update", "patch", "get"], "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles", "rolebindings", "clusterroles", "clusterrolebindings"]}, {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["configmaps"]}]}"#,
    ),
    (
        "clusterrolebindings",
        r#"{"metadata": {"name": "writers"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "writer"}, "subjects": [{"kind": "User", "name": "will"}]}"#,
    ),
    (
        "clusterroles",
        r#"{"metadata": {"name": "binder"}, "rules": [{"verbs": ["create"], "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["rolebindings", "roles"]}, {"verbs": ["bind"], "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles"], "resourceNames": ["view"]}, {"verbs": ["escalate"], "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"]}]}"#,
    ),
    (
        "clusterrolebindings",
        r#"{"metadata": {"name": "binders"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "binder"}, "subjects": [{"kind": "Group", "name": "binders"}]}"#,
    ),
    (
        "clusterrolebindings",
        r#"{"metadata": {"name": "dangling"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "gone"}, "subjects": [{"kind": "User", "name": "dan"}]}"#,
    ),
    (
        "namespaces/default/roles",
        r#"{"metadata": {"name": "one-pod"}, "rules": [{"verbs": ["get", "list", "watch"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["p"]}, {"verbs": ["get"], "apiGroups": [""], "resources": ["*/log"]}, {"verbs": ["get"], "apiGroups": [""], "resources": ["namespaces"]}]}"#,
    ),
    (
        "namespaces/default/rolebindings",
        r#"{"metadata": {"name": "one-pod"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "one-pod"}, "subjects": [{"kind": "ServiceAccount", "name": "robot"}]}"#,
    ),
];

/// Users with few rights, for requests that could reach more.
const FEW_RIGHTS: &[(&str, &str)] = &[
    ("wanda", r#"[{"verbs": ["watch"], "apiGroups": ["*"], "resources": ["*"]}]"#),
    (
        "mia",
        r#"[{"verbs": ["get", "list"], "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["mine"]}]"#,
    ),
    ("pat", r#"[{"verbs": ["get", "patch"], "apiGroups": ["*"], "resources": ["*"]}]"#),
    ("una", r#"[{"verbs": ["get", "update"], "apiGroups": ["*"], "resources": ["*"]}]"#),
    (
        "vera",
        r#"[{"verbs": ["get", "list", "watch"], "apiGroups": [""], "resources": ["configmaps", "pods", "namespaces"]}]"#,
    ),
];

/// One question: as whom, method and path, body, status, and a part of the message or answer.
type Case = (&'static str, &'static str, &'static str, u16, &'static str);

const ROBOT: &str = "system:serviceaccount:default:robot";
const REVIEW: &str = "POST /apis/authorization.k8s.io/v1/subjectaccessreviews";
const SELF: &str = "POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
const LOCAL: &str =
    "POST /apis/authorization.k8s.io/v1/namespaces/default/localsubjectaccessreviews";
const RULES: &str = "POST /apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
const BIND: &str = "POST {}/namespaces/default/rolebindings?dryRun=All";
const WHOAMI: &str = "POST /apis/authentication.k8s.io/v1/selfsubjectreviews";
const TOKEN: &str = "POST /api/v1/namespaces/default/serviceaccounts/default/token";

/// Requests for objects and paths.
const REQUESTS: &[Case] = &[
    (
        "bob",
        "GET /api/v1/pods",
        "",
        403,
        r#"pods is forbidden: User "bob" cannot list resource "pods" in API group "" at the cluster scope"#,
    ),
    ("bob", "GET /api/v1/pods?watch=1", "", 403, r#"cannot watch resource "pods""#),
    (
        "bob",
        "GET /api/v1/pods?fieldSelector=metadata.name%3Dx",
        "",
        403,
        r#"pods "x" is forbidden: User "bob" cannot list"#,
    ),
    (
        "bob",
        "GET /api/v1/namespaces/default/pods/x",
        "",
        403,
        r#"pods "x" is forbidden: User "bob" cannot get resource "pods" in API group "" in the namespace "default""#,
    ),
    (
        "bob",
        "GET /apis/apps/v1/namespaces/default/deployments/x/scale",
        "",
        403,
        r#"deployments.apps "x" is forbidden: User "bob" cannot get resource "deployments/scale" in API group "apps" in the namespace "default""#,
    ),
    (
        "bob",
        "GET /api/v1/namespaces/default",
        "",
        403,
        r#"cannot get resource "namespaces" in API group "" in the namespace "default""#,
    ),
    (
        "bob",
        "GET /apis/nope.io/v1/foos",
        "",
        403,
        r#"foos.nope.io is forbidden: User "bob" cannot list resource "foos" in API group "nope.io""#,
    ),
    ("bob", "POST /api/v1/namespaces/default/pods", "{}", 403, r#"cannot create resource "pods""#),
    ("bob", "PUT /api/v1/namespaces/default/pods/x", "{}", 403, r#"cannot update resource "pods""#),
    (
        "bob",
        "PATCH /api/v1/namespaces/default/pods/x",
        "{}",
        403,
        r#"cannot patch resource "pods""#,
    ),
    (
        "bob",
        "DELETE /api/v1/namespaces/default/pods/x",
        "",
        403,
        r#"cannot delete resource "pods""#,
    ),
    (
        "bob",
        "DELETE /api/v1/namespaces/default/pods",
        "",
        403,
        r#"pods is forbidden: User "bob" cannot deletecollection resource "pods""#,
    ),
    ("bob", "GET /nowhere", "", 403, r#"forbidden: User "bob" cannot get path "/nowhere""#),
    ("bob", "POST /nowhere", "", 403, r#"forbidden: User "bob" cannot post path "/nowhere""#),
    ("bob", "GET /metrics", "", 403, r#"cannot get path "/metrics""#),
    ("bob", "GET /healthz", "", 200, "ok"),
    ("bob", "GET /version", "", 200, "v1.37.1"),
    ("bob", "GET /apis/apps/v1", "", 200, "APIResourceList"),
    (
        "system:anonymous",
        "GET /apis",
        "",
        403,
        r#"User "system:anonymous" cannot get path "/apis""#,
    ),
    ("system:anonymous", "GET /readyz", "", 200, "ok"),
    ("system:kube-scheduler", "GET /api/v1/pods", "", 200, "PodList"),
    ("system:kube-scheduler", "GET /api/v1/secrets", "", 403, "cannot list"),
    (
        "dan",
        "GET /api/v1/pods",
        "",
        403,
        r#"at the cluster scope: rbac: RBAC: clusterrole.rbac.authorization.k8s.io "gone" not found"#,
    ),
    (ROBOT, "GET /api/v1/namespaces/default/pods/p", "", 404, r#"pods "p" not found"#),
    (ROBOT, "GET /api/v1/namespaces/default/pods/q", "", 403, r#"pods "q" is forbidden"#),
    (ROBOT, "GET /api/v1/namespaces/default/pods", "", 403, "cannot list"),
    (
        ROBOT,
        "GET /api/v1/namespaces/default/pods?fieldSelector=metadata.name%3Dp",
        "",
        200,
        "PodList",
    ),
    (
        ROBOT,
        "GET /api/v1/namespaces/kube-system/pods/p",
        "",
        403,
        r#"in the namespace "kube-system""#,
    ),
    (ROBOT, "GET /api/v1/namespaces/default", "", 200, r#""name":"default""#),
    (ROBOT, "GET /api/v1/namespaces/kube-system", "", 403, r#"in the namespace "kube-system""#),
];

/// Writes of roles and bindings by those who do not have all the rights in them.
const ESCALATION: &[Case] = &[
    (
        "will",
        "POST {}/namespaces/default/roles",
        r#"{"metadata": {"name": "same"}, "rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["configmaps"]}]}"#,
        201,
        "same",
    ),
    (
        "will",
        "POST {}/namespaces/default/roles",
        r#"{"metadata": {"name": "more"}, "rules": [{"verbs": ["get", "list", "watch"], "apiGroups": ["", "apps"], "resources": ["configmaps", "pods"]}, {"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["a", "b"]}]}"#,
        403,
        "roles.rbac.authorization.k8s.io \"more\" is forbidden: user \"will\" (groups=[\"system:authenticated\"]) is attempting to grant RBAC permissions not currently held:\n{APIGroups:[\"\"], Resources:[\"configmaps\"], Verbs:[\"watch\"]}\n{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"get\" \"list\" \"watch\"]}\n{APIGroups:[\"\"], Resources:[\"secrets\"], ResourceNames:[\"a\"], Verbs:[\"get\"]}\n{APIGroups:[\"\"], Resources:[\"secrets\"], ResourceNames:[\"b\"], Verbs:[\"get\"]}\n{APIGroups:[\"apps\"], Resources:[\"configmaps\"], Verbs:[\"get\" \"list\" \"watch\"]}\n{APIGroups:[\"apps\"], Resources:[\"pods\"], Verbs:[\"get\" \"list\" \"watch\"]}",
    ),
    (
        "will",
        "POST {}/clusterroles",
        r#"{"metadata": {"name": "more"}, "rules": [{"verbs": ["get", "post"], "nonResourceURLs": ["/x", "/healthz"]}, {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]}"#,
        403,
        "{APIGroups:[\"*\"], Resources:[\"*\"], Verbs:[\"*\"]}\n{NonResourceURLs:[\"/healthz\"], Verbs:[\"post\"]}\n{NonResourceURLs:[\"/x\"], Verbs:[\"get\"]}\n{NonResourceURLs:[\"/x\"], Verbs:[\"post\"]}",
    ),
    (
        "will",
        "POST {}/clusterroles",
        r#"{"metadata": {"name": "more"}, "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}, "rules": []}"#,
        403,
        "must have cluster-admin privileges to use the aggregationRule",
    ),
    (
        "will",
        "PUT {}/clusterroles/more",
        r#"{"metadata": {"name": "more"}, "rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["nodes"]}]}"#,
        403,
        "attempting to grant",
    ),
    (
        "will",
        "PATCH {}/clusterroles/view",
        r#"{"metadata": {"labels": {"x": "y"}}}"#,
        403,
        r#"{APIGroups:[""], Resources:["bindings"], Verbs:["get" "list" "watch"]}"#,
    ),
    (
        "will",
        "POST {}/namespaces/default/rolebindings",
        r#"{"metadata": {"name": "more"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}, "subjects": []}"#,
        403,
        r#"rolebindings.rbac.authorization.k8s.io "more" is forbidden: user "will""#,
    ),
    (
        "will",
        "POST {}/namespaces/default/rolebindings",
        r#"{"metadata": {"name": "more"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "gone"}, "subjects": []}"#,
        404,
        r#"rolebindings.rbac.authorization.k8s.io "gone" not found"#,
    ),
    (
        "will",
        "POST {}/clusterrolebindings",
        r#"{"metadata": {"name": "more"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "gone"}, "subjects": []}"#,
        404,
        r#"clusterrolebindings.rbac.authorization.k8s.io "gone" not found"#,
    ),
    (
        "will",
        "POST {}/clusterrolebindings",
        r#"{"metadata": {"name": "more"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "writer"}, "subjects": [{"kind": "User", "name": "eve"}]}"#,
        201,
        "eve",
    ),
    (
        "ben,binders",
        "POST {}/namespaces/default/rolebindings",
        r#"{"metadata": {"name": "bound"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}, "subjects": []}"#,
        201,
        "bound",
    ),
    (
        "ben,binders",
        "POST {}/namespaces/default/rolebindings",
        r#"{"metadata": {"name": "more"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"}, "subjects": []}"#,
        403,
        "attempting to grant",
    ),
    (
        "ben,binders",
        "POST {}/namespaces/default/roles",
        r#"{"metadata": {"name": "escalated"}, "rules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]}"#,
        201,
        "escalated",
    ),
];

/// Reviews, tokens, and acting as others.
const REVIEWS: &[Case] = &[
    (
        "bob,devs",
        WHOAMI,
        "{}",
        201,
        r#"{"groups":["devs","system:authenticated"],"username":"bob"}"#,
    ),
    (
        ROBOT,
        WHOAMI,
        "{}",
        201,
        r#"{"groups":["system:serviceaccounts","system:serviceaccounts:default","system:authenticated"],"username":"system:serviceaccount:default:robot"}"#,
    ),
    (
        "bob,system:unauthenticated",
        WHOAMI,
        "{}",
        403,
        r#"User "bob" cannot create resource "selfsubjectreviews""#,
    ),
    (
        ",devs",
        WHOAMI,
        "{}",
        400,
        r#"requested &user.DefaultInfo{Name:"", UID:"", Groups:[]string{"devs"}, Extra:map[string][]string(nil)} without impersonating a user name"#,
    ),
    (
        "bob",
        SELF,
        r#"{"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}}"#,
        201,
        r#""status":{"allowed":false}"#,
    ),
    (
        "",
        SELF,
        r#"{"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}}"#,
        201,
        r#""status":{"allowed":true}"#,
    ),
    (
        "bob",
        SELF,
        r#"{"spec": {}}"#,
        422,
        r#".authorization.k8s.io "" is invalid: spec: Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified"#,
    ),
    (
        "bob",
        REVIEW,
        r#"{"spec": {"user": "x", "resourceAttributes": {"verb": "get", "resource": "pods"}}}"#,
        403,
        r#"subjectaccessreviews.authorization.k8s.io is forbidden"#,
    ),
    (
        "",
        REVIEW,
        r#"{"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}}"#,
        422,
        r#"spec.user: Invalid value: "": at least one of user or group must be specified"#,
    ),
    (
        "",
        REVIEW,
        r#"{"spec": {"user": "x", "groups": ["system:masters"], "resourceAttributes": {"verb": "get", "resource": "pods"}}}"#,
        201,
        r#""status":{"allowed":true}"#,
    ),
    (
        "",
        REVIEW,
        r#"{"spec": {"user": "system:kube-scheduler", "resourceAttributes": {"verb": "list", "resource": "pods"}}}"#,
        201,
        r#"RBAC: allowed by ClusterRoleBinding \"system:kube-scheduler\" of ClusterRole \"system:kube-scheduler\" to User \"system:kube-scheduler\""#,
    ),
    (
        "",
        REVIEW,
        r#"{"spec": {"user": "system:serviceaccount:default:robot", "resourceAttributes": {"verb": "get", "resource": "pods", "subresource": "log", "namespace": "default", "name": "z"}}}"#,
        201,
        r#"RBAC: allowed by RoleBinding \"one-pod/default\" of Role \"one-pod\" to ServiceAccount \"robot/default\""#,
    ),
    (
        "",
        REVIEW,
        r#"{"spec": {"user": "dan", "resourceAttributes": {"verb": "get", "resource": "pods"}}}"#,
        201,
        r#""reason":"rbac: RBAC: clusterrole.rbac.authorization.k8s.io \"gone\" not found""#,
    ),
    (
        "",
        REVIEW,
        r#"{"spec": {"user": "x", "resourceAttributes": {"verb": "get", "resource": "pods", "fieldSelector": {}}}}"#,
        422,
        "when spec.resourceAttributes.fieldSelector is specified, requirements or rawSelector is required",
    ),
    (
        "",
        REVIEW,
        r#"{"spec": {"user": "x", "nonResourceAttributes": {"verb": "get", "path": "/logs"}}}"#,
        201,
        r#""status":{"allowed":false}"#,
    ),
    (
        "",
        LOCAL,
        r#"{"spec": {"user": "x", "resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "default"}}}"#,
        201,
        r#""status":{"allowed":false}"#,
    ),
    (
        "",
        LOCAL,
        r#"{"spec": {"user": "x", "resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "other"}}}"#,
        422,
        r#"spec.resourceAttributes.namespace: Invalid value: "other": must match metadata.namespace"#,
    ),
    (
        "",
        LOCAL,
        r#"{"metadata": {"namespace": "default"}, "spec": {"user": "x", "nonResourceAttributes": {"verb": "get", "path": "/"}}}"#,
        422,
        r#"spec.nonResourceAttributes: Invalid value: {"Path":"/","Verb":"get"}: disallowed on this kind of request"#,
    ),
    ("bob", RULES, r#"{"spec": {}}"#, 400, "no namespace on request"),
    (
        "bob",
        RULES,
        r#"{"spec": {"namespace": "default"}}"#,
        201,
        r#"{"apiGroups":["authorization.k8s.io"],"resources":["selfsubjectaccessreviews","selfsubjectrulesreviews"],"verbs":["create"]}"#,
    ),
    (
        "dan",
        RULES,
        r#"{"spec": {"namespace": "default"}}"#,
        201,
        r#""evaluationError":"clusterrole.rbac.authorization.k8s.io \"gone\" not found""#,
    ),
    (
        "",
        "POST /apis/authentication.k8s.io/v1/tokenreviews",
        r#"{"spec": {"token": "nonsense"}}"#,
        201,
        r#""status":{"error":"invalid bearer token","user":{}}"#,
    ),
    (
        "",
        "POST /apis/authentication.k8s.io/v1/tokenreviews",
        r#"{"spec": {}}"#,
        400,
        "token is required for TokenReview in authentication",
    ),
    (
        "",
        "GET /apis/authentication.k8s.io/v1/tokenreviews",
        "",
        405,
        "the server does not allow this method on the requested resource",
    ),
    (
        "bob",
        TOKEN,
        "{}",
        403,
        r#"serviceaccounts "default" is forbidden: User "bob" cannot create resource "serviceaccounts/token""#,
    ),
    ("", TOKEN, "{}", 201, r#""boundObjectRef":null,"expirationSeconds":3600"#),
    (
        "",
        TOKEN,
        r#"{"spec": {"expirationSeconds": 5}}"#,
        422,
        "spec.expirationSeconds: Invalid value: 5: may not specify a duration less than 10 minutes",
    ),
    (
        "",
        TOKEN,
        r#"{"spec": {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "none"}}}"#,
        404,
        r#"pods "none" not found"#,
    ),
    (
        "",
        TOKEN,
        r#"{"spec": {"boundObjectRef": {"kind": "ConfigMap", "apiVersion": "v1", "name": "n"}}}"#,
        400,
        "cannot bind token to object of type /v1, Kind=ConfigMap",
    ),
    (
        "",
        TOKEN,
        r#"{"metadata": {"name": "z"}}"#,
        422,
        r#"TokenRequest.authentication.k8s.io "default" is invalid: metadata.name: Invalid value: "z": must match the service account name if specified"#,
    ),
    (
        "",
        TOKEN,
        r#"{"metadata": {"uid": "z"}}"#,
        409,
        r#"the UID in the token request (z) does not match"#,
    ),
    (
        "",
        "POST /api/v1/namespaces/default/serviceaccounts/none/token",
        "{}",
        404,
        r#"serviceaccounts "none" not found"#,
    ),
];

const NO_METHOD: &str = "the server does not allow this method on the requested resource";
const NO_PATH: &str = "the server could not find the requested resource";
const ONE_SECRET: &str = r#"secrets is forbidden: User "mia" cannot list resource "secrets" in API group "" in the namespace "default""#;

/// Requests of users with few rights that could reach more than they may: by the old watch path, by
/// encoded and repeated parameters, and by writes that create.
const DETOURS: &[Case] = &[
    ("wanda", "DELETE /api/v1/watch/namespaces/default", "", 405, NO_METHOD),
    ("wanda", "DELETE /api/v1/watch/namespaces/default/pods", "", 405, NO_METHOD),
    ("wanda", "PATCH /api/v1/watch/namespaces/default", "{}", 405, NO_METHOD),
    ("wanda", "PUT /api/v1/watch/namespaces/default/configmaps/a", "{}", 405, NO_METHOD),
    ("wanda", "POST /api/v1/watch/namespaces/default/configmaps", "{}", 405, NO_METHOD),
    ("wanda", "POST /%61pi/v1/%77atch/namespaces/default/configmaps", "{}", 405, NO_METHOD),
    (
        "wanda",
        "POST /api/v1/watch/namespaces/default/serviceaccounts/default/token",
        "{}",
        404,
        NO_PATH,
    ),
    ("wanda", "GET /api/v1/watch/namespaces/default/pods/x/status", "", 404, NO_PATH),
    ("wanda", "GET /api/v1/watch/componentstatuses", "", 404, NO_PATH),
    ("wanda", "DELETE /api/v1/namespaces/default/pods?watch=true", "", 403, "deletecollection"),
    ("mia", "GET /api/v1/namespaces/default/secrets", "", 403, ONE_SECRET),
    (
        "mia",
        "GET /api/v1/namespaces/default/secrets?field%53elector=metadata.name%3Dmine",
        "",
        200,
        "SecretList",
    ),
    (
        "mia",
        "GET /api/v1/namespaces/default/secrets?field%53elector=&fieldSelector=metadata.name%3Dmine",
        "",
        403,
        ONE_SECRET,
    ),
    (
        "mia",
        "GET /api/v1/namespaces/default/secrets?fieldSelector=&fieldSelector=metadata.name%3Dmine",
        "",
        403,
        ONE_SECRET,
    ),
    (
        "mia",
        "GET /api/v1/namespaces/default/secrets?fieldSelector=metadata.name%3Dmine&fieldSelector=",
        "",
        200,
        "SecretList",
    ),
    (
        "mia",
        "GET /api/v1/namespaces/default/secrets?fieldSelector=%zz&fieldSelector=metadata.name%3Dmine",
        "",
        200,
        "SecretList",
    ),
    (
        "mia",
        "GET /api/v1/namespaces/default/secrets?limit=x&fieldSelector=metadata.name%3Dmine",
        "",
        403,
        ONE_SECRET,
    ),
    (
        "mia",
        "GET /api/v1/namespaces/default/secrets?wat%63h=true&fieldSelector=metadata.name%3Dmine",
        "",
        403,
        "cannot watch",
    ),
    (
        "mia",
        "GET /api/v1/namespaces/default/secrets?watch=FALSE&fieldSelector=metadata.name%3Dmine",
        "",
        200,
        "SecretList",
    ),
    (
        "mia",
        "GET /api/v1/watch/namespaces/default/secrets?fieldSelector=metadata.name%3Dmine",
        "",
        403,
        "cannot watch",
    ),
    (
        "mia",
        "GET /api/v1/namespaces/default/secrets%2Fmine",
        "",
        404,
        r#"secrets "mine" not found"#,
    ),
    ("mia", "GET /%68ealthz", "", 200, "ok"),
    (
        "mia",
        "GET /api/v1/namespaces/default/status/mine",
        "",
        403,
        r#"cannot get resource "namespaces/status""#,
    ),
    (
        "pat",
        "PATCH /api/v1/namespaces/default/configmaps/new?fieldManager=pat",
        r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "new"}}"#,
        403,
        r#"configmaps "new" is forbidden: User "pat" cannot create resource "configmaps" in API group "" in the namespace "default""#,
    ),
    (
        "pat",
        "PATCH /api/v1/namespaces/default/configmaps/new?fieldManager=pat&dryRun=All",
        r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "new"}}"#,
        403,
        "cannot create",
    ),
    (
        "pat",
        "PATCH /api/v1/namespaces/new?fieldManager=pat",
        r#"{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "new"}}"#,
        403,
        r#"namespaces "new" is forbidden: User "pat" cannot create resource "namespaces" in API group "" in the namespace "new""#,
    ),
    (
        "pat",
        "PATCH /api/v1/namespaces/none/configmaps/new?fieldManager=pat",
        r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "new"}}"#,
        404,
        r#"namespaces "none" not found"#,
    ),
    (
        "una",
        "PUT /apis/coordination.k8s.io/v1/namespaces/default/leases/new",
        r#"{"metadata": {"name": "new"}}"#,
        403,
        r#"leases.coordination.k8s.io "new" is forbidden: User "una" cannot create resource "leases""#,
    ),
    (
        "una",
        "PUT {}/clusterroles/new",
        r#"{"metadata": {"name": "new"}, "rules": []}"#,
        403,
        r#"clusterroles.rbac.authorization.k8s.io "new" is forbidden: User "una" cannot create"#,
    ),
];

/// The content type of the body of a request.
pub(crate) fn content_type(method: &str, target: &str) -> &'static str {
    match method {
        "PATCH" if target.contains("fieldManager=") => "application/apply-patch+yaml",
        "PATCH" => "application/merge-patch+json",
        _ => "application/json",
    }
}

async fn ask(client: &Client, who: &str, line: &str, body: &str) -> (u16, Value) {
    let (method, path) = line.split_once(' ').expect("a method and a path");
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", content_type(method, path));
    let mut names = who.split(',');
    let name = names.next().unwrap_or_default();
    if !name.is_empty() {
        request = request.header("impersonate-user", name);
    }
    for group in names {
        request = request.header("impersonate-group", group);
    }
    let request = request.body(Body::from(body.as_bytes().to_vec())).expect("it is well-formed");
    let response = client.send(request).await.expect("the server answers");
    let status = response.status().as_u16();
    let bytes = response.into_body().collect().await.expect("it ends").to_bytes();
    let text = || json!(String::from_utf8_lossy(&bytes));
    (status, serde_json::from_slice(&bytes).unwrap_or_else(|_| text()))
}

/// Returns the message of an answer, or all of it if it has none.
fn message_of(answer: &Value) -> String {
    answer["message"].as_str().map_or_else(|| answer.to_string(), str::to_owned)
}

/// Writes `SETUP`, and waits until all of it counts: a real cluster learns of its roles by watches,
/// and a controller collects the rules of those that are made of others.
pub(crate) async fn set_up(client: &Client) {
    for (path, body) in SETUP {
        let (status, answer) = ask(client, "", &format!("POST {RBAC}/{path}"), body).await;
        assert_eq!(status, 201, "{path}: {answer}");
    }
    for (who, rules) in FEW_RIGHTS {
        let role = format!(r#"{{"metadata": {{"name": "few-{who}"}}, "rules": {rules}}}"#);
        let binding = format!(
            r#"{{"metadata": {{"name": "few-{who}"}}, "roleRef": {{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "few-{who}"}}, "subjects": [{{"kind": "User", "name": "{who}"}}]}}"#
        );
        for (path, body) in [("clusterroles", &role), ("clusterrolebindings", &binding)] {
            let (status, answer) = ask(client, "", &format!("POST {RBAC}/{path}"), body).await;
            assert_eq!(status, 201, "{path}: {answer}");
        }
    }
    let may_bind = r#"{"spec": {"resourceAttributes": {"verb": "create", "group": "rbac.authorization.k8s.io", "resource": "roles", "namespace": "default"}}}"#;
    let view = r#"{"metadata": {"name": "probe"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}}"#;
    let edit = r#"{"metadata": {"name": "probe"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"}}"#;
    let probes = [
        ("dan", "GET /api/v1/pods", "", "not found"),
        ("will", "GET /api/v1/namespaces/default/configmaps", "", "ConfigMapList"),
        ("ben,binders", SELF, may_bind, r#""allowed":true"#),
        (ROBOT, "GET /api/v1/namespaces/default", "", r#""name":"default""#),
        ("", "GET /api/v1/namespaces/default/serviceaccounts/default", "", "ServiceAccount"),
        ("wanda", "DELETE /api/v1/watch/pods", "", "does not allow this method"),
        ("mia", "GET /api/v1/namespaces/default/secrets/mine", "", "not found"),
        ("pat", "GET /api/v1/namespaces/default", "", r#""name":"default""#),
        ("una", "GET /api/v1/namespaces/default", "", r#""name":"default""#),
        ("vera", "GET /api/v1/namespaces/default", "", r#""name":"default""#),
        (
            "will",
            BIND,
            view,
            r#"{APIGroups:[""], Resources:["bindings"], Verbs:["get" "list" "watch"]}"#,
        ),
        ("will", BIND, edit, "attempting to grant"),
    ];
    for (who, line, body, part) in probes {
        let counts = || async {
            let (_, answer) = ask(client, who, &line.replace("{}", RBAC), body).await;
            message_of(&answer).contains(part).then_some(())
        };
        poll(&format!("{who} {line}: {part}"), counts).await.expect("what was written counts");
    }
}

async fn check(cases: &[Case]) {
    for kind in clusters() {
        let cluster = kind.start().await.expect("the cluster starts");
        let client = cluster.client();
        set_up(&client).await;
        for case in cases {
            check_one(kind, &client, case).await;
        }
    }
}

async fn check_one(kind: ClusterKind, client: &Client, case: &Case) {
    let (who, line, body, status, part) = *case;
    let (found, answer) = ask(client, who, &line.replace("{}", RBAC), body).await;
    let message = message_of(&answer);
    assert_eq!(found, status, "{kind}: {who} {line} {body}: {message}");
    assert!(message.contains(part), "{kind}: {who} {line} {body}: {message}\nhas no\n{part}");
}

#[tokio::test]
async fn requests_are_allowed_or_refused_alike() {
    check(REQUESTS).await;
}

#[tokio::test]
async fn few_rights_reach_no_further_by_detours() {
    check(DETOURS).await;
}

#[tokio::test]
async fn no_user_gives_away_more_than_they_have() {
    check(ESCALATION).await;
}

#[tokio::test]
async fn reviews_and_token_requests_are_answered_alike() {
    check(REVIEWS).await;
}
