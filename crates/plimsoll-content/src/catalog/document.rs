//! The documents of a file-based catalog as they are written (resolution §2).

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
    /// A property: what it says depends on its type.
    WrittenProperty {
        kind: Text<'a> = "type",
        value: &'a RawValue = "value",
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
