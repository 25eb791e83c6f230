//! Permissions in all namespaces that the objects of a bundle grant.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::Value;

use super::cut;

/// The API group of roles and bindings.
const GROUP: &str = "rbac.authorization.k8s.io/";
/// What the labels have in common by which ClusterRoles are aggregated to others.
const AGGREGATION: &str = "/aggregate-to-";
/// The holder of permissions that are granted to service accounts of the bundle, whatever their names are.
const OWN: &str = "its service accounts";
/// The service account of pods that name none.
const DEFAULT_ACCOUNT: &str = "default";
/// The type of a Secret with the token of a service account, and the annotation that names that.
const TOKEN_TYPE: &str = "kubernetes.io/service-account-token";
const TOKEN_ACCOUNT: &str = "kubernetes.io/service-account.name";
/// Everything: all verbs, groups or resources.
const ALL: &str = "*";
/// The maximum number of permissions that are named.
const PERMISSIONS_MAX: usize = 32;
/// The maximum length of the text of a permission, in bytes.
const TEXT_LENGTH_MAX: usize = 512;

/// A rule of a ClusterRole.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RoleRule {
    verbs: Vec<String>,
    api_groups: Vec<String>,
    resources: Vec<String>,
    resource_names: Vec<String>,
    #[serde(rename = "nonResourceURLs")]
    non_resource_urls: Vec<String>,
}

/// What is granted.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Permission {
    Rule(RoleRule),
    /// All that a ClusterRole or a service account is granted, which is not known.
    AllOf(String),
}

/// A permission with who has it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Grant {
    holder: String,
    permission: Permission,
}

/// Returns the permissions in all namespaces that the objects of a bundle grant and those of the installed bundle do not,
/// as texts. A permission of a service account that the bundle has counts as one of the bundle.
pub fn new_permissions(installed: &[Value], bundle: &[Value]) -> Vec<String> {
    let before = grants(installed, installed);
    let mut found: Vec<String> = Vec::new();
    for Grant { holder, permission } in grants(bundle, installed) {
        let held = before.iter().filter(|it| it.holder == holder).map(|it| &it.permission);
        let text = match &permission {
            Permission::AllOf(other) => {
                let is_new = held.clone().all(|it| *it != permission);
                is_new.then(|| format!("{holder}: all of {other}"))
            }
            Permission::Rule(rule) => {
                let rules = held.filter_map(|it| match it {
                    Permission::Rule(rule) => Some(rule),
                    Permission::AllOf(_) => None,
                });
                beyond(rule, &rules.collect::<Vec<_>>()).map(|it| format!("{holder}: {it}"))
            }
        };
        let text = text.map(|it| cut(&it, TEXT_LENGTH_MAX));
        found.extend(text.filter(|it| !found.contains(it)));
    }
    let more = found.len().saturating_sub(PERMISSIONS_MAX);
    found.truncate(PERMISSIONS_MAX);
    found.extend((more > 0).then(|| format!("and {more} more")));
    found
}

