//! What types and markers become.

use anyhow::{Result, anyhow};

use super::generate;

/// The definition of ReleaseProgress when its types are these, and all others are the tree's.
fn progress(source: &str) -> Result<String> {
    let files = generate(|path| {
        if path.ends_with("progress.rs") {
            return Ok(source.to_owned());
        }
        let root = crate::workspace_root()?;
        Ok(std::fs::read_to_string(root.join(path))?)
    })?;
    let mut files = files.into_iter().filter(|(name, _)| name == "releaseprogresses.yaml");
    files.next().map(|(_, text)| text).ok_or_else(|| anyhow!("no file"))
}

const STATUS: &str = r#"
/// The state.
#[serde(rename_all = "camelCase")]
pub struct ReleaseProgressStatus {
    /// Names: of people
    /// and places.
    // +listType=map
    // +listMapKey=name
    // +kubebuilder:validation:MaxItems=3
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub long_names: Vec<Name>,
    /// When it ended; null before that.
    pub end_time: Option<Timestamp>,
    /// What it carries.
    // +kubebuilder:validation:MaxProperties=2
    pub labels: BTreeMap<String, String>,
}

/// A name.
pub struct Name {
    /// The name itself.
    #[serde(rename = "name")]
    pub text: String,
}
"#;

#[test]
fn fields_doc_comments_and_markers_become_a_schema() {
    let text = progress(STATUS).unwrap();
    let expected = "\
          status:
            description: The state of the release; absent before the controller's first write.
            properties:
              endTime:
                description: When it ended; null before that.
                format: date-time
                nullable: true
                type: string
              labels:
                additionalProperties:
                  type: string
                description: What it carries.
                maxProperties: 2
                type: object
              longNames:
                description: 'Names: of people and places.'
                items:
                  properties:
                    name:
                      description: The name itself.
                      type: string
                  required:
                  - name
                  type: object
                maxItems: 3
                type: array
                x-kubernetes-list-map-keys:
                - name
                x-kubernetes-list-type: map
            required:
            - endTime
            - labels
            type: object
";
    let status = text[text.find("          status:\n").unwrap()..].trim_start();
    assert!(status.starts_with(expected), "{status}");
}

#[test]
fn what_is_not_understood_is_an_error() {
    for (from, to) in [
        ("// +listType=map", "// +listTyp=map"),
        ("MaxItems=3", "MaxItems=three"),
        ("Vec<Name>", "Vec<Unknown>"),
        ("    /// The name itself.\n", ""),
        ("pub text: String", "text: String"),
    ] {
        let source = STATUS.replace(from, to);
        assert!(progress(&source).is_err(), "{to}");
    }
}
