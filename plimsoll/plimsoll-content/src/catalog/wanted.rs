//! What is looked for in a file-based catalog, and what of it is kept.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::document::{Document, WrittenObject, WrittenValue};
use super::record::Text;

/// Properties of a bundle that say again what its files say.
const DERIVED: &[&str] = &[
    "olm.bundle.mediatype",
    "olm.channel",
    "olm.constraint",
    "olm.csv.metadata",
    "olm.gvk",
    "olm.gvk.required",
    "olm.label.required",
    "olm.package",
    "olm.package.required",
];

/// What a file-based catalog has of the content of a bundle.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CatalogBundle {
    /// The image with its content; empty if it has none.
    pub image: String,
    /// Its manifests (`olm.bundle.object`), decoded and in their order; empty if they are only in
    /// the image.
    pub objects: Vec<Vec<u8>>,
    /// Properties that its manifests and dependencies do not say, as type and JSON value.
    pub properties: Vec<(String, String)>,
}

/// What a search looks for, and what it found.
#[derive(Debug)]
pub(super) struct WantedBundle {
    package: String,
    name: String,
    found: Option<Result<CatalogBundle, String>>,
}

impl WantedBundle {
    pub(super) fn new(package: &str, name: &str) -> Self {
        Self { package: package.to_owned(), name: name.to_owned(), found: None }
    }

    pub(super) fn is_found(&self) -> bool {
        self.found.is_some()
    }

    pub(super) fn into_found(self) -> Option<Result<CatalogBundle, String>> {
        self.found
    }

    fn is_meant(&self, schema: &str, package: &str, name: &str) -> bool {
        self.found.is_none()
            && schema == "olm.bundle"
            && package == self.package
            && name == self.name
    }

    /// Looks at a document.
    pub(super) fn document(&mut self, document: Document<'_>) {
        let text = |text: &Option<Text<'_>>| text.as_deref().unwrap_or_default().to_owned();
        let (schema, package) = (text(&document.schema), text(&document.package));
        if self.is_meant(&schema, &package, &text(&document.name)) {
            self.found = Some(content(document));
        }
    }

    /// Looks at a document that cannot be read.
    pub(super) fn lost(&mut self, schema: &str, package: &str, name: &str, problem: &str) {
        if self.is_meant(schema, package, name) {
            self.found = Some(Err(problem.to_owned()));
        }
    }
}

fn content(document: Document<'_>) -> Result<CatalogBundle, String> {
    let image = document.image.as_deref().unwrap_or_default().to_owned();
    let mut bundle = CatalogBundle { image, ..CatalogBundle::default() };
    for property in document.properties.unwrap_or_default().0 {
        let (Some(kind), Some(WrittenValue::Raw(value))) = (property.kind, property.value) else {
            continue;
        };
        match &*kind {
            "olm.bundle.object" => {
                let problem = |what: &str| format!("property olm.bundle.object: {what}");
                let object: WrittenObject<'_> = serde_json::from_str(value.get())
                    .map_err(|error| problem(&error.to_string()))?;
                let data = object.data.as_deref().unwrap_or_default();
                let bytes = STANDARD.decode(data).map_err(|_| problem("data is not base64"))?;
                bundle.objects.push(bytes);
            }
            derived if DERIVED.contains(&derived) => {}
            other => bundle.properties.push((other.to_owned(), value.get().to_owned())),
        }
    }
    Ok(bundle)
}
