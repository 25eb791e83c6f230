//! Where rendering differs from upstream's on purpose. `docs/bundles.md` gives the reasons.

use plimsoll_content::catalog::DefectCode;
use serde_json::Value;

/// A difference on purpose.
pub(super) enum Difference {
    /// Ports of 0 are those that they stand for.
    Ports,
    /// Namespaces and objects are there once, service accounts as the bundle brings them, services as
    /// they are generated.
    Repetitions,
    /// A name that is too long for a service is cut: upstream's, and ours.
    Names(&'static [(&'static str, &'static str)]),
    /// A quantity has no plus sign.
    PlusSign,
    /// It is refused, as a defect of this class, because of this.
    Refused(DefectCode, &'static str),
}

pub(super) const DIFFERENCES: &[(&str, Difference)] = &[
    ("azure-service-operator.1.0.24492--all", Difference::Ports),
    ("azure-service-operator.1.0.24492--all-certmanager", Difference::Ports),
    ("hm-webhook-bare--all", Difference::Ports),
    ("hm-webhook-bare--all-certmanager", Difference::Ports),
    ("hm-webhook-bare--all-serviceca", Difference::Ports),
    ("hm-webhook-noport--all", Difference::Ports),
    ("hm-webhook-noport--all-certmanager", Difference::Ports),
    ("hm-webhook-noport--all-serviceca", Difference::Ports),
    ("application-services-metering-operator.0.6.0--all", Difference::Repetitions),
    ("application-services-metering-operator.0.6.0--multi", Difference::Repetitions),
    ("application-services-metering-operator.0.6.0--own", Difference::Repetitions),
    ("application-services-metering-operator.0.6.0--single", Difference::Repetitions),
    ("hm-modes-am--multi", Difference::Repetitions),
    ("hm-modes-am--multi-certmanager", Difference::Repetitions),
    ("hm-modes-aosm--own-twice", Difference::Repetitions),
    ("hm-modes-aosm--single-twice", Difference::Repetitions),
    ("hm-modes-m--multi", Difference::Repetitions),
    ("hm-modes-m--multi-certmanager", Difference::Repetitions),
    ("hm-modes-m--multi-serviceca", Difference::Repetitions),
    ("hm-names-clash--default", Difference::Repetitions),
    ("hm-names-clash--serviceca", Difference::Repetitions),
    ("hm-permissions--all", Difference::Repetitions),
    ("hm-permissions--multi", Difference::Repetitions),
    ("hm-permissions--multi-4", Difference::Repetitions),
    ("hm-permissions--own", Difference::Repetitions),
    ("hm-permissions--single", Difference::Repetitions),
    ("tagger.2.1.17--all", Difference::Repetitions),
    ("tagger.2.1.17--all-certmanager", Difference::Repetitions),
    ("tagger.2.1.17--all-serviceca", Difference::Repetitions),
    (
        "hm-name-56--default",
        Difference::Names(&[("xx-service", "x-service"), ("x-s-cert", "-se-cert")]),
    ),
    (
        "hm-name-56--serviceca",
        Difference::Names(&[("xx-service", "x-service"), ("x-s-cert", "-se-cert")]),
    ),
    ("hm-quantities--default", Difference::PlusSign),
    (
        "bad-webhook-type--default",
        Difference::Refused(DefectCode::BundleWebhook, "no API server calls it"),
    ),
    (
        "hm-csv-only-name--default",
        Difference::Refused(DefectCode::BundleFile, "objects without a name"),
    ),
    (
        "hm-modes-aosm--bad-namespace",
        Difference::Refused(DefectCode::TargetNamespaces, "no name of a namespace"),
    ),
    (
        "hm-modes-aosm--no-install-namespace",
        Difference::Refused(DefectCode::TargetNamespaces, "no name of a namespace"),
    ),
];

impl Difference {
    /// Changes upstream's objects as the difference says.
    pub(super) fn apply(&self, objects: &mut Vec<Value>) {
        match self {
            Self::Ports => objects.iter_mut().for_each(ports),
            Self::Repetitions => {
                objects.iter_mut().for_each(targets);
                let brought = objects.clone();
                let mut index = 0;
                objects.retain(|object| {
                    index += 1;
                    !["ServiceAccount", "Service"].iter().any(|kind| object["kind"] == *kind)
                        || !brought[index..].iter().any(|it| {
                            it["kind"] == object["kind"]
                                && it["metadata"]["name"] == object["metadata"]["name"]
                        })
                });
                without_repetitions(objects);
            }
            Self::Names(names) => {
                for object in objects {
                    let mut text = object.to_string();
                    for (theirs, ours) in *names {
                        text = text.replace(theirs, ours);
                    }
                    *object = serde_json::from_str(&text).expect("it is JSON as before");
                }
            }
            Self::PlusSign => {
                for object in objects {
                    let text = object.to_string().replace("\"+1\"", "\"1\"");
                    *object = serde_json::from_str(&text).expect("it is JSON as before");
                }
            }
            Self::Refused(..) => {}
        }
    }
}

fn without_repetitions(items: &mut Vec<Value>) {
    let mut kept = Vec::new();
    for item in items.drain(..) {
        if !kept.contains(&item) {
            kept.push(item);
        }
    }
    *items = kept;
}

fn ports(value: &mut Value) {
    match value {
        Value::Object(entries) => {
            let port = entries.get("port").cloned();
            if let Some(target) = entries.get_mut("targetPort").filter(|target| **target == 0) {
                *target = port.unwrap_or_default();
            }
            if let Some(port) = entries.get_mut("port").filter(|port| **port == 0) {
                *port = 443.into();
            }
            entries.values_mut().for_each(ports);
            if let Some(ports) = entries.get_mut("ports").and_then(Value::as_array_mut) {
                without_repetitions(ports);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(ports),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn targets(object: &mut Value) {
    let annotation = "/spec/template/metadata/annotations/olm.targetNamespaces";
    if let Some(Value::String(text)) = object.pointer_mut(annotation) {
        let mut names: Vec<Value> = text.split(',').map(Value::from).collect();
        without_repetitions(&mut names);
        *text = names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(",");
    }
    for webhook in object.get_mut("webhooks").and_then(Value::as_array_mut).into_iter().flatten() {
        let values = webhook.pointer_mut("/namespaceSelector/matchExpressions/0/values");
        if let Some(values) = values.and_then(Value::as_array_mut) {
            without_repetitions(values);
        }
    }
}
