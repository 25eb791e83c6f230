//! Deletions on a model of a cluster, one decision after the other.

use super::*;

fn time(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).unwrap()
}

/// Parses objects from lines `KIND NAME`, `KIND NAMESPACE/NAME`, each with fields `owner NAME`, `finalizer
/// NAME` and `terminating SECONDS`; the uid of an object is its name.
fn objects(text: &str) -> Vec<LiveObject> {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).map(object).collect()
}

fn object(line: &str) -> LiveObject {
    let words: Vec<&str> = line.split(' ').collect();
    let (kind, name) = (words[0], words[1]);
    let (namespace, name) = name.split_once('/').unwrap_or(("", name));
    let group = match kind {
        "CustomResourceDefinition" => "apiextensions.k8s.io",
        "Deployment" => "apps",
        "ClusterRole" => "rbac.authorization.k8s.io",
        "ValidatingWebhookConfiguration" => "admissionregistration.k8s.io",
        "APIService" => "apiregistration.k8s.io",
        "Kettle" | "Cup" => "example.com",
        _ => "",
    };
    let mut object = LiveObject {
        key: ObjectKey {
            group: group.to_owned(),
            kind: kind.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        },
        uid: name.to_owned(),
        owners: BTreeSet::new(),
        terminating: None,
    };
    let mut finalizers = Vec::new();
    for field in words[2..].chunks(2) {
        match field {
            ["owner", name] => {
                object.owners.insert((*name).to_owned());
            }
            ["finalizer", name] => finalizers.push((*name).to_owned()),
            ["terminating", seconds] => {
                let since = time(seconds.parse().unwrap());
                let remaining = Vec::new();
                object.terminating = Some(Terminating { since, finalizers: Vec::new(), remaining });
            }
            _ => panic!("{line}"),
        }
    }
    if let Some(terminating) = &mut object.terminating {
        terminating.finalizers = finalizers;
    }
    object
}

const OBJECTS: &str = "
    Namespace kitchen
    ServiceAccount kitchen/chef
    ClusterRole chef
    ConfigMap kitchen/recipes
    Service kitchen/kettle
    CustomResourceDefinition kettles
    Deployment kitchen/kettle
    ValidatingWebhookConfiguration kettle
    APIService v1.kettle";

/// Simulates a deletion in which every deleted object is gone at once. Returns what was deleted in each
/// phase, and what is kept.
fn play(
    policy: &DeletionPolicy,
    operands: &str,
    shared: &[&str],
    occupied: &[&str],
) -> Vec<String> {
    let (mut objects, mut operands) = (objects(OBJECTS), objects(operands));
    let shared = objects.iter().filter(|it| shared.contains(&it.key.name.as_str()));
    let shared = shared.map(|it| it.key.clone()).collect();
    let occupied = occupied.iter().map(|name| (*name).to_owned()).collect();
    let mut played = Vec::new();
    loop {
        let inputs = DeletionInputs {
            policy,
            objects: &objects,
            operands: &operands,
            shared: &shared,
            occupied: &occupied,
            started: time(0),
            now: time(0),
        };
        match next(&inputs) {
            NextDeletion::Refused { remaining } => {
                let counts = remaining.iter().map(|it| format!("{} {}", it.count, it.kind));
                played.push(format!("refused: {}", counts.collect::<Vec<_>>().join(", ")));
                return played;
            }
            NextDeletion::Complete { kept } => {
                let kept: Vec<String> = kept.iter().map(ToString::to_string).collect();
                played.push(format!("kept: {}", kept.join(", ")));
                return played;
            }
            NextDeletion::Phase { phase, delete, .. } => {
                assert!(!delete.is_empty(), "nothing moves in phase {}", phase.as_str());
                let names: Vec<&str> = delete.iter().map(|it| it.key.name.as_str()).collect();
                played.push(format!("{}: {}", phase.as_str(), names.join(" ")));
                let gone: BTreeSet<String> = delete.into_iter().map(|it| it.uid).collect();
                let is_left = |it: &LiveObject| {
                    !gone.contains(&it.uid) && it.owners.iter().all(|owner| !gone.contains(owner))
                };
                match phase {
                    DeletionPhase::Operands => operands.retain(is_left),
                    _ => objects.retain(|it| {
                        !gone.contains(&it.uid) || DeletionPhase::of(&it.key) != phase
                    }),
                }
            }
        }
    }
}

