//! Every decision about a real payload, against a table of what the existing operator decided.
//!
//! `PLIMSOLL_PAYLOAD` names the directory of the payload and `PLIMSOLL_INCLUSION` the table: tab
//! separated, with the columns file, document, group, kind, namespace, name, then one column for
//! each `profile/feature set` holding 1 or 0, and last the first reason for exclusion. The table
//! need not have every document: those in files that it does not name are not looked at.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use plimsoll_content::inclusion::{Decision, decide};
use plimsoll_content::payload::TemplateContext;

use crate::load;

#[test]
fn decisions_about_a_real_payload_agree_with_the_existing_operator() {
    let variable = |name| std::env::var_os(name);
    let (Some(payload), Some(table)) =
        (variable("PLIMSOLL_PAYLOAD"), variable("PLIMSOLL_INCLUSION"))
    else {
        println!("skipped: PLIMSOLL_PAYLOAD and PLIMSOLL_INCLUSION are not set");
        return;
    };
    let payload = load(Path::new(&payload), &TemplateContext::default()).unwrap();
    let table = std::fs::read_to_string(table).unwrap();
    let mut rows = table.lines().map(|line| line.split('\t').collect::<Vec<_>>());
    let header = rows.next().unwrap();
    let pairs = &header[6..header.len() - 1];
    let rows: BTreeMap<(&str, usize), Vec<&str>> =
        rows.map(|row| ((row[0], row[1].parse().unwrap()), row)).collect();
    let files: BTreeSet<&str> = rows.keys().map(|(file, _)| *file).collect();

    let context = |pair: &&str| {
        let (profile, feature_set) = pair.split_once('/').unwrap();
        payload.context(profile, feature_set)
    };
    let contexts: Vec<_> = pairs.iter().map(context).collect();
    let mut compared = 0;
    let mut wrong = Vec::new();
    let manifests: Vec<_> =
        payload.manifests.iter().filter(|manifest| files.contains(&*manifest.file)).collect();
    assert_eq!(manifests.len(), rows.len(), "documents in the payload and rows in the table");
    for manifest in manifests {
        let row = &rows[&(&*manifest.file, manifest.document)];
        let key = &manifest.key;
        assert_eq!(row[2..6], [&*key.group, &*key.kind, &*key.namespace, &*key.name]);
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
            compared += 1;
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
    println!("compared {compared} decisions");
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}
