//! Values of `release.yaml` that only a cluster, or a program that renders, would refuse.

use k8s_schema::names;

use super::SourceImage;
use crate::authoring::fields::{FieldReader, Fields};
use crate::image_reference::is_image_reference;
use crate::inclusion::INCLUDE_PREFIX;

/// The texts of a list; reports those that are there before, and those of which `problem` returns what is wrong.
pub(super) fn distinct(
    fields: &Fields<'_>,
    name: &str,
    what: &str,
    problem: &dyn Fn(&str) -> Option<String>,
    reader: &mut FieldReader<'_>,
) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    for item in reader.items(fields.field(name)) {
        let Some(text) = reader.text(Some(&item)) else { continue };
        if texts.contains(&text) {
            let message = format!("{what} {text:?} is there already: remove one of the two");
            reader.problem(&item.path, message);
            continue;
        }
        if let Some(message) = problem(&text) {
            reader.problem(&item.path, message);
        }
        texts.push(text);
    }
    texts
}

/// Returns what is wrong with the name of an update channel; `None` if nothing is. Update services accept no
/// other letters.
pub(super) fn channel(name: &str) -> Option<String> {
    let letter = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit() || b"-.".contains(&it);
    let is_name = !name.is_empty() && name.bytes().all(letter);
    (!is_name).then(|| {
        format!(
            "{name:?} is not the name of a channel: use lower-case letters, digits, `-` and `.`, such as \
             stable-1.2"
        )
    })
}

/// Returns what is wrong with the name of a cluster profile, which is a part of an annotation; `None` if nothing
/// is.
pub(super) fn profile(name: &str) -> Option<String> {
    let problems = names::qualified(&format!("{INCLUDE_PREFIX}{name}"));
    let problem = problems.first()?;
    Some(format!(
        "{name:?} is not the name of a profile: API servers refuse its annotation: {problem}"
    ))
}

/// The field `namespace`, the name of one.
pub(super) fn namespace(fields: &Fields<'_>, reader: &mut FieldReader<'_>) -> Option<String> {
    checked(fields, "namespace", names::label, reader)
}

/// A field with the name of an object.
pub(super) fn object_name(
    fields: &Fields<'_>,
    field: &str,
    reader: &mut FieldReader<'_>,
) -> Option<String> {
    checked(fields, field, names::subdomain, reader)
}

fn checked(
    fields: &Fields<'_>,
    field: &str,
    problems: fn(&str) -> Vec<String>,
    reader: &mut FieldReader<'_>,
) -> Option<String> {
    let field = fields.field(field)?;
    let text = reader.text(Some(&field))?;
    for problem in problems(&text) {
        reader.problem(&field.path, format!("{text:?} is refused by API servers: {problem}"));
    }
    Some(text)
}

/// The field `kubeVersion`.
pub(super) fn kube_version(fields: &Fields<'_>, reader: &mut FieldReader<'_>) -> Option<String> {
    let field = fields.field("kubeVersion")?;
    let text = reader.text(Some(&field))?;
    let number = text.strip_prefix('v').unwrap_or(&text);
    let is_version = |text: &str| semver::Version::parse(text).is_ok();
    if !is_version(number) && !is_version(&format!("{number}.0")) {
        let message = format!("{text:?} is not a version of Kubernetes: write one such as 1.34.0");
        reader.problem(&field.path, message);
    }
    Some(text)
}

/// Reports images that are none, and those that another one takes the place of.
pub(super) fn images(images: &[SourceImage], reader: &mut FieldReader<'_>) {
    for (index, image) in images.iter().enumerate() {
        let path = |field: &str| format!("images[{index}].{field}");
        for (field, text) in [("from", image.from.as_deref()), ("image", Some(&*image.image))] {
            if let Some(text) = text.filter(|it| !it.is_empty() && !is_image_reference(it)) {
                let message = format!(
                    "{text:?} is not a reference to an image: write REGISTRY/REPOSITORY:TAG or \
                     REGISTRY/REPOSITORY@DIGEST"
                );
                reader.problem(&path(field), message);
            }
        }
        let earlier = &images[..index];
        if !image.name.is_empty() && earlier.iter().any(|it| it.name == image.name) {
            let message = format!("image {:?} is there already: give it another name", image.name);
            reader.problem(&path("name"), message);
        }
        let same = earlier.iter().find(|it| it.from.is_some() && it.from == image.from);
        if let (Some(same), Some(from)) = (same, &image.from) {
            let message = format!("image {:?} takes the place of {from} already", same.name);
            reader.problem(&path("from"), message);
        }
    }
}
