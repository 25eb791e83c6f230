//! The images that manifests name.

use serde_json::Value;

use super::SourceImage;

/// Fields of a pod's spec that list containers.
pub(crate) const CONTAINERS: [&str; 3] = ["containers", "initContainers", "ephemeralContainers"];

/// Fields that hold images.
const IMAGE_FIELDS: [&str; 2] = ["image", "reference"];

/// An image that an object uses.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct UsedImage {
    /// Its pull specification.
    pub image: String,
    /// The container, or the volume, that uses it.
    pub user: String,
}

/// The images that an object uses, in any pod that it describes.
pub fn container_images(object: &Value) -> Vec<UsedImage> {
    let mut used = Vec::new();
    collect(object, &mut used);
    used
}

fn collect(value: &Value, used: &mut Vec<UsedImage>) {
    match value {
        Value::Object(fields) => {
            for name in CONTAINERS {
                let containers = fields.get(name).and_then(Value::as_array);
                add(containers, "/image", used);
            }
            add(fields.get("volumes").and_then(Value::as_array), "/image/reference", used);
            fields.values().for_each(|value| collect(value, used));
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, used)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn add(items: Option<&Vec<Value>>, image: &str, used: &mut Vec<UsedImage>) {
    for item in items.into_iter().flatten() {
        let image = item.pointer(image).and_then(Value::as_str);
        if let (Some(user), Some(image)) = (item["name"].as_str(), image) {
            used.push(UsedImage { image: image.to_owned(), user: user.to_owned() });
        }
    }
}

/// Replaces what manifests name by the images of the release: texts that are a reference to a
/// repository, or end with `=` and one. A repository without a registry, such as `nginx`, could be the
/// name of anything: it is replaced in fields for images only. Notes in `found` which of the images
/// were named.
pub(super) fn substitute(object: &mut Value, images: &[SourceImage], found: &mut [bool]) {
    substitute_field("", object, images, found);
}

fn substitute_field(name: &str, value: &mut Value, images: &[SourceImage], found: &mut [bool]) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                substitute_field(name, value, images, found);
            }
        }
        Value::Array(items) => {
            items.iter_mut().for_each(|item| substitute_field("", item, images, found));
        }
        Value::String(text) => {
            let is_image = IMAGE_FIELDS.contains(&name);
            let start = text.find('=').map_or(0, |at| at + 1);
            for (image, found) in images.iter().zip(found) {
                let Some(from) = image.from.as_ref().filter(|it| is_image || it.contains('/'))
                else {
                    continue;
                };
                let whole = refers_to(text, from);
                if whole || refers_to(&text[start..], from) {
                    text.truncate(if whole { 0 } else { start });
                    text.push_str(&image.image);
                    *found = true;
                    return;
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Whether a text is a repository, with or without a tag or a digest.
fn refers_to(text: &str, repository: &str) -> bool {
    let Some(rest) = text.strip_prefix(repository) else { return false };
    let is_tag = |it: char| it.is_ascii_alphanumeric() || "._-:@".contains(it);
    rest.is_empty() || rest.starts_with([':', '@']) && rest.len() > 1 && rest.chars().all(is_tag)
}

#[cfg(test)]
mod tests {
    //! What is replaced, and what is listed.

    use serde_json::json;

    use super::*;

    #[test]
    fn references_to_a_repository_are_replaced_and_nothing_else() {
        let replaced = |from: &str, mut value: Value| {
            let images = [SourceImage {
                name: "web".to_owned(),
                from: Some(from.to_owned()),
                image: "r/web@sha256:1".to_owned(),
                line: 1,
            }];
            let mut found = [false];
            substitute(&mut value, &images, &mut found);
            (value, found[0])
        };
        let check = |text: &str, expected: &str| {
            let (value, found) = replaced("example.org/web", json!([text]));
            assert_eq!((&value[0], found), (&json!(expected), text != expected), "{text}");
        };
        check("example.org/web", "r/web@sha256:1");
        check("example.org/web:1.0", "r/web@sha256:1");
        check("example.org/web:1.0@sha256:00", "r/web@sha256:1");
        check("--image=example.org/web:1.0", "--image=r/web@sha256:1");
        check("example.org/web/more", "example.org/web/more");
        check("example.org/website:1", "example.org/website:1");
        check("example.org/web: words", "example.org/web: words");
        check("https://example.org/web", "https://example.org/web");
        check("example.org/web:", "example.org/web:");
        let object = |image: &str| json!({"name": "web", "app": "web", "image": image});
        assert_eq!(replaced("web", object("web:1")), (object("r/web@sha256:1"), true));
    }

    #[test]
    fn images_of_containers_and_volumes_are_listed() {
        let pod = json!({"spec": {
            "initContainers": [{"name": "a", "image": "one"}],
            "containers": [{"name": "b", "image": "two"}, {"name": "c"}],
            "volumes": [{"name": "v", "image": {"reference": "three"}}, {"name": "w"}],
        }});
        let object =
            json!({"kind": "CronJob", "spec": {"jobTemplate": {"spec": {"template": pod}}}});
        let used: Vec<String> = container_images(&object)
            .iter()
            .map(|it| format!("{} {}", it.user, it.image))
            .collect();
        assert_eq!(used, ["b two", "a one", "v three"]);
    }
}
