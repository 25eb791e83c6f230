//! The order of the objects of a component, as numbers of file names.
//!
//! In updates the objects of a component are applied one after the other, and each waits for the one
//! before it. So an object comes after what it needs to become ready: a Deployment after its
//! configuration, a custom resource after the operator that serves its kind. A number belongs to a
//! group of kinds and not to an object: when a release adds one, the names of the others stay.

use std::collections::BTreeSet;

use plimsoll_api::{GroupKind, ObjectKey};

use super::hooks::HookPlace;

/// Where a kind that Kubernetes has comes, by group and kind.
const BUILT_IN: [(u32, &str, &[&str]); 9] = [
    (0, "", &["Namespace"]),
    (10, "apiextensions.k8s.io", &["CustomResourceDefinition"]),
    (20, "", &["ServiceAccount"]),
    (
        20,
        "rbac.authorization.k8s.io",
        &["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"],
    ),
    (
        30,
        "",
        &[
            "ConfigMap",
            "LimitRange",
            "PersistentVolume",
            "PersistentVolumeClaim",
            "ResourceQuota",
            "Secret",
        ],
    ),
    (30, "networking.k8s.io", &["IngressClass", "NetworkPolicy"]),
    (50, "", &["Service"]),
    (60, "", &["Pod", "ReplicationController"]),
    (60, "apps", &["DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"]),
];
/// Groups whose kinds all are configuration.
const CONFIGURATION: [&str; 4] =
    ["node.k8s.io", "resource.k8s.io", "scheduling.k8s.io", "storage.k8s.io"];
/// Groups whose objects have the API server call a workload.
const CALLING: [&str; 2] = ["admissionregistration.k8s.io", "apiregistration.k8s.io"];

/// Of custom resources that an earlier component serves: configuration of this one.
const SERVED_BEFORE: u32 = 35;
/// Of Jobs before the workloads; one number for each weight.
const BEFORE: u32 = 40;
/// Of Jobs.
const JOB: u32 = 65;
/// Of all other kinds of Kubernetes.
const REST: u32 = 70;
/// Of what has the API server call a workload.
const CALLS: u32 = 75;
/// Of custom resources that the component itself serves.
const SERVED_HERE: u32 = 80;
/// Of Jobs after everything else; one number for each weight.
const AFTER: u32 = 90;
/// How many different weights of the Jobs before, and after, have a number without letters.
const WEIGHTS_NUMBERED: usize = 9;
/// Longest part of the name of a file that is the name of an object: both may have 253 characters.
const WORD_LEN_MAX: usize = 120;
/// Of the ClusterOperator that the component is done with.
pub(super) const GATE: u32 = 99;

/// What the order of a component depends on.
#[derive(Debug, Default)]
pub(super) struct Order<'a> {
    /// The kinds that Kubernetes has.
    pub(super) built_in: Option<&'a BTreeSet<GroupKind>>,
    /// The kinds that the component defines.
    pub(super) defined: BTreeSet<GroupKind>,
    /// The weights of its Jobs before and after.
    pub(super) before: BTreeSet<i64>,
    pub(super) after: BTreeSet<i64>,
}

impl Order<'_> {
    /// The number of an object, as names of files have it.
    pub(super) fn number(&self, key: &ObjectKey, place: &HookPlace) -> String {
        match place {
            HookPlace::Before(weight) => of_hook(BEFORE, &self.before, *weight),
            HookPlace::After(weight) => of_hook(AFTER, &self.after, *weight),
            HookPlace::OfKind | HookPlace::Test => {
                format!("{:02}", self.of_kind(&key.group_kind()))
            }
        }
    }

    fn of_kind(&self, kind: &GroupKind) -> u32 {
        let (group, name) = (kind.group.as_str(), kind.kind.as_str());
        let listed = BUILT_IN.iter().find(|(_, of, kinds)| *of == group && kinds.contains(&name));
        match listed {
            Some((number, _, _)) => *number,
            None if group == "batch" && name == "Job" => JOB,
            None if CONFIGURATION.contains(&group) => 30,
            None if CALLING.contains(&group) => CALLS,
            None if group == "config.openshift.io" && name == "ClusterOperator" => GATE,
            None if self.built_in.is_some_and(|kinds| kinds.contains(kind)) => REST,
            None if self.defined.contains(kind) => SERVED_HERE,
            None => SERVED_BEFORE,
        }
    }
}

