//! Each package of a catalog, installed into an empty cluster as upstream installs it.

use std::collections::BTreeSet;
use std::path::Path;

use plimsoll_content::catalog::IndexedCatalog;
use plimsoll_content::expressions::Cel;
use plimsoll_resolve::{CatalogSource, PackageRequest, Query, Resolution, collect_problem, solve};
use plimsoll_source::catalog::open;
use serde::Deserialize;

use super::{committed, full_data, read_json};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FreshInstall {
    package: String,
    #[serde(default)]
    install: BTreeSet<String>,
    distinct_answers: usize,
}

#[test]
fn packages_install_as_upstream_installs_them() {
    check(&committed("fresh-installs.json"), &committed("catalogs/workshop.fbc.json"));
}

#[test]
fn packages_of_a_full_catalog_install_as_upstream_installs_them() {
    let variables = ["PLIMSOLL_FRESH_INSTALLS", "PLIMSOLL_CATALOG"];
    let Some([expected, catalog]) = full_data(variables) else { return };
    check(&expected, &catalog);
}

fn check(expected: &Path, catalog: &Path) {
    let expected: Vec<FreshInstall> = read_json(expected);
    let index = open(catalog, None, &mut |_| {}).expect("the catalog");
    let offer = IndexedCatalog::new(&index);
    let mut wrong = Vec::new();
    for install in &expected {
        let query = Query {
            requests: vec![PackageRequest {
                package: install.package.clone(),
                ..PackageRequest::default()
            }],
            ..Query::default()
        };
        let source = CatalogSource { name: "cat", namespace: "olm", weight: 0, catalog: &offer };
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