/// Returns the permissions in all namespaces that objects grant, beside those of the installed bundle.
fn grants(objects: &[Value], installed: &[Value]) -> Vec<Grant> {
    let of_kind = |kind: &'static str| {
        let is_access =
            |it: &Value| it["apiVersion"].as_str().is_some_and(|it| it.starts_with(GROUP));
        objects.iter().filter(move |it| it["kind"] == kind && is_access(it))
    };
    let mut found = Vec::new();
    for binding in of_kind("ClusterRoleBinding") {
        let name = binding["roleRef"]["name"].as_str().unwrap_or_default();
        let role = of_kind("ClusterRole").find(|it| it["metadata"]["name"] == name);
        let permissions = role
            .map_or_else(|| vec![Permission::AllOf(format!("ClusterRole {name}"))], permissions);
        for subject in binding["subjects"].as_array().into_iter().flatten() {
            let holder = holder(subject, objects);
            let granted = permissions.iter().cloned();
            found.extend(granted.map(|permission| Grant { holder: holder.clone(), permission }));
        }
    }
    // A role of the bundle may add the rules of others by any label.
    let aggregates = of_kind("ClusterRole").any(|it| !it["aggregationRule"].is_null());
    for role in of_kind("ClusterRole") {
        let name = role["metadata"]["name"].as_str().unwrap_or_default();
        let labels = role["metadata"]["labels"].as_object().into_iter().flatten();
        let aggregating =
            labels.filter(|(_, value)| aggregates || **value == "true").map(|(label, _)| {
                let to = label
                    .split_once(AGGREGATION)
                    .map(|(_, name)| format!("users of ClusterRole {name}"));
                to.unwrap_or_else(|| format!("users of ClusterRoles that aggregate {label}"))
            });
        // Others may have bound a role that an earlier version has brought.
        let is_there = installed
            .iter()
            .any(|it| it["kind"] == "ClusterRole" && it["metadata"]["name"] == name);
        let is_bound = of_kind("ClusterRoleBinding").any(|it| it["roleRef"]["name"] == name);
        let bound = (is_there && !is_bound).then(|| format!("users of ClusterRole {name}"));
        for holder in aggregating.chain(bound) {
            let permissions = permissions(role).into_iter();
            found
                .extend(permissions.map(|permission| Grant { holder: holder.clone(), permission }));
        }
    }
    found.extend(objects.iter().filter_map(|it| foreign_account(it, objects)));
    found
}

/// Returns what an object is granted that uses a service account which is not one of the objects: its pods run as it, or
/// it is a Secret with its token. `None` if it uses none.
fn foreign_account(object: &Value, objects: &[Value]) -> Option<Grant> {
    let spec = &object["spec"];
    let pods = [&spec["template"]["spec"], &spec["jobTemplate"]["spec"]["template"]["spec"], spec];
    let pod = pods.into_iter().find(|it| it["containers"].is_array());
    let named = |pod: &Value| {
        let names = ["serviceAccountName", "serviceAccount"].map(|it| pod[it].as_str());
        names.into_iter().flatten().find(|it| !it.is_empty()).map(str::to_owned)
    };
    let of_pod = pod.map(|it| named(it).unwrap_or_else(|| DEFAULT_ACCOUNT.to_owned()));
    let is_token = object["kind"] == "Secret" && object["type"] == TOKEN_TYPE;
    let token = object["metadata"]["annotations"][TOKEN_ACCOUNT].as_str().filter(|_| is_token);
    let name = of_pod.or(token.map(str::to_owned))?;
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
    if has_account(objects, namespace, &name) {
        return None;
    }
    let permission = Permission::AllOf(format!("ServiceAccount {namespace}/{name}"));
    let holder = if pod.is_some() { "its pods" } else { "its Secrets" };
    Some(Grant { holder: holder.to_owned(), permission })
}

/// Returns whether a service account is one of some objects.
fn has_account(objects: &[Value], namespace: &str, name: &str) -> bool {
    objects.iter().any(|it| {
        let metadata = &it["metadata"];
        it["kind"] == "ServiceAccount"
            && metadata["name"] == name
            && metadata["namespace"] == namespace
    })
}

/// Returns the permissions that a ClusterRole grants to whom it is bound.
fn permissions(role: &Value) -> Vec<Permission> {
    let name = role["metadata"]["name"].as_str().unwrap_or_default();
    let rules = match &role["rules"] {
        Value::Null => Some(Vec::new()),
        rules => Vec::<RoleRule>::deserialize(rules).ok(),
    };
    let aggregation = &role["aggregationRule"];
    let Some(rules) = rules.filter(|_| aggregation.is_null()) else {
        let selects = if aggregation.is_null() {
            String::new()
        } else {
            format!(", aggregated by {aggregation}")
        };
        return vec![Permission::AllOf(format!("ClusterRole {name}{selects}"))];
    };
    rules.into_iter().map(Permission::Rule).collect()
}

