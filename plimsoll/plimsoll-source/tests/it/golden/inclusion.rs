//! Every decision about a payload, against a table of what the existing operator decides.
//!
//! The table is tab separated, with the columns file, document, group, kind, namespace, name, then
//! one column for each `profile/feature set` holding 1 or 0, and last the first reason for
//! exclusion. It need not have every document: those in files that it does not name are skipped.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use plimsoll_api::ObjectKey;
use plimsoll_content::inclusion::{Decision, decide};
use plimsoll_content::kinds::cluster_kinds;
use plimsoll_content::payload::TemplateContext;
use plimsoll_source::load;

use super::{committed, full_data};

#[test]
fn decisions_agree_with_the_existing_operator() {
    check(&committed("payload"), &committed("inclusion.tsv"));
}

#[test]
fn decisions_about_a_whole_release_agree_with_the_existing_operator() {
    let variables = ["PLIMSOLL_PAYLOAD", "PLIMSOLL_INCLUSION"];
    let Some([payload, table]) = full_data(variables) else { return };
    check(&payload, &table);
}

fn check(payload: &Path, table: &Path) {
    let payload = load(payload, &TemplateContext::default()).unwrap();
    let table = std::fs::read_to_string(table).unwrap();
    let mut rows = table.lines().map(|line| line.split('\t').collect::<Vec<_>>());
    let header = rows.next().unwrap();
    let pairs = &header[6..header.len() - 1];
    assert!(!pairs.is_empty(), "the table has no columns of decisions");
    let rows: BTreeMap<(&str, usize), Vec<&str>> =
        rows.map(|row| ((row[0], row[1].parse().unwrap()), row)).collect();
    let files: BTreeSet<&str> = rows.keys().map(|(file, _)| *file).collect();

    let context = |pair: &&str| {
        let (profile, feature_set) = pair.split_once('/').unwrap();
        payload.context(profile, feature_set)
    };
    let contexts: Vec<_> = pairs.iter().map(context).collect();
    let mut wrong = Vec::new();
    let manifests: Vec<_> =
        payload.manifests.iter().filter(|manifest| files.contains(&*manifest.file)).collect();
    assert_eq!(manifests.len(), rows.len(), "documents in the payload and rows in the table");
    let cluster_kinds = cluster_kinds(&payload.manifests);
    for manifest in manifests {
        let row = &rows[&(&*manifest.file, manifest.document)];
        let [group, kind, namespace, name] = [2, 3, 4, 5].map(|column| row[column].to_owned());
        // The table has namespaces as they are written, also those of objects that have none.
        let mut written = ObjectKey { group, kind, namespace, name };
        written.normalize(&cluster_kinds);
        assert_eq!(manifest.key, written);
        let mut first_reason = String::new();
        for (column, pair) in pairs.iter().enumerate() {
            let decision = match decide(manifest, &contexts[column]) {
                Decision::Included => "1",
                Decision::Excluded(reason) => {
                    if first_reason.is_empty() {
                        first_reason = reason.to_string();
                    }
                    "0"
                }
            };
            if decision != row[6 + column] {
                wrong.push(format!("{} #{} {pair}: {decision}", manifest.file, manifest.document));
            }
        }
        if first_reason != row[row.len() - 1] {
            wrong.push(format!(
                "{} #{}: reason {first_reason:?} instead of {:?}",
                manifest.file,
                manifest.document,
                row[row.len() - 1]
            ));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}