#[test]
fn everything_goes_in_an_order_in_which_it_can_be_cleaned_up() {
    let operands = "Kettle tea/a
         Kettle tea/b
         Cup tea/c owner a";
    let all = [
        "Operands: a b",
        "Definitions: kettles",
        "Admission: kettle v1.kettle",
        "Workloads: kettle",
        "Configuration: recipes kettle",
        "Access: chef chef",
        "Namespaces: kitchen",
        "kept: ",
    ];
    let policy = DeletionPolicy::default();
    assert_eq!(play(&policy, operands, &[], &[]), all);
    assert_eq!(play(&policy, "", &[], &[]), all[1..]);
    let refuse =
        DeletionPolicy { workloads: WorkloadDeletion::Refuse, ..DeletionPolicy::default() };
    assert_eq!(
        play(&refuse, operands, &[], &[]),
        ["refused: 1 Cup.example.com, 2 Kettle.example.com"]
    );
    assert_eq!(play(&refuse, "", &[], &[]), all[1..]);
}

#[test]
fn what_is_shared_or_kept_by_policy_stays() {
    let orphan = DeletionPolicy { crds: CrdDeletion::Orphan, ..DeletionPolicy::default() };
    let played = play(&orphan, "Kettle tea/a", &["recipes"], &["kitchen"]);
    let expected = [
        "Admission: kettle v1.kettle",
        "Workloads: kettle",
        "Configuration: kettle",
        "Access: chef chef",
        "kept: namespace \"kitchen\", configmap \"kitchen/recipes\", \
         customresourcedefinition.apiextensions.k8s.io \"kettles\"",
    ];
    assert_eq!(played, expected);
    // Operands that are kept keep their definitions; without operands, definitions are deleted.
    let orphan =
        DeletionPolicy { workloads: WorkloadDeletion::Orphan, ..DeletionPolicy::default() };
    assert_eq!(play(&orphan, "Kettle tea/a", &[], &[])[0], "Admission: kettle v1.kettle");
    assert_eq!(play(&orphan, "", &[], &[])[0], "Definitions: kettles");
}

#[test]
fn what_does_not_go_is_named_with_its_finalizers() {
    let operands = objects(
        "Kettle tea/a terminating 0 finalizer example.com/boil finalizer example.com/pour
         Kettle tea/b terminating 100
         Kettle milk/c",
    );
    let policy = DeletionPolicy::default();
    let inputs = |now| DeletionInputs {
        policy: &policy,
        objects: &[],
        operands: &operands,
        shared: const { &BTreeSet::new() },
        occupied: const { &BTreeSet::new() },
        started: time(0),
        now,
    };
    let NextDeletion::Phase { phase, delete, progress } = next(&inputs(time(60))) else {
        panic!("operands are left")
    };
    assert_eq!(phase, DeletionPhase::Operands);
    assert_eq!(delete.iter().map(|it| it.key.name.as_str()).collect::<Vec<_>>(), ["c"]);
    let counts: Vec<(&str, usize)> =
        progress.remaining.iter().map(|it| (it.namespace.as_str(), it.count)).collect();
    assert_eq!(counts, [("milk", 1), ("tea", 2)]);
    assert_eq!(
        progress.stuck,
        ["kettle.example.com \"tea/a\": finalizers example.com/boil, example.com/pour"]
    );
    let NextDeletion::Phase { progress, .. } = next(&inputs(time(59))) else {
        panic!("operands are left")
    };
    assert_eq!(progress.stuck, Vec::<String>::new());
}
