//! The documents of a file-based catalog as they are written (RES-1).

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::record::{List, Text, record};

record! {
    /// What of a document is needed to say what it is, whatever the rest of it looks like.
    Head {
        schema: Text<'a> = "schema",
        package: Text<'a> = "package",
        name: Text<'a> = "name",
    }
}

record! {
    /// A package, a channel, a bundle or a package's deprecations.
    Document {
        schema: Text<'a> = "schema",
        package: Text<'a> = "package",
        name: Text<'a> = "name",
        default_channel: Text<'a> = "defaultChannel",
        description: Text<'a> = "description",
        image: Text<'a> = "image",
        version: Text<'a> = "version",
        release: Text<'a> = "release",
        properties: List<WrittenProperty<'a>> = "properties",
        entries: List<WrittenEntry<'a>> = "entries",
        related_images: List<RelatedImage<'a>> = "relatedImages",
    }
}

record! {
    /// The same with every value of a property as it is written: for documents with a property of
    /// an unexpected form, so that it can be named.
    CarefulDocument {
        schema: Text<'a> = "schema",
        package: Text<'a> = "package",
        name: Text<'a> = "name",
        default_channel: Text<'a> = "defaultChannel",
        description: Text<'a> = "description",
        image: Text<'a> = "image",
        version: Text<'a> = "version",
        release: Text<'a> = "release",
        properties: List<CarefulProperty<'a>> = "properties",
        entries: List<WrittenEntry<'a>> = "entries",
        related_images: List<RelatedImage<'a>> = "relatedImages",
    }
}

impl<'a> From<CarefulDocument<'a>> for Document<'a> {
    fn from(careful: CarefulDocument<'a>) -> Self {
        let CarefulDocument {
            schema,
            package,
            name,
            default_channel,
            description,
            image,
            version,
            release,
            properties,
            entries,
            related_images,
            borrows,
        } = careful;
        let properties =
            properties.map(|list| List(list.0.into_iter().map(WrittenProperty::from).collect()));
        Self {
            schema,
            package,
            name,
            default_channel,
            description,
            image,
            version,
            release,
            properties,
            entries,
            related_images,
            borrows,
        }
    }
}

record! {
    /// A property with its value as it is written.
    CarefulProperty {
        kind: Text<'a> = "type",
        value: &'a RawValue = "value",
    }
}

/// A property: what it says depends on its type.
#[derive(Debug, Default)]
pub(super) struct WrittenProperty<'a> {
    pub(super) kind: Option<Text<'a>>,
    pub(super) value: Option<WrittenValue<'a>>,
}

/// The value of a property. The most frequent ones are read at once when the type stands before
/// the value, as it mostly does.
#[derive(Debug)]
pub(super) enum WrittenValue<'a> {
    Api(WrittenApi<'a>),
    Package(WrittenPackage<'a>),
    Raw(&'a RawValue),
}

impl<'a> From<CarefulProperty<'a>> for WrittenProperty<'a> {
    fn from(careful: CarefulProperty<'a>) -> Self {
        Self { kind: careful.kind, value: careful.value.map(WrittenValue::Raw) }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for WrittenProperty<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(PropertyVisitor(PhantomData))
    }
}

struct PropertyVisitor<'a>(PhantomData<&'a str>);

impl<'de: 'a, 'a> Visitor<'de> for PropertyVisitor<'a> {
    type Value = WrittenProperty<'a>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a property")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        let mut property = WrittenProperty::default();
        while let Some(key) = entries.next_key::<Text<'de>>()? {
            if key.eq_ignore_ascii_case("type") {
                property.kind = entries.next_value()?;
            } else if key.eq_ignore_ascii_case("value") {
                property.value = match property.kind.as_deref() {
                    Some("olm.gvk" | "olm.gvk.required") => {
                        entries.next_value::<Option<_>>()?.map(WrittenValue::Api)
                    }
                    Some("olm.package" | "olm.package.required") => {
                        entries.next_value::<Option<_>>()?.map(WrittenValue::Package)
                    }
                    Some(_) | None => Some(WrittenValue::Raw(entries.next_value()?)),
                };
            } else {
                entries.next_value::<IgnoredAny>()?;
            }
        }
        Ok(property)
    }
}

record! {
    /// An entry of a channel, or of a list of deprecations.
    WrittenEntry {
        name: Text<'a> = "name",
        replaces: Text<'a> = "replaces",
        skips: List<Text<'a>> = "skips",
        skip_range: Text<'a> = "skipRange",
        reference: Reference<'a> = "reference",
        message: Text<'a> = "message",
    }
}

record! {
    /// What is deprecated.
    Reference {
        schema: Text<'a> = "schema",
        name: Text<'a> = "name",
    }
}

record! {
    /// An image that a bundle needs.
    RelatedImage {
        name: Text<'a> = "name",
        image: Text<'a> = "image",
    }
}

record! {
    /// An API: `olm.gvk`, `olm.gvk.required` and native APIs.
    WrittenApi {
        group: Text<'a> = "group",
        version: Text<'a> = "version",
        kind: Text<'a> = "kind",
    }
}

record! {
    /// `olm.package` and `olm.package.required`.
    WrittenPackage {
        name: Text<'a> = "packageName",
        version: Text<'a> = "version",
        release: Text<'a> = "release",
        range: Text<'a> = "versionRange",
    }
}

record! {
    /// `olm.label` and `olm.label.required`.
    WrittenLabel {
        label: Text<'a> = "label",
    }
}

record! {
    /// `olm.csv.metadata`: what of a ClusterServiceVersion catalogs keep.
    WrittenMetadata {
        annotations: WrittenAnnotations<'a> = "annotations",
        display_name: Text<'a> = "displayName",
        labels: &'a RawValue = "labels",
        install_modes: List<WrittenMode<'a>> = "installModes",
        minimum_kubernetes: Text<'a> = "minKubeVersion",
        native_apis: List<WrittenApi<'a>> = "nativeAPIs",
        provider: WrittenProvider<'a> = "provider",
    }
}

record! {
    /// Annotations of a ClusterServiceVersion.
    WrittenAnnotations {
        description: Text<'a> = "description",
        capabilities: Text<'a> = "capability.openshift.io/name",
    }
}

record! {
    /// Who provides an operator.
    WrittenProvider {
        name: Text<'a> = "name",
    }
}

record! {
    /// An install mode and whether it is supported.
    WrittenMode {
        kind: Text<'a> = "type",
        supported: bool = "supported",
    }
}

record! {
    /// `olm.bundle.object`: a manifest of the bundle.
    WrittenObject {
        data: Text<'a> = "data",
    }
}

record! {
    /// A manifest, as far as it may be a ClusterServiceVersion.
    WrittenManifest {
        kind: Text<'a> = "kind",
        metadata: WrittenObjectMetadata<'a> = "metadata",
        spec: &'a RawValue = "spec",
    }
}

record! {
    /// The metadata of an object.
    WrittenObjectMetadata {
        labels: &'a RawValue = "labels",
        annotations: WrittenAnnotations<'a> = "annotations",
    }
}
