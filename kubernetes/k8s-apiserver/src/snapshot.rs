//! Snapshots: a cluster written to a file, and restored from it.
//!
//! The format is JSON lines. They are written in the order of resources and keys, so that the same
//! cluster always gives the same bytes and two snapshots can be compared; any order is read. The first line contains the format and
//! the state that is not in objects; each other line contains one object:
//!
//! ```text
//! {"format":"k8s-apiserver-snapshot","version":1,"revision":42,"ids":{"uids":1,"suffixes":2},"objects":1}
//! {"resource":"configmaps","object":{"metadata":{"name":"a","namespace":"b",…},"data":{…}}}
//! ```
//!
//! `resource` is the plural name with its group. Objects are in their stored form: without
//! `apiVersion` and `kind`, in the storage version. `schema` names the version of a custom resource
//! whose schema the object was last validated against, if that schema is still served.
//!
//! Events are not part of a snapshot: the history begins with its revision, and watches at earlier
//! revisions get `410 Expired`.
//!
//! A snapshot with an object that no server can have stored is refused (`check`). What validation
//! would refuse of a new object is kept: it may have been valid under older rules.
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::clock::rfc3339_seconds;
use crate::controllers::definition;
use crate::ids::{IdState, Ids};
use crate::semantics::cluster::Cluster;
use crate::server::{ApiServer, Options};
use crate::storage::{ObjectKey, StorageId, Store, Stored};

mod check;

/// The name of the format in the first line.
const FORMAT: &str = "k8s-apiserver-snapshot";

/// The version of the format that is written, and the only one that is read.
const VERSION: u32 = 1;

/// Why a snapshot cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The file cannot be read.
    #[error("failed to read the snapshot")]
    Read(#[from] io::Error),
    /// A line is invalid.
    #[error("line {line} of the snapshot cannot be used")]
    Line {
        /// The line number; the first line is 1.
        line: usize,
        /// What is wrong with the line.
        #[source]
        problem: SnapshotProblem,
    },
    /// An object is one that no server can have stored.
    #[error("{object} in line {line} of the snapshot cannot be used")]
    Object {
        /// The line number; the first line is 1.
        line: usize,
        /// The resource of the object, and its name.
        object: String,
        /// What is wrong with the object.
        #[source]
        problem: SnapshotProblem,
    },
}