/// Returns the holder of a binding's permissions.
fn holder(subject: &Value, objects: &[Value]) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (kind, name, namespace) =
        (text(&subject["kind"]), text(&subject["name"]), text(&subject["namespace"]));
    match kind.as_str() {
        "ServiceAccount" if has_account(objects, &namespace, &name) => OWN.to_owned(),
        "ServiceAccount" => format!("ServiceAccount {namespace}/{name}"),
        kind => format!("{kind} {name}"),
    }
}

/// Returns the part of a rule that others do not cover, as a text; `None` if they cover all of it.
fn beyond(rule: &RoleRule, held: &[&RoleRule]) -> Option<String> {
    let (mut verbs, mut on) = (BTreeSet::new(), BTreeSet::new());
    for verb in &rule.verbs {
        for url in &rule.non_resource_urls {
            if !held.iter().any(|it| has(&it.verbs, verb) && has_url(&it.non_resource_urls, url)) {
                verbs.insert(verb.as_str());
                on.insert(url.clone());
            }
        }
        for (group, resource) in rule
            .api_groups
            .iter()
            .flat_map(|group| rule.resources.iter().map(move |it| (group, it)))
        {
            let covers = |it: &&RoleRule| {
                has(&it.verbs, verb)
                    && has(&it.api_groups, group)
                    && has_resource(&it.resources, resource)
            };
            if !covers_names(&rule.resource_names, held.iter().copied().filter(covers)) {
                verbs.insert(verb.as_str());
                let group = if group.is_empty() { String::new() } else { format!(".{group}") };
                on.insert(format!("{resource}{group}"));
            }
        }
    }
    if verbs.is_empty() {
        return None;
    }
    let names = match rule.resource_names.as_slice() {
        [] => String::new(),
        names => format!(" named {}", names.join(", ")),
    };
    let list = |it: &BTreeSet<String>| it.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    let verbs: Vec<&str> = verbs.into_iter().collect();
    Some(format!("{} on {}{names}", verbs.join(", "), list(&on)))
}

/// Returns whether rules, which cover all else, cover the names of objects; none for all.
fn covers_names<'a>(
    names: &[String],
    mut rules: impl Iterator<Item = &'a RoleRule> + Clone,
) -> bool {
    if names.is_empty() {
        return rules.any(|it| it.resource_names.is_empty());
    }
    names.iter().all(|name| {
        rules.clone().any(|it| it.resource_names.is_empty() || it.resource_names.contains(name))
    })
}

fn has(list: &[String], wanted: &str) -> bool {
    list.iter().any(|it| it == ALL || it == wanted)
}

fn has_resource(list: &[String], wanted: &str) -> bool {
    let subresource = wanted.split_once('/').map(|(_, it)| it);
    let of_all = |it: &String| it.strip_prefix("*/").is_some_and(|it| Some(it) == subresource);
    has(list, wanted) || list.iter().any(of_all)
}

fn has_url(list: &[String], wanted: &str) -> bool {
    let begins = |it: &String| it.strip_suffix(ALL).is_some_and(|it| wanted.starts_with(it));
    has(list, wanted) || list.iter().any(begins)
}

#[cfg(test)]
mod tests {
    //! Permissions that a bundle brings beyond those of the installed one.

    use serde_json::json;

    use super::*;

    /// Returns the objects of a bundle with a role of some rules that is bound to a subject.
    fn bundle(rules: &Value, subject: &Value) -> Vec<Value> {
        let version = "rbac.authorization.k8s.io/v1";
        vec![
            json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": "foo", "namespace": "tools" } }),
            json!({ "apiVersion": version, "kind": "ClusterRole", "metadata": { "name": "r" }, "rules": rules }),
            json!({
                "apiVersion": version, "kind": "ClusterRoleBinding", "metadata": { "name": "b" },
                "roleRef": { "kind": "ClusterRole", "name": "r" }, "subjects": [subject],
            }),
        ]
    }

    fn own() -> Value {
        json!({ "kind": "ServiceAccount", "name": "foo", "namespace": "tools" })
    }

