//! What the state is, for people: its source, and the catalogs with their digests and ages.

use super::LoadoutState;
use crate::commands::operator::catalogs::short_digest;
use crate::process::now;
use crate::render::age::age;

impl LoadoutState {
    /// Returns lines that identify the state: its source, and a line for each catalog with its digest
    /// and age. Digests are shortened unless all columns are wanted.
    pub(crate) fn header(&self, is_wide: bool) -> String {
        let version = self.facts.kubernetes.as_ref();
        let version = version.map(|it| format!("; Kubernetes {it}")).unwrap_or_default();
        let mut lines = vec![format!("state: {}{version}", self.source)];
        let digest = |digest: &str| match is_wide {
            true => digest.to_owned(),
            false => short_digest(digest).to_owned(),
        };
        for it in &self.catalogs.opened {
            let age = it.since.map(|since| format!(" ({} old)", age(since, now())));
            let age = age.unwrap_or_default();
            lines.push(format!("catalog: {} {}{age}", it.name, digest(&it.digest)));
        }
        for it in &self.snapshot.catalogs {
            lines.push(format!("catalog: {} {}", it.part.name, digest(&it.digest)));
        }
        lines.join("\n")
    }

    /// Prints the header of the state, and the notes about its catalogs.
    pub(crate) fn announce(&self, is_wide: bool) {
        anstream::eprintln!("{}", self.header(is_wide));
        self.print_notes();
    }

    /// Prints the notes about the catalogs, such as those that are left out.
    pub(crate) fn print_notes(&self) {
        self.catalogs.notes().iter().for_each(|note| anstream::eprintln!("note: {note}"));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::PathBuf;

    use plimsoll_operators::snapshot::{LoadoutSnapshot, SnapshotCatalog};
    use plimsoll_resolve::{CatalogName, CatalogPart, ClusterFacts};

    use super::super::StateSource;
    use super::*;
    use crate::commands::operator::catalogs::OpenedCatalogs;
    use crate::commands::operator::unreadable::UnreadableObjects;

    #[test]
    fn each_catalog_has_a_line_that_fits_a_terminal() {
        let catalog = |name: &str, digit: &str| SnapshotCatalog {
            digest: format!("sha256:{}", digit.repeat(64)),
            images: BTreeMap::new(),
            digests: BTreeMap::new(),
            part: CatalogPart {
                name: CatalogName { namespace: String::new(), name: name.to_owned() },
                weight: 0,
                packages: Vec::new(),
            },
        };
        let facts = ClusterFacts {
            kubernetes: Some(semver::Version::new(1, 33, 2)),
            ..ClusterFacts::default()
        };
        let catalogs = vec![catalog("main", "0"), catalog("other", "a")];
        let state = LoadoutState {
            source: StateSource::Snapshot(PathBuf::from("state.json")),
            catalogs: OpenedCatalogs::default(),
            facts: facts.clone(),
            in_cluster: BTreeMap::new(),
            unreadable: UnreadableObjects::default(),
            revisions: Vec::new(),
            snapshot: LoadoutSnapshot::new(facts, BTreeMap::new(), catalogs, BTreeMap::new()),
        };
        let lines = "state: state.json; Kubernetes 1.33.2\n\
                     catalog: main sha256:000000000000\ncatalog: other sha256:aaaaaaaaaaaa";
        assert_eq!(state.header(false), lines);
        assert!(state.header(true).ends_with(&format!("catalog: other sha256:{}", "a".repeat(64))));
    }
}