/// What is wrong with one line of a snapshot.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotProblem {
    /// It is not valid JSON, or lacks fields.
    #[error("{0}")]
    Json(#[from] serde_json::Error),
    /// The file has another format.
    #[error("the format is `{0}`, not `{FORMAT}`")]
    Format(String),
    /// The file has a version of the format that cannot be read.
    #[error("version {0} of the format is not known; version {VERSION} is")]
    Version(u32),
    /// An object lacks this field of its metadata.
    #[error("the object has no {0}")]
    Missing(&'static str),
    /// The revision of the object is malformed or later than the snapshot.
    #[error("revision `{found}` of the object is not one of 1 to {newest}")]
    Revision {
        /// The `resourceVersion` of the object.
        found: String,
        /// The revision of the snapshot.
        newest: u64,
    },
    /// The name or namespace of an object is not one that a URL can have.
    #[error("`{0}` is not a valid name")]
    Name(String),
    /// A field of the object is there twice; one of its values would be lost.
    #[error("the object is ambiguous: {0}")]
    Ambiguous(String),
    /// The object has its type, which would be there twice when it is served.
    #[error("the object has the field `{0}`, without which objects are stored")]
    Typed(&'static str),
    /// The object has a namespace, and its resource is cluster-scoped.
    #[error("the object has the namespace `{0}`, and its resource is cluster-scoped")]
    Namespace(String),
    /// A value of the object is not of the type of its field.
    #[error("the object cannot be decoded: {0}")]
    Undecodable(String),
    /// An object of the same name or uid is in an earlier line.
    #[error("the object is there already, by its name or its uid")]
    Duplicate,
    /// The resource is not built in, and the snapshot has no definition of it.
    #[error("there is no resource `{0}`, and no definition of it in the snapshot")]
    Resource(String),
    /// The number of objects differs from that in the first line.
    #[error("there are {found} objects, not {expected}")]
    Count {
        /// The number in the first line.
        expected: usize,
        /// The number of objects in the file.
        found: usize,
    },
}

/// The first line.
#[derive(Serialize, Deserialize)]
struct SnapshotHeader {
    format: String,
    version: u32,
    revision: u64,
    ids: IdState,
    objects: usize,
}

/// The line of an object.
#[derive(Serialize, Deserialize)]
struct ObjectLine<'a> {
    #[serde(borrow)]
    resource: std::borrow::Cow<'a, str>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    schema: Option<std::borrow::Cow<'a, str>>,
    #[serde(borrow)]
    object: &'a RawValue,
}

/// An object that was read.
struct SnapshotEntry {
    line: usize,
    storage: StorageId,
    schema: Option<String>,
    stored: Stored,
}

impl SnapshotEntry {
    /// The error about this object.
    fn refused(&self, problem: SnapshotProblem) -> SnapshotError {
        let object = named(self.storage.as_str(), &self.stored.key);
        SnapshotError::Object { line: self.line, object, problem }
    }
}

/// An object as errors name it.
fn named(resource: &str, key: &ObjectKey) -> String {
    if key.namespace.is_empty() {
        format!("`{}` of {resource}", key.name)
    } else {
        format!("`{}/{}` of {resource}", key.namespace, key.name)
    }
}

impl ApiServer {
    /// Writes the whole cluster: all objects, the revision and the state of the identifiers.
    ///
    /// The same cluster gives the same bytes. The snapshot is consistent, and requests are handled
    /// while it is written.
    ///
    /// # Errors
    /// When writing to `out` fails, or a panic in a write made the cluster unusable.
    pub fn snapshot(&self, out: impl Write) -> io::Result<()> {
        let (header, entries) = self
            .shared()
            .cluster
            .read(|cluster| {
                let entries: Vec<_> = cluster
                    .store
                    .all()
                    .map(|(storage, stored)| {
                        (storage.clone(), schema_of(cluster, storage, stored), Arc::clone(stored))
                    })
                    .collect();
                let header = SnapshotHeader {
                    format: FORMAT.to_owned(),
                    version: VERSION,
                    revision: cluster.store.revision(),
                    ids: cluster.ids.state(),
                    objects: entries.len(),
                };
                Ok((header, entries))
            })
            .map_err(|error| io::Error::other(error.message))?;
        let mut out = BufWriter::new(out);
        serde_json::to_writer(&mut out, &header)?;
        for (storage, schema, stored) in entries {
            out.write_all(b"\n")?;
            let object: &RawValue = serde_json::from_slice(stored.bytes())?;
            let resource = storage.as_str().into();
            let schema = schema.map(Into::into);
            serde_json::to_writer(&mut out, &ObjectLine { resource, schema, object })?;
        }
        out.write_all(b"\n")?;
        out.flush()
    }

    /// Restores the cluster that [`ApiServer::snapshot`] wrote.
    ///
    /// Resource versions, uids and generated names continue, so the seed of `options` has no effect.
    /// Keys are not part of a snapshot. The history begins with the snapshot.
    ///
    /// # Errors
    /// When reading fails, a line is invalid, or no server can have stored an object; the error
    /// contains the line number, and the name of the object if it has one.
    pub fn restore(input: impl Read, options: Options) -> Result<Self, SnapshotError> {
        let (header, entries) = read(input)?;
        let mut cluster = Cluster::new(options.seed, options.history);
        cluster.store = Store::at_revision(options.history, header.revision);
        cluster.ids = Ids::of_state(header.ids);
        let is_definition = |entry: &SnapshotEntry| entry.storage.as_str() == definition::STORAGE;
        let (definitions, others): (Vec<_>, Vec<_>) = entries.into_iter().partition(is_definition);
        for entry in definitions {
            check_object(&cluster, &entry)?;
            let stored = restore_object(&mut cluster, &entry)?;
            definition::resume(&mut cluster, &stored);
        }
        for entry in others {
            check_object(&cluster, &entry)?;
            restore_object(&mut cluster, &entry)?;
        }
        tracing::debug!(
            at = rfc3339_seconds(options.clock.now()),
            revision = header.revision,
            "loaded a snapshot"
        );
        Ok(Self::with_cluster(cluster, options))
    }
}

/// The version of a custom resource whose schema an object was validated against; none if it is not
/// served any more.
fn schema_of(cluster: &Cluster, storage: &StorageId, stored: &Stored) -> Option<String> {
    (stored.schema_id > 0)
        .then(|| {
            let mut versions = cluster.registry.all();
            versions.find(|version| {
                version.storage == *storage && version.schema_id == stored.schema_id
            })
        })
        .flatten()
        .map(|version| version.version.clone())
}

fn read(input: impl Read) -> Result<(SnapshotHeader, Vec<SnapshotEntry>), SnapshotError> {
    let mut lines = BufReader::new(input).lines().enumerate();
    let of_line = |index: usize| move |problem| SnapshotError::Line { line: index + 1, problem };
    let first = lines.next().map(|(_, line)| line).transpose()?.unwrap_or_default();
    let header = read_header(&first).map_err(of_line(0))?;
    // The number in the header is not trusted for an allocation.
    let mut entries = Vec::new();
    for (index, line) in lines {
        let line = line?;
        if !line.is_empty() {
            entries.push(read_entry(index + 1, &line, header.revision)?);
        }
    }
    if entries.len() != header.objects {
        let problem = SnapshotProblem::Count { expected: header.objects, found: entries.len() };
        return Err(SnapshotError::Line { line: 1, problem });
    }
    Ok((header, entries))
}

fn read_header(text: &str) -> Result<SnapshotHeader, SnapshotProblem> {
    #[derive(Deserialize)]
    struct Kind {
        #[serde(default)]
        format: String,
        #[serde(default)]
        version: u32,
    }
    // The other fields are only defined for this format and version.
    let kind: Kind = serde_json::from_str(text)?;
    if kind.format != FORMAT {
        return Err(SnapshotProblem::Format(kind.format));
    }
    if kind.version != VERSION {
        return Err(SnapshotProblem::Version(kind.version));
    }
    Ok(serde_json::from_str(text)?)
}

fn read_entry(line: usize, text: &str, newest: u64) -> Result<SnapshotEntry, SnapshotError> {
    let refused = |problem| SnapshotError::Line { line, problem };
    let malformed = |error: serde_json::Error| refused(error.into());
    let read: ObjectLine<'_> = serde_json::from_str(text).map_err(malformed)?;
    let json = read.object.get();
    // It has to be decoded whenever it is read: raw JSON may be too deep, or have invalid texts.
    let mut object: Value = serde_json::from_str(json).map_err(malformed)?;
    let metadata = object.get_mut("metadata").map(Value::take).unwrap_or_default();
    let text = |field: &str| metadata[field].as_str().unwrap_or_default();
    if text("name").is_empty() {
        return Err(refused(SnapshotProblem::Missing("name")));
    }
    let key = ObjectKey::new(text("namespace"), text("name"));
    let revision = check::metadata(&metadata, newest)
        .and_then(|revision| check::fields(json, &object).map(|()| revision))
        .map_err(|problem| {
            let object = named(&read.resource, &key);
            SnapshotError::Object { line, object, problem }
        })?;
    let bytes = Bytes::copy_from_slice(json.as_bytes());
    Ok(SnapshotEntry {
        line,
        storage: StorageId::of_text(&read.resource),
        schema: read.schema.map(std::borrow::Cow::into_owned),
        stored: Stored::of_parts(key, &metadata, bytes, revision, 0),
    })
}

/// Checks that a resource is built in, or has a definition in the snapshot, and that the object is
/// one of it.
fn check_object(cluster: &Cluster, entry: &SnapshotEntry) -> Result<(), SnapshotError> {
    let resource = check::resource_of(&cluster.registry, &entry.storage, &entry.stored);
    if let Some(resource) = resource {
        return check::object(resource, &entry.stored).map_err(|problem| entry.refused(problem));
    }
    let definitions = StorageId::of_text(definition::STORAGE);
    let name = ObjectKey::new("", entry.storage.as_str());
    if cluster.store.find(&definitions, &name).is_some() {
        // A definition that is not established: its objects are not served.
        return Ok(());
    }
    Err(entry.refused(SnapshotProblem::Resource(entry.storage.as_str().to_owned())))
}

fn restore_object(
    cluster: &mut Cluster,
    entry: &SnapshotEntry,
) -> Result<Arc<Stored>, SnapshotError> {
    let mut stored = entry.stored.clone();
    if let Some(schema) = &entry.schema {
        stored.schema_id = cluster
            .registry
            .all()
            .find(|version| version.storage == entry.storage && version.version == *schema)
            .map_or(0, |version| version.schema_id);
    }
    let stored = Arc::new(stored);
    if !cluster.store.restore_object(&entry.storage, &stored) {
        return Err(entry.refused(SnapshotProblem::Duplicate));
    }
    Ok(stored)
}
