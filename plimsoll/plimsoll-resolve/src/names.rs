//! Names by what they have to do with.

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};

/// For each key the names that it was noted with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameIndex<K>(BTreeMap<K, BTreeSet<String>>);

impl<K> Default for NameIndex<K> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Ord> NameIndex<K> {
    /// Notes a name with a key.
    pub fn insert<Q>(&mut self, key: &Q, name: &str)
    where
        K: Borrow<Q>,
        Q: ToOwned<Owned = K> + Ord + ?Sized,
    {
        if let Some(names) = self.0.get_mut(key) {
            names.insert(name.to_owned());
        } else {
            self.0.insert(key.to_owned(), BTreeSet::from([name.to_owned()]));
        }
    }

    /// Forgets a name with a key.
    pub fn remove<Q>(&mut self, key: &Q, name: &str)
    where
        K: Borrow<Q>,
        Q: Ord + ?Sized,
    {
        if let Some(names) = self.0.get_mut(key) {
            names.remove(name);
            if names.is_empty() {
                self.0.remove(key);
            }
        }
    }

    /// The names with a key, in order.
    pub fn names<Q>(&self, key: &Q) -> impl Iterator<Item = &str> + use<'_, K, Q>
    where
        K: Borrow<Q>,
        Q: Ord + ?Sized,
    {
        self.0.get(key).into_iter().flatten().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::NameIndex;

    #[test]
    fn a_name_is_found_by_every_key_until_it_is_removed() {
        let mut index = NameIndex::<String>::default();
        for (key, name) in [("a", "one"), ("a", "two"), ("b", "one")] {
            index.insert(key, name);
        }
        index.remove("a", "one");
        index.remove("c", "one");
        assert_eq!(index.names("a").collect::<Vec<_>>(), ["two"]);
        assert_eq!(index.names("b").collect::<Vec<_>>(), ["one"]);
        index.remove("a", "two");
        index.remove("b", "one");
        assert_eq!(index, NameIndex::default());
    }
}