    fn rule(verbs: &[&str], group: &str, resources: &[&str]) -> Value {
        json!({ "verbs": verbs, "apiGroups": [group], "resources": resources })
    }

    #[track_caller]
    fn check(before: &[Value], after: &[Value], expected: &[&str]) {
        assert_eq!(new_permissions(before, after), expected);
    }

    #[test]
    fn rules_that_the_installed_ones_cover_are_not_new() {
        let after = bundle(&json!([rule(&["get", "list"], "", &["secrets", "pods/log"])]), &own());
        let new = "its service accounts: get, list on pods/log, secrets";
        check(&[], &after, &[new]);
        let covers = |rules: Value| check(&bundle(&rules, &own()), &after, &[]);
        covers(json!([rule(&["*"], "*", &["*"])]));
        covers(json!([rule(&["list", "get"], "", &["secrets", "*/log"])]));
        covers(json!([
            rule(&["get", "list"], "", &["secrets"]),
            rule(&["get", "list"], "", &["pods/log"])
        ]));
        let narrower = bundle(&json!([rule(&["get"], "", &["secrets", "pods/log"])]), &own());
        check(&narrower, &after, &["its service accounts: list on pods/log, secrets"]);
        let other = bundle(&json!([rule(&["*"], "apps", &["*"])]), &own());
        check(&other, &after, &[new]);
        let all = bundle(&json!([rule(&["*"], "*", &["*"])]), &own());
        check(&after, &all, &["its service accounts: * on *.*"]);
    }

    #[test]
    fn rules_for_single_objects_and_addresses_are_compared_by_them() {
        let named = |names: &[&str]| {
            let mut rule = rule(&["get"], "", &["secrets"]);
            rule["resourceNames"] = json!(names);
            bundle(&json!([rule]), &own())
        };
        let all = bundle(&json!([rule(&["get"], "", &["secrets"])]), &own());
        check(&named(&["a", "b"]), &named(&["b"]), &[]);
        check(&all, &named(&["b"]), &[]);
        check(
            &named(&["a"]),
            &named(&["a", "b"]),
            &["its service accounts: get on secrets named a, b"],
        );
        check(&named(&["a"]), &all, &["its service accounts: get on secrets"]);
        let urls =
            |urls: &[&str]| bundle(&json!([{ "verbs": ["get"], "nonResourceURLs": urls }]), &own());
        check(&urls(&["/metrics/*"]), &urls(&["/metrics/a"]), &[]);
        check(
            &urls(&["/metrics"]),
            &urls(&["/logs", "/metrics"]),
            &["its service accounts: get on /logs"],
        );
    }

    #[test]
    fn rights_are_those_of_their_holder() {
        let rules = json!([rule(&["get"], "", &["secrets"])]);
        let group = json!({ "kind": "Group", "name": "system:authenticated" });
        let to_group = bundle(&rules, &group);
        check(&bundle(&rules, &own()), &to_group, &["Group system:authenticated: get on secrets"]);
        let other = json!({ "kind": "ServiceAccount", "name": "bar", "namespace": "tools" });
        check(&[], &bundle(&rules, &other), &["ServiceAccount tools/bar: get on secrets"]);
        // A service account may have another name in another version.
        let mut renamed = bundle(&rules, &own());
        renamed[0]["metadata"]["name"] = json!("foo-2");
        renamed[2]["subjects"][0]["name"] = json!("foo-2");
        check(&bundle(&json!([rule(&["get"], "", &["secrets"])]), &own()), &renamed, &[]);
    }