/// The number of a Job by its weight. Those beyond the last number have letters, which put names of files
/// after it: `48`, `48a`, ... `48z`, `48za`.
fn of_hook(first: u32, weights: &BTreeSet<i64>, weight: i64) -> String {
    let position = weights.iter().take_while(|other| **other < weight).count();
    let numbered = position.min(WEIGHTS_NUMBERED - 1);
    let number = first + u32::try_from(numbered).unwrap_or_default();
    let letters: String = match (position - numbered).checked_sub(1) {
        None => String::new(),
        Some(index) => {
            let last = ('a'..='z').nth(index % 26);
            "z".repeat(index / 26).chars().chain(last).collect()
        }
    };
    format!("{number:02}{letters}")
}

/// The name of the file of an object, without its ending.
pub(super) fn file_stem(level: u32, component: &str, number: &str, key: &ObjectKey) -> String {
    let kind = key.kind.to_ascii_lowercase();
    format!("0000_{level:02}_{component}_{number}_{}.{kind}", file_word(&key.name))
}

/// A name as a part of the names of files.
fn file_word(name: &str) -> String {
    let keep = |it: char| it.is_ascii_alphanumeric() || "-.".contains(it);
    name.chars().take(WORD_LEN_MAX).map(|it| if keep(it) { it } else { '-' }).collect()
}

#[cfg(test)]
mod tests {
    //! Names of files.

    use std::collections::BTreeSet;

    use plimsoll_api::ObjectKey;

    use super::{HookPlace, Order, file_stem};
    use crate::position::Position;

    #[test]
    fn jobs_keep_the_order_of_their_weights_however_many_there_are() {
        let check = |place: fn(i64) -> HookPlace, first: &str, next: &str| {
            let weights: BTreeSet<i64> = (-30..40).collect();
            let order =
                Order { before: weights.clone(), after: weights.clone(), ..Order::default() };
            let stem = |weight: &i64| {
                let key = ObjectKey {
                    group: "batch".to_owned(),
                    kind: "Job".to_owned(),
                    namespace: String::new(),
                    // By their names they would have the opposite order.
                    name: format!("{:02}", 50 - weight),
                };
                file_stem(5, "a", &order.number(&key, &place(*weight)), &key)
            };
            let stems: Vec<String> = weights.iter().map(stem).collect();
            assert!(stems.is_sorted(), "{stems:?}");
            assert_eq!(stems[0], format!("0000_05_a_{first}_80.job"));
            assert!(stems.iter().all(|it| **it < *format!("0000_05_a_{next}")), "{stems:?}");
        };
        check(HookPlace::Before, "40", "49");
        check(HookPlace::After, "90", "99");
    }

    #[test]
    fn names_of_files_have_a_place_and_fit_into_a_directory() {
        let check = |name: &str, expected: &str| {
            let key = ObjectKey {
                group: "example.org".to_owned(),
                kind: "Lamp".to_owned(),
                namespace: String::new(),
                name: name.to_owned(),
            };
            let stem = file_stem(5, "a-b", "60", &key);
            assert_eq!(stem, format!("0000_05_a-b_60_{expected}.lamp"), "{name}");
            let position = Position::of(&stem).expect(name);
            assert_eq!((position.level, position.component), (5, "a-b"), "{name}");
        };
        check("web.example.org", "web.example.org");
        check("system:a_b/é", "system-a-b--");
        check(&"a".repeat(253), &"a".repeat(120));
    }
}
