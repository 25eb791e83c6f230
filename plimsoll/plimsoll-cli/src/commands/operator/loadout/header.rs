//! What the state is, for people: its source, and the catalogs with their digests and ages.

use super::{LoadoutState, StateSource};
use crate::commands::operator::catalogs::short_digest;
use crate::process::now;
use crate::render::age::age;

/// The maximum width of a line, in characters, if digests are shortened.
const LINE_MAX: usize = 80;

/// Returns the line of a catalog; two if it is too long for one.
fn catalog_line(name: &str, about: &str, is_wide: bool) -> String {
    let line = format!("catalog: {name} {about}");
    match is_wide || line.chars().count() <= LINE_MAX {
        true => line,
        false => format!("catalog: {name}\n  {about}"),
    }
}

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
            let about = format!("{}{age}", digest(&it.digest));
            lines.push(catalog_line(&it.name, &about, is_wide));
        }
        for it in &self.snapshot.catalogs {
            lines.push(catalog_line(&it.part.name.to_string(), &digest(&it.digest), is_wide));
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
        let notes = self.catalogs.notes().into_iter().chain(self.absent_catalogs());
        notes.for_each(|note| anstream::eprintln!("note: {note}"));
    }

    /// Returns notes about the catalogs that the cluster lacks, if its Operators are planned.
    fn absent_catalogs(&self) -> impl Iterator<Item = String> {
        let is_of_cluster = self.source == StateSource::Cluster;
        let absent = self.catalogs.opened.iter();
        let absent = absent.filter(move |it| is_of_cluster && !it.is_in_cluster);
        absent.map(|it| {
            format!(
                "the cluster has no Catalog `{}`: the controller installs nothing from it until there is one",
                it.name
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::PathBuf;

    use plimsoll_operators::snapshot::{LoadoutSnapshot, SnapshotCatalog};
    use plimsoll_resolve::{CatalogName, CatalogPart, ClusterFacts};

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
        let long = "a".repeat(60);
        let about = "sha256:000000000000 (3d old)";
        assert_eq!(catalog_line(&long, about, false), format!("catalog: {long}\n  {about}"));
        assert_eq!(catalog_line(&long, about, true), format!("catalog: {long} {about}"));
        assert!(state.header(true).ends_with(&format!("catalog: other sha256:{}", "a".repeat(64))));
    }
}
