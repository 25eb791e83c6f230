//! Random JSON patches.
use serde_json::{Value, json};

use super::super::random::Random;
use super::super::shape::{Shape, Taste};

/// A patch of a few operations on the fields of a shape.
pub(super) fn random(shape: &Shape, random: &mut Random) -> Value {
    let count = 1 + random.below(3);
    (0..count).map(|_| operation(shape, random)).collect()
}

fn operation(shape: &Shape, random: &mut Random) -> Value {
    let (path, value) = place(shape, random);
    match random.below(12) {
        0..5 => json!({"op": "add", "path": path, "value": value}),
        5 | 6 => json!({"op": "replace", "path": path, "value": value}),
        7 | 8 => json!({"op": "remove", "path": path}),
        9 => json!({"op": "test", "path": path, "value": value}),
        10 => {
            // To where a value of the same shape may be.
            let to = match path.rsplit_once('/') {
                Some((list, "0" | "1" | "-")) => {
                    format!("{list}/{}", random.pick(&["0", "1", "-"]))
                }
                _ => path.clone(),
            };
            json!({"op": *random.pick(&["copy", "move"]), "from": path, "path": to})
        }
        _ => json!({"op": "add", "path": "/metadata/labels", "value": {"ka": "json"}}),
    }
}

/// A path into the shape and a value that fits there.
fn place(shape: &Shape, random: &mut Random) -> (String, Value) {
    let mut path = String::new();
    let mut at = shape.clone();
    let mut depth = 1 + random.below(5);
    loop {
        let fields = at.fields().to_vec();
        let fields: Vec<_> = fields.into_iter().filter(|field| field.name != "status").collect();
        let next = match &at {
            Shape::List(inner) | Shape::Set(inner) => {
                path.push_str(random.pick::<&str>(&["/0", "/1", "/-"]));
                (**inner).clone()
            }
            Shape::ListMap(_, fields) | Shape::FilledListMap(_, fields) => {
                path.push_str(random.pick::<&str>(&["/0", "/1", "/-"]));
                Shape::Object(fields.clone(), super::super::shape::Ownership::Granular)
            }
            Shape::Map(inner, _) => {
                path.push_str(random.pick::<&str>(&["/ka", "/k.c~1d"]));
                (**inner).clone()
            }
            _ if fields.is_empty() => break,
            _ => {
                let field = random.pick(&fields);
                path.push('/');
                path.push_str(&field.name.replace('/', "~1"));
                field.shape.clone()
            }
        };
        at = next;
        depth -= 1;
        if depth == 0 {
            break;
        }
    }
    let value = at.value(random, Taste::WHOLE);
    (path, value)
}
