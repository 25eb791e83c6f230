//! Packages of Operators that no catalog has.

use std::collections::BTreeMap;

use plimsoll_operators::loadout::Loadout;
use plimsoll_resolve::CatalogPart;

use super::loadout::LoadoutState;

impl LoadoutState {
    /// Returns what is said of the packages of Operators that no catalog has, by name, with the names that may be
    /// meant. `parts` are the catalogs with the packages that can be reached from the Operators.
    pub(super) fn unknown(
        &self,
        loadout: &Loadout,
        parts: &[CatalogPart],
    ) -> BTreeMap<String, String> {
        let is_unknown = |name: &String| parts.iter().all(|it| it.package(name).is_none());
        let unknown = self.all_names(loadout).filter(is_unknown).filter_map(|name| {
            let sentence = self.require_package(&name).err()?.to_string();
            Some((name, sentence))
        });
        unknown.collect()
    }
}
