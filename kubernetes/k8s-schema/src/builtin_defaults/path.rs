//! Paths of `data/defaults.txt`, parsed once.
use serde_json::{Map, Value};

/// A path below an object; the empty one is the object itself.
#[derive(Debug, Default)]
pub(super) struct Path(Vec<Segment>);

#[derive(Debug)]
struct Segment {
    name: &'static str,
    /// What is done where the field is absent.
    step: Step,
    /// Only values with one of these texts in this field are visited.
    condition: Option<(&'static str, Vec<&'static str>)>,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    /// `a`: an object is created.
    Create,
    /// `a?`: nothing.
    Existing,
    /// `a[]`: nothing; otherwise each item of the list is visited.
    Items,
}

impl Path {
    /// Reads a path.
    ///
    /// # Errors
    /// When a segment is empty or a condition is not closed.
    pub(super) fn parse(text: &'static str) -> Result<Self, String> {
        match text {
            "." => Ok(Self::default()),
            _ => split(text).into_iter().map(Segment::parse).collect::<Result<_, _>>().map(Self),
        }
    }

    /// Reads the path of a field: where it is, and its name.
    ///
    /// # Errors
    /// When the path is malformed or does not end with a plain name.
    pub(super) fn parse_field(text: &'static str) -> Result<(Self, &'static str), String> {
        let mut path = Self::parse(text)?;
        match path.0.pop() {
            Some(Segment { name, step: Step::Create, condition: None }) => Ok((path, name)),
            _ => Err(format!("{text:?} does not end with a field")),
        }
    }

    /// Calls `act` with every value at the path.
    pub(super) fn visit(&self, value: &mut Value, act: &mut dyn FnMut(&mut Value)) {
        visit(&self.0, value, act);
    }

    /// The names on the path, with `[]` after lists.
    #[cfg(test)]
    pub(super) fn names(&self) -> Vec<String> {
        let name = |segment: &Segment| match segment.step {
            Step::Items => format!("{}[]", segment.name),
            Step::Create | Step::Existing => segment.name.to_owned(),
        };
        self.0.iter().map(name).collect()
    }
}

/// The segments of a path: dots inside of conditions separate nothing.
fn split(text: &'static str) -> Vec<&'static str> {
    let mut is_inside = false;
    text.split(|character| {
        match character {
            '{' => is_inside = true,
            '}' => is_inside = false,
            _ => {}
        }
        character == '.' && !is_inside
    })
    .collect()
}

impl Segment {
    fn parse(text: &'static str) -> Result<Self, String> {
        let malformed = || format!("{text:?} is not a segment of a path");
        let (text, condition) = match text.strip_suffix('}') {
            None => (text, None),
            Some(rest) => {
                let (name, condition) = rest.split_once('{').ok_or_else(malformed)?;
                let (field, values) = condition.split_once('=').ok_or_else(malformed)?;
                (name, Some((field, values.split('|').collect())))
            }
        };
        let (name, step) = match (text.strip_suffix("[]"), text.strip_suffix('?')) {
            (Some(name), _) => (name, Step::Items),
            (None, Some(name)) => (name, Step::Existing),
            (None, None) => (text, Step::Create),
        };
        if name.is_empty() { Err(malformed()) } else { Ok(Self { name, step, condition }) }
    }

    fn holds(&self, value: &Value) -> bool {
        let Some((field, texts)) = &self.condition else { return true };
        match value.get(field) {
            Some(Value::String(text)) => texts.contains(&text.as_str()),
            Some(Value::Bool(truth)) => texts.contains(&if *truth { "true" } else { "false" }),
            _ => false,
        }
    }
}

fn visit(segments: &[Segment], value: &mut Value, act: &mut dyn FnMut(&mut Value)) {
    let Some((segment, rest)) = segments.split_first() else { return act(value) };
    let Some(map) = value.as_object_mut() else { return };
    let mut go_on = |inner: &mut Value| {
        if segment.holds(inner) {
            visit(rest, inner, act);
        }
    };
    match segment.step {
        Step::Items => {
            if let Some(Value::Array(items)) = map.get_mut(segment.name) {
                items.iter_mut().for_each(go_on);
            }
        }
        Step::Existing => {
            if let Some(inner) = map.get_mut(segment.name).filter(|inner| !inner.is_null()) {
                go_on(inner);
            }
        }
        Step::Create => go_on(child(map, segment.name)),
    }
}

/// The object at `name`, created where it is missing.
pub(super) fn child<'a>(map: &'a mut Map<String, Value>, name: &str) -> &'a mut Value {
    let inner = map.entry(name).or_insert(Value::Null);
    if inner.is_null() {
        *inner = Value::Object(Map::new());
    }
    inner
}