    #[test]
    fn roles_whose_rules_are_not_known_are_new_as_a_whole() {
        let mut bound = bundle(&json!([]), &own());
        bound[2]["roleRef"]["name"] = json!("cluster-admin");
        let new = "its service accounts: all of ClusterRole cluster-admin";
        check(&[], &bound, &[new]);
        check(&bound, &bound, &[]);
        let mut aggregating = bundle(&json!([]), &own());
        aggregating[1]["aggregationRule"] = json!({ "clusterRoleSelectors": [{}] });
        let selecting = r#"aggregated by {"clusterRoleSelectors":[{}]}"#;
        check(
            &[],
            &aggregating,
            &[&format!("its service accounts: all of ClusterRole r, {selecting}")],
        );
        let mut narrower = aggregating.clone();
        narrower[1]["aggregationRule"] =
            json!({ "clusterRoleSelectors": [{ "matchLabels": { "x/a": "b" } }] });
        let wider = format!("its service accounts: all of ClusterRole r, {selecting}");
        check(&narrower, &aggregating, &[&wider]);
        // What it selects is in another role, whatever the label.
        let mut selected = bundle(&json!([rule(&["*"], "*", &["*"])]), &own())[1].clone();
        selected["metadata"] = json!({ "name": "selected", "labels": { "x/a": "b" } });
        let more: Vec<Value> = narrower.iter().cloned().chain([selected]).collect();
        check(&narrower, &more, &["users of ClusterRoles that aggregate x/a: * on *.*"]);
        let unreadable = bundle(&json!([{ "verbs": "get" }]), &own());
        check(&[], &unreadable, &["its service accounts: all of ClusterRole r"]);
    }

    #[test]
    fn rules_that_are_aggregated_widen_other_roles() {
        let mut objects = bundle(&json!([rule(&["get"], "example.com", &["foos"])]), &own());
        objects.truncate(2);
        check(&[], &objects, &[]);
        objects[1]["metadata"]["labels"] =
            json!({ "rbac.authorization.k8s.io/aggregate-to-edit": "true" });
        check(&[], &objects, &["users of ClusterRole edit: get on foos.example.com"]);
        check(&objects, &objects, &[]);
    }

    #[test]
    fn a_role_that_others_may_have_bound_is_compared_with_the_one_before() {
        let viewer = |rules: Value| bundle(&rules, &own())[..2].to_vec();
        let before = viewer(json!([rule(&["get"], "", &["pods"])]));
        check(&[], &before, &[]);
        check(&before, &before, &[]);
        let all = viewer(json!([rule(&["*"], "*", &["*"])]));
        check(&before, &all, &["users of ClusterRole r: * on *.*"]);
    }

    #[test]
    fn pods_have_the_rights_of_the_account_that_they_run_as() {
        let runs_as = |name: &str| {
            let mut objects = bundle(&json!([]), &own());
            objects.push(json!({
                "kind": "Deployment", "metadata": { "name": "foo", "namespace": "tools" },
                "spec": { "template": { "spec": { "containers": [], "serviceAccountName": name } } },
            }));
            objects
        };
        check(&[], &runs_as("foo"), &[]);
        check(&[], &runs_as("default"), &["its pods: all of ServiceAccount tools/default"]);
        check(&[], &runs_as("other"), &["its pods: all of ServiceAccount tools/other"]);
        check(&runs_as("other"), &runs_as("other"), &[]);
        let mut deprecated = runs_as("");
        deprecated[3]["spec"]["template"]["spec"]["serviceAccount"] = json!("other");
        check(&[], &deprecated, &["its pods: all of ServiceAccount tools/other"]);
        let mut token = runs_as("foo");
        token[3] = json!({
            "kind": "Secret", "type": "kubernetes.io/service-account-token",
            "metadata": {
                "name": "token", "namespace": "tools",
                "annotations": { "kubernetes.io/service-account.name": "other" },
            },
        });
        check(&[], &token, &["its Secrets: all of ServiceAccount tools/other"]);
    }

    #[test]
    fn many_rights_are_counted() {
        let rules: Vec<Value> =
            (0..40).map(|it| rule(&["get"], "", &[&format!("r{it}")])).collect();
        let found = new_permissions(&[], &bundle(&json!(rules), &own()));
        assert_eq!((found.len(), found[32].as_str()), (33, "and 8 more"));
    }
}
