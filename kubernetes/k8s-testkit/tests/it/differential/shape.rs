//! Shapes of objects: what random values and random definitions are made from.
use serde_json::{Map, Value, json};

use super::random::Random;

/// The shape of a value.
#[derive(Clone, Debug)]
pub(super) enum Shape {
    /// One of these values, which are of the OpenAPI type named.
    OneOf(&'static str, Vec<Value>),
    /// A number or a string.
    IntOrString,
    /// An object with declared fields, owned field by field or as a whole.
    Object(Vec<Field>, Ownership),
    /// An object with any keys.
    Map(Box<Shape>, Ownership),
    /// A list that is owned as a whole.
    List(Box<Shape>),
    /// A list whose items are owned each by itself.
    Set(Box<Shape>),
    /// A list of objects that have keys.
    ListMap(Vec<&'static str>, Vec<Field>),
    /// A list of objects that have keys, which must not be empty.
    FilledListMap(Vec<&'static str>, Vec<Field>),
    /// An object of which some fields are declared and any others are kept.
    Anything(Vec<Field>),
    /// An object of the API inside another.
    Embedded,
}

/// Whether a map is owned as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ownership {
    Granular,
    Atomic,
}

/// A field of an object.
#[derive(Clone, Debug)]
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) shape: Shape,
    pub(super) required: bool,
    pub(super) nullable: bool,
    pub(super) default: Option<Value>,
}

impl Field {
    pub(super) fn new(name: &'static str, shape: Shape) -> Self {
        Self { name, shape, required: false, nullable: false, default: None }
    }

    pub(super) fn required(name: &'static str, shape: Shape) -> Self {
        Self { required: true, ..Self::new(name, shape) }
    }
}

/// How values are made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taste {
    /// How many of a hundred optional fields are there.
    pub(super) fill: usize,
    /// How many of a hundred required fields are there.
    pub(super) required: usize,
    /// How many of a thousand values are null, of another type, or repeated.
    pub(super) wild: usize,
}

impl Taste {
    /// Objects that are fit to be created.
    pub(super) const WHOLE: Self = Self { fill: 60, required: 100, wild: 0 };
    /// Objects that are applied.
    pub(super) const PART: Self = Self { fill: 45, required: 85, wild: 4 };
}

const KEYS: [&str; 3] = ["ka", "kb", "k.c/d"];

impl Shape {
    /// Any of some words.
    pub(super) fn words(words: &[&str]) -> Self {
        Self::OneOf("string", words.iter().map(|word| json!(word)).collect())
    }

    /// Any of some numbers.
    pub(super) fn numbers(numbers: &[i64]) -> Self {
        Self::OneOf("integer", numbers.iter().map(|number| json!(number)).collect())
    }

    /// Always this value.
    pub(super) fn fixed(value: Value) -> Self {
        Self::OneOf("object", vec![value])
    }

    /// The list map, with an item at least.
    pub(super) fn filled(self) -> Self {
        match self {
            Self::ListMap(keys, fields) => Self::FilledListMap(keys, fields),
            other => other,
        }
    }

    /// A value of this shape.
    pub(super) fn value(&self, random: &mut Random, taste: Taste) -> Value {
        if random.below(1000) < taste.wild {
            return random
                .pick(&[json!(null), json!("odd"), json!(7), json!({}), json!([]), json!(true)])
                .clone();
        }
        match self {
            Self::OneOf(_, values) => random.pick(values).clone(),
            Self::IntOrString => random.pick(&[json!(1), json!("1"), json!("25%")]).clone(),
            Self::Object(fields, _) => Value::Object(entries(fields, random, taste)),
            Self::Map(shape, _) => {
                let keys = random.some_of(&KEYS, taste.fill);
                let entry =
                    |key: &str, random: &mut Random| (key.to_owned(), shape.value(random, taste));
                Value::Object(keys.into_iter().map(|key| entry(key, random)).collect())
            }
            Self::List(shape) => {
                let length = random.below(4);
                Value::Array((0..length).map(|_| shape.value(random, taste)).collect())
            }
            Self::Set(shape) => {
                let length = random.below(4);
                let items = (0..length).map(|_| shape.value(random, taste)).collect();
                distinct(items, |item| item.clone(), random, taste)
            }
            Self::ListMap(keys, fields) | Self::FilledListMap(keys, fields) => {
                let filled = usize::from(matches!(self, Self::FilledListMap(..)));
                let length = filled + random.below(4 - filled);
                let items =
                    (0..length).map(|_| Value::Object(entries(fields, random, taste))).collect();
                let key = |item: &Value| -> Value {
                    keys.iter()
                        .map(|key| {
                            let field = fields.iter().find(|field| field.name == *key);
                            let default = field.and_then(|field| field.default.clone());
                            item.get(key).cloned().or(default).unwrap_or_default()
                        })
                        .collect()
                };
                distinct(items, key, random, taste)
            }
            Self::Anything(fields) => {
                let mut out = entries(fields, random, taste);
                let others = [
                    ("free", json!("x")),
                    ("list", json!([1, 2])),
                    ("deep", json!({"one": {"two": 2}, "three": [{"name": "n"}]})),
                ];
                for (key, value) in random.some_of(&others, 40) {
                    out.insert(key.to_owned(), value);
                }
                Value::Object(out)
            }
            Self::Embedded => {
                let name = *random.pick(&["inner", "other"]);
                json!({"apiVersion": "v1", "kind": "Inner", "metadata": {"name": name}})
            }
        }
    }

