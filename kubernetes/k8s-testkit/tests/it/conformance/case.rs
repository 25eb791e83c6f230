//! Case files: what is asked of a server.
//!
//! A file lies in `conformance/AREA/NAME.yaml` and holds cases of one topic; what a real server
//! answered lies beside it in `NAME.answers.json`. In paths, bodies and expectations `$ns` stands
//! for the namespace of the case, `$core`, `$apps` and the like for the paths of API groups in it,
//! and whatever a request saved for the value it saved.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

/// A file of cases.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// Whether answers are compared with their `managedFields`.
    #[serde(default)]
    managed: bool,
    /// Where anchors can be set, for what several cases send.
    #[serde(default)]
    #[expect(dead_code, reason = "only aliases of its anchors are looked at")]
    define: IgnoredAny,
    cases: Vec<Case>,
}

/// One case: some requests in order, in a namespace of its own.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Case {
    /// What holds, as a sentence.
    #[serde(rename = "case")]
    pub(super) title: String,
    /// Requests that only prepare: they must succeed, their answers are not compared.
    #[serde(default)]
    pub(super) given: Vec<Entry>,
    /// The requests whose answers are compared.
    pub(super) requests: Vec<Entry>,
    /// Whether answers are compared with their `managedFields`.
    #[serde(default)]
    pub(super) managed: bool,
    /// Why the embedded server answers otherwise on purpose, if it does.
    pub(super) differs: Option<String>,
    /// Path of the file, relative to the directory of all, without its ending.
    #[serde(skip)]
    pub(super) file: String,
}

/// A request, or only its method and path.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "Value")]
pub(super) struct Entry(Box<Step>);

/// A request with all there is to say about it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Step {
    /// Method and path with query; the query may have spaces and the like.
    #[serde(rename = "do")]
    pub(super) target: String,
    /// User to impersonate, and groups.
    #[serde(rename = "as")]
    pub(super) user: Option<String>,
    pub(super) groups: Vec<String>,
    /// Further headers; `null` leaves one out that would be there.
    pub(super) headers: BTreeMap<String, Option<String>>,
    /// The body, of which there is at most one: a JSON document, or one with the media type of a
    /// patch, or text that is sent as it stands.
    pub(super) json: Option<Value>,
    pub(super) merge: Option<Value>,
    pub(super) strategic: Option<Value>,
    pub(super) patch: Option<Value>,
    pub(super) apply: Option<Value>,
    pub(super) yaml: Option<String>,
    pub(super) text: Option<String>,
    /// A text too long to write down: what comes before, what is repeated, how often, what follows.
    pub(super) long: Option<(String, String, usize, String)>,
    /// Values to keep from the answer: name to JSON pointer.
    pub(super) save: BTreeMap<String, String>,
    /// Ask again until the answer is such: a status code, or values at JSON pointers.
    pub(super) until: Option<Until>,
    /// Compare only what lies at these JSON pointers, or leave out what lies at these. A segment
    /// `*` stands for all.
    pub(super) show: Vec<String>,
    pub(super) hide: Vec<String>,
    /// For a watch: how many events to take; none means until the server ends it.
    pub(super) events: Option<usize>,
    /// For a watch: requests to make once it is open. They must succeed.
    #[serde(rename = "while")]
    pub(super) meanwhile: Vec<Entry>,
    /// Whether bookmarks without annotations count as events. When they come is up to the server.
    pub(super) bookmarks: bool,
}

/// What to wait for.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Until {
    Status(u16),
    Body(BTreeMap<String, Value>),
}

impl Entry {
    /// The request in full.
    pub(super) fn step(&self) -> Step {
        (*self.0).clone()
    }
}

impl TryFrom<Value> for Entry {
    type Error = serde_json::Error;

    fn try_from(value: Value) -> Result<Self, Self::Error> {
        let step = match value {
            Value::String(target) => Step { target, ..Step::default() },
            other => serde_json::from_value(other)?,
        };
        Ok(Self(Box::new(step)))
    }
}

impl Case {
    /// A namespace that no other case has.
    pub(super) fn namespace(&self) -> String {
        // FNV-1a: short, the same everywhere, and collisions would show as failing cases.
        let hash = self.title.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        format!("case-{:010x}", hash & 0xff_ffff_ffff)
    }
}

/// Where the case files lie.
pub(super) fn directory() -> PathBuf {
    std::path::absolute("conformance").expect("a working directory")
}

/// Reads all cases, in the order of their files.
pub(super) fn read_all() -> Vec<Case> {
    let mut paths = Vec::new();
    find_files(&directory(), &mut paths);
    paths.sort();
    paths.iter().flat_map(|path| read_file(path)).collect()
}

fn find_files(directory: &Path, paths: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).expect("the directory of the cases can be read") {
        let path = entry.expect("its entries can be read").path();
        if path.is_dir() {
            find_files(&path, paths);
        } else if path.extension().is_some_and(|extension| extension == "yaml") {
            paths.push(path);
        }
    }
}

fn read_file(path: &Path) -> Vec<Case> {
    let text = std::fs::read_to_string(path).expect("a case file can be read");
    let file: File = serde_saphyr::from_str(&text)
        .map_err(|error| format!("{}: {error}", path.display()))
        .expect("a case file is one");
    let name = path.strip_prefix(directory()).expect("the file lies in the directory");
    let name = name.with_extension("").to_string_lossy().into_owned();
    file.cases
        .into_iter()
        .map(|case| Case { managed: case.managed || file.managed, file: name.clone(), ..case })
        .collect()
}
