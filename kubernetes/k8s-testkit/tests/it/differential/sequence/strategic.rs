//! Directives in strategic merge patches.
use serde_json::{Value, json};

use super::super::random::Random;
use super::super::shape::{Field, Shape};

/// Puts directives and nulls into a patch.
pub(super) fn direct(patch: &mut Value, shape: &Shape, random: &mut Random) {
    within(patch, shape, random);
    // At the root they would take away the object's type and name.
    if let Some(entries) = patch.as_object_mut() {
        entries.retain(|key, _| key != "$patch" && key != "$retainKeys");
    }
}

fn within(patch: &mut Value, shape: &Shape, random: &mut Random) {
    match shape {
        Shape::Object(fields, _) | Shape::Anything(fields) => object(patch, fields, random),
        Shape::ListMap(keys, fields) | Shape::FilledListMap(keys, fields) => {
            list(patch, keys, fields, random)
        }
        Shape::OneOf(..)
        | Shape::IntOrString
        | Shape::Map(..)
        | Shape::List(_)
        | Shape::Set(_)
        | Shape::Embedded => {}
    }
}

fn object(patch: &mut Value, fields: &[Field], random: &mut Random) {
    let Some(entries) = patch.as_object_mut() else { return };
    for field in fields {
        if random.percent(6) && !field.required {
            entries.insert(field.name.to_owned(), Value::Null);
            continue;
        }
        let Some(value) = entries.get_mut(field.name) else { continue };
        within(value, &field.shape, random);
        if let Shape::ListMap(keys, _) | Shape::FilledListMap(keys, _) = &field.shape
            && random.percent(25)
            && let Some(items) = value.as_array()
        {
            let mut order: Vec<Value> = items
                .iter()
                .filter(|item| item.get("$patch").is_none())
                .map(|item| json!({keys[0]: item[keys[0]]}))
                .collect();
            random.shuffle(&mut order);
            if random.percent(20) {
                order.pop();
            }
            entries.insert(format!("$setElementOrder/{}", field.name), Value::Array(order));
        }
        let of_words = match &field.shape {
            Shape::List(inner) | Shape::Set(inner) => matches!(**inner, Shape::OneOf("string", _)),
            _ => false,
        };
        if of_words && random.percent(10) {
            // Go takes the two in any order.
            entries.remove(field.name);
            let gone = json!(["x", "a", "1.2.3.4"]);
            entries.insert(format!("$deleteFromPrimitiveList/{}", field.name), gone);
        }
    }
    if random.percent(3) {
        let kind = *random.pick(&["replace", "delete", "merge", "odd"]);
        entries.insert("$patch".to_owned(), kind.into());
    }
    if random.percent(4) {
        let kept: Vec<Value> = entries
            .keys()
            .filter(|key| !key.starts_with('$'))
            .map(|key| Value::String(key.clone()))
            .collect();
        entries.insert("$retainKeys".to_owned(), Value::Array(kept));
    }
}

fn list(patch: &mut Value, keys: &[&'static str], fields: &[Field], random: &mut Random) {
    let Some(items) = patch.as_array_mut() else { return };
    for item in items.iter_mut() {
        if random.percent(15) {
            let mut gone = json!({"$patch": "delete"});
            for key in keys {
                if let Some(value) = item.get(*key) {
                    gone[*key] = value.clone();
                }
            }
            *item = gone;
        } else {
            object(item, fields, random);
        }
    }
    if random.percent(6) {
        items.push(json!({"$patch": *random.pick(&["replace", "merge", "odd"])}));
    }
}