    /// The OpenAPI schema of this shape, as a definition declares it.
    pub(super) fn schema(&self) -> Value {
        match self {
            Self::OneOf(kind, _) => json!({"type": kind}),
            Self::IntOrString => json!({"x-kubernetes-int-or-string": true}),
            Self::Object(fields, ownership) => {
                let mut out = object_schema(fields);
                if *ownership == Ownership::Atomic {
                    out["x-kubernetes-map-type"] = "atomic".into();
                }
                out
            }
            Self::Map(shape, ownership) => {
                let mut out = json!({"type": "object", "additionalProperties": shape.schema()});
                if *ownership == Ownership::Atomic {
                    out["x-kubernetes-map-type"] = "atomic".into();
                }
                out
            }
            Self::List(shape) => json!({"type": "array", "items": shape.schema()}),
            Self::Set(shape) => json!({
                "type": "array",
                "items": shape.schema(),
                "x-kubernetes-list-type": "set",
            }),
            Self::ListMap(keys, fields) | Self::FilledListMap(keys, fields) => json!({
                "type": "array",
                "items": object_schema(fields),
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": keys,
            }),
            Self::Anything(fields) => {
                let mut out = object_schema(fields);
                out["x-kubernetes-preserve-unknown-fields"] = true.into();
                out
            }
            Self::Embedded => json!({
                "type": "object",
                "x-kubernetes-embedded-resource": true,
                "x-kubernetes-preserve-unknown-fields": true,
            }),
        }
    }

    /// The fields of an object.
    pub(super) fn fields(&self) -> &[Field] {
        match self {
            Self::Object(fields, _)
            | Self::Anything(fields)
            | Self::ListMap(_, fields)
            | Self::FilledListMap(_, fields) => fields,
            Self::OneOf(..)
            | Self::IntOrString
            | Self::Map(..)
            | Self::List(_)
            | Self::Set(_)
            | Self::Embedded => &[],
        }
    }
}

fn entries(fields: &[Field], random: &mut Random, taste: Taste) -> Map<String, Value> {
    let mut out = Map::new();
    for field in fields {
        let percent = if field.required { taste.required } else { taste.fill };
        if !random.percent(percent) {
            continue;
        }
        let value = if field.nullable && random.percent(15) {
            Value::Null
        } else {
            field.shape.value(random, taste)
        };
        out.insert(field.name.to_owned(), value);
    }
    out
}

/// Items without those that repeat a key, except where the taste is for it.
fn distinct(
    items: Vec<Value>,
    key: impl Fn(&Value) -> Value,
    random: &mut Random,
    taste: Taste,
) -> Value {
    let mut out: Vec<Value> = Vec::new();
    for item in items {
        let is_new = out.iter().all(|other| key(other) != key(&item));
        if is_new || random.below(1000) < taste.wild * 10 {
            out.push(item);
        }
    }
    Value::Array(out)
}

fn object_schema(fields: &[Field]) -> Value {
    let mut properties = Map::new();
    for field in fields {
        let mut schema = field.shape.schema();
        if field.nullable {
            schema["nullable"] = true.into();
        }
        if let Some(default) = &field.default {
            schema["default"] = default.clone();
        }
        properties.insert(field.name.to_owned(), schema);
    }
    let required: Vec<&str> =
        fields.iter().filter(|field| field.required).map(|field| field.name).collect();
    let mut out = json!({"type": "object"});
    if !properties.is_empty() {
        out["properties"] = Value::Object(properties);
    }
    if !required.is_empty() {
        out["required"] = json!(required);
    }
    out
}
