//! Each package of a real catalog, installed into an empty cluster, as upstream does it: the file
//! named by `PLIMSOLL_FRESH_INSTALLS` against the catalog named by `PLIMSOLL_CATALOG`.

use std::collections::BTreeSet;

use plimsoll_content::expressions::Cel;
use plimsoll_resolve::{CatalogSource, PackageRequest, Query, Resolution, collect_problem, solve};
use serde::Deserialize;

use crate::memory::Memory;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FreshInstall {
    package: String,
    #[serde(default)]
    install: BTreeSet<String>,
    distinct_answers: usize,
}

#[test]
fn packages_of_a_real_catalog_install_as_upstream_installs_them() {
    let (Ok(expected), Ok(catalog)) =
        (std::env::var("PLIMSOLL_FRESH_INSTALLS"), std::env::var("PLIMSOLL_CATALOG"))
    else {
        return;
    };
    let expected = std::fs::read(expected).expect("the file of fresh installs");
    let expected: Vec<FreshInstall> = serde_json::from_slice(&expected).expect("fresh installs");
    let memory = Memory::read(&std::fs::read_to_string(catalog).expect("the catalog"));
    let mut wrong = Vec::new();
    for install in &expected {
        let query = Query {
            requests: vec![PackageRequest {
                package: install.package.clone(),
                ..PackageRequest::default()
            }],
            ..Query::default()
        };
        let source = CatalogSource { name: "cat", namespace: "olm", weight: 0, catalog: &memory };
        let problem = collect_problem(&[source], query, &Cel);
        let found: BTreeSet<String> = match solve(&problem, &Cel) {
            Resolution::Solved(solution) => solution
                .install
                .iter()
                .map(|item| format!("{}/{}/{}", item.catalog.name, item.channel, item.bundle))
                .collect(),
            Resolution::Unsatisfiable(_) | Resolution::LimitExceeded => BTreeSet::new(),
        };
        // Where upstream has several answers, one of them is on the list.
        if found != install.install && install.distinct_answers == 1 {
            wrong.push((&install.package, found, &install.install));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(!expected.is_empty());
}
