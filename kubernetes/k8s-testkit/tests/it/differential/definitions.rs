//! Random definitions of custom resources.
use serde_json::{Value, json};

use super::random::Random;
use super::shape::{Field, Ownership, Shape};
use super::target::{Target, Version};

const NAMES: [&str; 7] = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta"];
const DEPTH_MAX: usize = 3;

/// The target of a random definition; `seed` names it.
pub(super) fn custom(seed: u64) -> Target {
    let mut random = Random::new(seed, 1);
    let group = format!("d{seed}.example.com");
    let mut spec = vec![Field::new("replicas", Shape::numbers(&[0, 1, 2, 3]))];
    spec.extend(fields(&mut random, 0));
    let spec = Shape::Object(spec, Ownership::Granular);
    let status = Shape::Object(
        vec![
            Field::new("replicas", Shape::numbers(&[0, 1, 2])),
            Field::new("phase", Shape::words(&["Up", "Down"])),
            Field::new("conditions", conditions()),
        ],
        Ownership::Granular,
    );
    let root = |spec: Shape| {
        let mut root = vec![Field::new("spec", spec)];
        root.push(Field::new("status", status.clone()));
        Shape::Object(root, Ownership::Granular)
    };
    let mut versions = vec![Version::new(&group, "v1", root(spec.clone()))];
    if random.percent(40) {
        let other = if random.percent(50) { retyped(&spec, &mut random) } else { spec };
        versions.push(Version::new(&group, "v2", root(other)));
    }
    let mut subresources = json!({});
    let has_status = random.percent(60);
    if has_status {
        subresources["status"] = json!({});
    }
    let has_scale = random.percent(30);
    if has_scale {
        subresources["scale"] = json!({
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
        });
    }
    let cluster_scoped = random.percent(25);
    let served: Vec<Value> = versions
        .iter()
        .enumerate()
        .map(|(index, version)| {
            json!({
                "name": version.name,
                "served": true,
                "storage": index == 0,
                "schema": {"openAPIV3Schema": version.shape.schema()},
                "subresources": subresources,
            })
        })
        .collect();
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("things.{group}")},
        "spec": {
            "group": group,
            "scope": if cluster_scoped { "Cluster" } else { "Namespaced" },
            "names": {"plural": "things", "singular": "thing", "kind": "Thing"},
            "versions": served,
        },
    });
    Target {
        kind: "Thing",
        plural: "things",
        namespaced: !cluster_scoped,
        versions,
        has_status,
        has_scale,
        definition: Some(definition),
    }
}

fn conditions() -> Shape {
    Shape::ListMap(
        vec!["type"],
        vec![
            Field::required("type", Shape::words(&["Ready", "Synced"])),
            Field::new("status", Shape::words(&["True", "False"])),
        ],
    )
}

fn fields(random: &mut Random, depth: usize) -> Vec<Field> {
    let mut names = NAMES.to_vec();
    random.shuffle(&mut names);
    let count = 1 + random.below(if depth == 0 { 5 } else { 3 });
    names.into_iter().take(count).map(|name| field(name, random, depth)).collect()
}

fn field(name: &'static str, random: &mut Random, depth: usize) -> Field {
    let mut field = Field::new(name, shape(random, depth));
    field.nullable = random.percent(15);
    if let Shape::OneOf(_, values) = &field.shape
        && random.percent(20)
    {
        field.default = Some(values[0].clone());
    }
    if field.default.is_none() && !field.nullable {
        field.required = random.percent(10);
    }
    field
}

fn scalar(random: &mut Random) -> Shape {
    match random.below(5) {
        0 => Shape::numbers(&[0, 1, 2, 3]),
        1 => Shape::OneOf("boolean", vec![json!(true), json!(false)]),
        2 => Shape::OneOf("number", vec![json!(1), json!(1.5), json!(2.0)]),
        _ => Shape::words(&["x", "y", "z", ""]),
    }
}

fn shape(random: &mut Random, depth: usize) -> Shape {
    if depth >= DEPTH_MAX {
        return scalar(random);
    }
    let ownership = |random: &mut Random| {
        if random.percent(25) { Ownership::Atomic } else { Ownership::Granular }
    };
    match random.below(14) {
        0 | 1 => scalar(random),
        2 => Shape::IntOrString,
        3 | 4 => Shape::Object(fields(random, depth + 1), ownership(random)),
        5 => Shape::Map(Box::new(scalar(random)), ownership(random)),
        6 => {
            let inner = Shape::Object(fields(random, depth + 1), Ownership::Granular);
            Shape::Map(Box::new(inner), ownership(random))
        }
        7 => Shape::List(Box::new(shape(random, depth + 1))),
        8 => Shape::Set(Box::new(Shape::words(&["x", "y", "z"]))),
        9 => Shape::Set(Box::new(Shape::numbers(&[1, 2, 3]))),
        10 | 11 => list_map(random, depth),
        12 if random.percent(70) => Shape::Anything(fields(random, depth + 1)),
        12 => Shape::Embedded,
        _ => scalar(random),
    }
}

fn list_map(random: &mut Random, depth: usize) -> Shape {
    let mut item = fields(random, depth + 1);
    item.retain(|field| !matches!(field.name, "alpha" | "beta"));
    item.push(Field::required("name", Shape::words(&["n1", "n2", "n3"])));
    let mut keys = vec!["name"];
    if random.percent(40) {
        keys.push("port");
        let mut port = Field::new("port", Shape::numbers(&[80, 81]));
        if random.percent(60) {
            port.default = Some(json!(80));
        } else {
            port.required = true;
        }
        item.push(port);
    }
    Shape::ListMap(keys, item)
}

/// The same shape with some lists and maps owned in another way.
fn retyped(shape: &Shape, random: &mut Random) -> Shape {
    let again = |fields: &[Field], random: &mut Random| -> Vec<Field> {
        let mut out = Vec::new();
        for field in fields {
            if field.name != "replicas" && !field.required && random.percent(8) {
                continue;
            }
            out.push(Field { shape: retyped(&field.shape, random), ..field.clone() });
        }
        out
    };
    let flips = random.percent(35);
    let flipped = |ownership: Ownership| match (flips, ownership) {
        (false, same) => same,
        (true, Ownership::Atomic) => Ownership::Granular,
        (true, Ownership::Granular) => Ownership::Atomic,
    };
    match shape {
        Shape::Object(fields, ownership) => {
            let is_root = fields.iter().any(|field| field.name == "replicas");
            let ownership = if is_root { *ownership } else { flipped(*ownership) };
            Shape::Object(again(fields, random), ownership)
        }
        Shape::Map(inner, ownership) => Shape::Map(inner.clone(), flipped(*ownership)),
        Shape::Set(inner) if flips => Shape::List(inner.clone()),
        Shape::ListMap(_, fields) if flips => {
            Shape::List(Box::new(Shape::Object(fields.clone(), Ownership::Granular)))
        }
        other => other.clone(),
    }
}
