//! A template of the first writes of every cluster, recorded once in each process.
//!
//! All clusters begin with the same writes, except for uids, times, and the certificate of the
//! authority. The writes are recorded in one cluster, with placeholders for these, and copied to
//! every other. Tests and simulations start thousands of clusters.
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::ids::Ids;
use crate::semantics::cluster::Cluster;
use crate::storage::{History, StorageId, Stored};

/// The placeholder of the time at which a cluster begins.
const NOW: &str = "1999-12-31T23:59:58Z";
/// The placeholder of the certificate of its authority.
const AUTHORITY: &str = "<authority>";
/// The seed of the uids in the recorded cluster.
const SEED: u64 = 0;

/// The writes that every cluster begins with.
pub(super) struct BootstrapTemplate {
    writes: Vec<TemplateWrite>,
    /// The number of uids that they draw.
    uids: usize,
}

/// A write with placeholders in its object.
struct TemplateWrite {
    storage: StorageId,
    object: Arc<Stored>,
    /// The index of the object's uid among those that are drawn.
    uid: usize,
    pieces: Vec<TextPiece>,
}

/// A part of an encoded object.
#[derive(Debug, PartialEq, Eq)]
enum TextPiece {
    Text(Box<str>),
    Uid,
    Now,
    Authority,
}

impl BootstrapTemplate {
    /// Records the writes that `populate` makes in an empty cluster.
    pub(super) fn record(populate: impl FnOnce(&mut Cluster, &str, &str)) -> Self {
        let everything = History { events_max: usize::MAX, bytes_max: usize::MAX };
        let mut cluster = Cluster::new(SEED, everything);
        populate(&mut cluster, AUTHORITY, NOW);
        let mut uids = BTreeMap::new();
        let mut ids = Ids::new(SEED);
        while ids.state().uids != cluster.ids.state().uids {
            uids.insert(ids.next_uid(), uids.len());
        }
        let mut writes: Vec<TemplateWrite> = cluster
            .store
            .history()
            .map(|(storage, event)| {
                let object = Arc::clone(&event.object);
                let text = String::from_utf8_lossy(object.bytes());
                TemplateWrite {
                    storage: storage.clone(),
                    uid: *uids.get(&*object.uid).expect("objects have the uids that were drawn"),
                    pieces: pieces(&text, &object.uid),
                    object,
                }
            })
            .collect();
        writes.sort_by_key(|write| write.object.revision);
        Self { writes, uids: uids.len() }
    }

    /// Makes the writes in a cluster without objects.
    pub(super) fn install(&self, cluster: &mut Cluster, authority: &str, now: &str) {
        let uids: Vec<String> = (0..self.uids).map(|_| cluster.ids.next_uid()).collect();
        let authority = serde_json::Value::from(authority).to_string();
        for TemplateWrite { storage, object, uid, pieces } in &self.writes {
            let mut text = Vec::with_capacity(object.bytes().len() + authority.len());
            for piece in pieces {
                text.extend_from_slice(match piece {
                    TextPiece::Text(text) => text.as_bytes(),
                    TextPiece::Uid => uids[*uid].as_bytes(),
                    TextPiece::Now => now.as_bytes(),
                    TextPiece::Authority => authority.trim_matches('"').as_bytes(),
                });
            }
            cluster.store.append(storage, object.with(&uids[*uid], text));
        }
    }
}

/// A placeholder in an encoded object, and the piece that it becomes.
type Placeholder<'a> = (&'a str, fn() -> TextPiece);

/// Splits an encoded object at its placeholders.
fn pieces(mut text: &str, uid: &str) -> Vec<TextPiece> {
    let marks: [Placeholder<'_>; 3] =
        [(uid, || TextPiece::Uid), (NOW, || TextPiece::Now), (AUTHORITY, || TextPiece::Authority)];
    let mut found = Vec::new();
    loop {
        let next = marks
            .iter()
            .filter_map(|(mark, piece)| Some((text.find(mark)?, mark.len(), piece)))
            .min_by_key(|(at, ..)| *at);
        let Some((at, length, piece)) = next else { break };
        found.push(TextPiece::Text(text[..at].into()));
        found.push(piece());
        text = &text[at + length..];
    }
    found.push(TextPiece::Text(text.into()));
    found
}

#[cfg(test)]
mod tests {
    use super::super::{bootstrap, populate};
    use super::*;

    #[test]
    fn marks_are_found_in_their_order() {
        let text = format!("a uid {NOW} {AUTHORITY}");
        let expected = [
            TextPiece::Text("a ".into()),
            TextPiece::Uid,
            TextPiece::Text(" ".into()),
            TextPiece::Now,
            TextPiece::Text(" ".into()),
            TextPiece::Authority,
            TextPiece::Text("".into()),
        ];
        assert_eq!(pieces(&text, "uid"), expected);
        assert_eq!(pieces("none", "uid"), [TextPiece::Text("none".into())]);
    }

    #[test]
    fn a_cluster_begins_as_if_everything_had_been_requested() {
        let now = "2026-01-02T03:04:05Z";
        let begin = |populate: fn(&mut Cluster, &str, &str)| {
            let mut cluster = Cluster::new(7, History::default());
            populate(&mut cluster, "-----BEGIN \"X\"-----\nabc\n", now);
            cluster
        };
        let (requested, prepared) = (begin(populate), begin(bootstrap));
        let all = |cluster: &Cluster| -> Vec<String> {
            let written = cluster.store.history().map(|(storage, event)| {
                let Stored { key, uid, revision, schema_id, labels, owners, deleting, .. } =
                    &*event.object;
                let text = String::from_utf8_lossy(event.object.bytes());
                let previous = event.previous.as_ref().map(|previous| previous.revision);
                format!(
                    "{storage:?} {key:?} {uid} {revision} {schema_id} {labels:?} {owners:?} {deleting} \
                     {previous:?} {text}"
                )
            });
            written.collect()
        };
        assert!(all(&requested).len() > 100);
        assert_eq!(all(&requested), all(&prepared));
        assert_eq!(requested.store.revision(), prepared.store.revision());
        assert_eq!(requested.store.all().count(), prepared.store.all().count());
        assert_eq!(format!("{:?}", requested.ids), format!("{:?}", prepared.ids));
        assert!(requested.unsettled.is_empty() && prepared.unsettled.is_empty());
    }
}
