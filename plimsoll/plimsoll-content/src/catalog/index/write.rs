//! Writing an index, package by package.

use std::collections::{BTreeMap, BTreeSet};

use super::header::{HEADER_SIZE, Header};
use super::{CatalogCounts, IndexSection, api_key, checksum, directory};
use crate::catalog::model::IndexedPackage;
use crate::diagnostic::Diagnostic;

/// An index that is being written.
pub(in crate::catalog) struct Writer {
    bytes: Vec<u8>,
    counts: CatalogCounts,
    packages: BTreeMap<String, Vec<u8>>,
    apis: BTreeMap<String, Vec<u8>>,
    labels: BTreeMap<String, Vec<u8>>,
}

impl Writer {
    /// An index without packages.
    pub(in crate::catalog) fn new() -> Self {
        Self {
            bytes: vec![0; HEADER_SIZE],
            counts: CatalogCounts::default(),
            packages: BTreeMap::new(),
            apis: BTreeMap::new(),
            labels: BTreeMap::new(),
        }
    }

    /// Adds a package; they come in the order of their names.
    pub(in crate::catalog) fn add(&mut self, package: &IndexedPackage<'_>) {
        let count = |number: usize| number as u64;
        let number = u32::try_from(self.packages.len()).expect("a catalog has few packages");
        let number = number.to_le_bytes();
        self.counts.packages += 1;
        self.counts.channels += count(package.channels.len());
        self.counts.entries +=
            package.channels.iter().map(|it| count(it.entries.len())).sum::<u64>();
        self.counts.bundles += count(package.bundles.len());
        self.counts.invalid += u64::from(package.invalid);
        let provided: BTreeSet<u32> =
            package.bundles.iter().flat_map(|it| it.provided.iter().copied()).collect();
        for api in provided.iter().filter_map(|index| package.apis.get(*index as usize)) {
            let key = api_key(&api.group, &api.version, &api.kind);
            self.apis.entry(key).or_default().extend_from_slice(&number);
        }
        let labels: BTreeSet<&str> =
            package.bundles.iter().flat_map(|it| &it.labels).map(|label| &**label).collect();
        for label in labels {
            self.labels.entry(label.to_owned()).or_default().extend_from_slice(&number);
        }
        let offset = self.bytes.len();
        self.bytes = postcard::to_extend(package, std::mem::take(&mut self.bytes))
            .expect("values of this kind can always be written");
        let part = self.part(offset);
        self.packages.insert(package.name.to_string(), part.bytes().to_vec());
    }

    /// What was written since an offset.
    fn part(&self, offset: usize) -> IndexSection {
        let written = &self.bytes[offset..];
        let (offset, length) = (offset as u64, written.len() as u64);
        IndexSection { offset, length, checksum: checksum(written) }
    }

    /// The bytes of the index.
    pub(in crate::catalog) fn finish(mut self, defects: &[Diagnostic]) -> Vec<u8> {
        let offset = self.bytes.len();
        for entries in [&self.packages, &self.apis, &self.labels] {
            directory::write(entries, &mut self.bytes).expect("names take less than 4 GiB");
        }
        let directories = self.part(offset);
        let offset = self.bytes.len();
        self.bytes = postcard::to_extend(defects, std::mem::take(&mut self.bytes))
            .expect("values of this kind can always be written");
        let defects = self.part(offset);
        let size = self.bytes.len() as u64;
        let header = Header { size, counts: self.counts, directories, defects };
        self.bytes[..HEADER_SIZE].copy_from_slice(&header.bytes());
        self.bytes
    }
}
