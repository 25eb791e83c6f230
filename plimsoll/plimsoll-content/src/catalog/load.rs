//! From the bytes of a catalog's files to its index.

mod file;

use std::collections::BTreeMap;

use super::assemble;
use super::defect::DefectCode;
use super::document::Document;
use super::index::{CatalogIndex, Writer};
use super::pending::{
    self, DocumentPosition, Pending, PendingBundle, PendingContent, PendingFacts, PendingPackage,
};
use super::record::Text;
use super::wanted::WantedBundle;
use crate::diagnostic::Diagnostic;

pub use file::{DOCUMENT_SIZE_MAX, FileLoader};

/// Most bytes that are kept of a catalog while it is read. 500,000 bundles take some 200 MB.
const KEPT_MAX: usize = 1 << 30;
/// Longest name of a package, a channel or a bundle, in bytes: that of an object of Kubernetes.
const NAME_SIZE_MAX: usize = 253;
/// Most defects that are reported; a catalog that is no catalog has one in every line.
pub const DEFECTS_MAX: usize = 10_000;

/// Reads a catalog, file by file, in any order.
#[derive(Debug, Default)]
pub struct CatalogLoader {
    pub(super) files: Vec<String>,
    pub(super) defects: Vec<Diagnostic>,
    packages: BTreeMap<String, u32>,
    /// For each package where its documents lie in `kept`.
    documents: Vec<Vec<(usize, usize)>>,
    kept: Vec<u8>,
    /// The package of the document before.
    last: Option<(String, u32)>,
    /// Where the facts of the bundle before lie in `kept`.
    last_facts: (usize, usize),
    is_full: bool,
    /// The one bundle that is looked for; then nothing else is kept.
    wanted: Option<WantedBundle>,
}

/// A catalog that was read, defects and all.
#[derive(Debug)]
pub struct LoadedCatalog {
    /// The bytes of its index; see [`CatalogIndex::open`].
    pub index: Vec<u8>,
    /// Everything that is wrong with it, in the order of files and lines.
    pub defects: Vec<Diagnostic>,
}

impl LoadedCatalog {
    /// Opens the index.
    pub fn open(self) -> CatalogIndex {
        CatalogIndex::open(self.index).expect("what was just written can be opened")
    }
}

impl CatalogLoader {
    /// A loader that has read nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// A loader that looks for one bundle only.
    pub(super) fn searching(wanted: WantedBundle) -> Self {
        Self { wanted: Some(wanted), ..Self::default() }
    }

    /// What is looked for.
    pub(super) fn wanted(&self) -> Option<&WantedBundle> {
        self.wanted.as_ref()
    }

    /// What was looked for.
    pub(super) fn into_wanted(self) -> Option<WantedBundle> {
        self.wanted
    }

    /// Begins a file; its name is what defects are reported with.
    pub fn file(&mut self, name: &str) -> FileLoader<'_> {
        self.files.push(name.to_owned());
        let number = u32::try_from(self.files.len() - 1).unwrap_or(u32::MAX);
        FileLoader::new(self, number, 1)
    }

    /// Reads a whole file.
    pub fn read_file(&mut self, name: &str, bytes: &[u8]) {
        let mut file = self.file(name);
        file.push(bytes);
        file.finish();
    }

    /// Reads a document that was made of what stands on a line of a file.
    pub(crate) fn read_document(&mut self, file: &str, line: usize, document: &str) {
        if self.files.last().is_none_or(|last| last != file) {
            self.files.push(file.to_owned());
        }
        let number = u32::try_from(self.files.len() - 1).unwrap_or(u32::MAX);
        let mut loader = FileLoader::new(self, number, line);
        loader.push(document.as_bytes());
        loader.finish();
    }

    /// Reports something that keeps a file or a directory from being read.
    pub fn unreadable(&mut self, file: &str, message: &str) {
        self.push_defect(DefectCode::Syntax.diagnostic(file, message));
    }

    /// Takes defects over that were found before.
    pub fn report(&mut self, defects: impl IntoIterator<Item = Diagnostic>) {
        defects.into_iter().for_each(|defect| self.push_defect(defect));
    }

    /// Puts together what was read.
    pub fn finish(mut self) -> LoadedCatalog {
        let mut writer = Writer::new();
        for (name, number) in &self.packages {
            let places = &self.documents[*number as usize];
            let documents = places.iter().map(|(from, to)| {
                postcard::from_bytes::<Pending<'_>>(&self.kept[*from..*to])
                    .expect("what was written can be read back")
            });
            let mut package = assemble::package(name, documents.collect(), &self.files, &self.kept);
            package.defects.iter_mut().for_each(Diagnostic::shorten);
            package.defects.sort();
            self.defects.extend(package.defects.iter().cloned());
            writer.add(&package);
        }
        self.kept = Vec::new();
        self.defects.sort();
        self.defects.dedup();
        self.defects.truncate(DEFECTS_MAX);
        LoadedCatalog { index: writer.finish(&self.defects), defects: self.defects }
    }

    fn push_defect(&mut self, mut defect: Diagnostic) {
        defect.shorten();
        if self.defects.len() < DEFECTS_MAX {
            self.defects.push(defect);
        }
    }

    pub(super) fn defect(
        &mut self,
        place: DocumentPosition,
        package: &str,
        code: DefectCode,
        message: impl Into<String>,
    ) {
        let defect = place.diagnostic(&self.files, code, message);
        self.push_defect(Diagnostic { package: package.to_owned(), ..defect });
    }

    /// Takes a document.
    pub(super) fn document(&mut self, mut document: Document<'_>, place: DocumentPosition) {
        if let Some(wanted) = &mut self.wanted {
            return wanted.document(document);
        }
        let schema = document.schema.take().unwrap_or_default();
        let is_package = &*schema == "olm.package";
        let name = document.name.take().unwrap_or_default();
        let package = document.package.take().unwrap_or_default();
        let package = if is_package { name.borrowed() } else { package.borrowed() };
        let needs_name = !matches!(&*schema, "olm.deprecations");
        match &*schema {
            "olm.package" | "olm.channel" | "olm.bundle" | "olm.deprecations" => {}
            "" => return self.defect(place, "", DefectCode::NoSchema, "no field `schema`"),
            _ => return,
        }
        if package.is_empty() {
            let field = if is_package { "name" } else { "package" };
            let text = format!("{schema} without the field `{field}`");
            return self.defect(place, "", DefectCode::NoName, text);
        }
        if needs_name && name.is_empty() {
            let text = format!("{schema} without a name");
            return self.defect(place, &package, DefectCode::NoName, text);
        }
        if let Some(size) = [name.len(), package.len()].into_iter().find(|it| *it > NAME_SIZE_MAX) {
            let text =
                format!("{schema} with a name of {size} bytes, at most {NAME_SIZE_MAX} are read");
            return self.defect(place, "", DefectCode::TooLarge, text);
        }
        let content = match &*schema {
            "olm.package" => PendingContent::Package(PendingPackage {
                default_channel: document.default_channel.unwrap_or_default(),
                description: document.description.unwrap_or_default(),
            }),
            "olm.channel" => PendingContent::Channel(pending::channel(document, name.borrowed())),
            "olm.bundle" => {
                let (bundle, facts) = pending::bundle(document, name.borrowed(), &package);
                return self.keep_bundle(&package, place, bundle, &facts);
            }
            _ => PendingContent::Deprecations(pending::deprecations(document)),
        };
        self.keep(&package, &Pending { place, content });
    }

    /// Remembers that a document of a package could not be read, and which bundle it was about.
    pub(super) fn lost(
        &mut self,
        schema: &str,
        name: Text<'_>,
        package: &str,
        place: DocumentPosition,
        message: &str,
    ) {
        if let Some(wanted) = &mut self.wanted {
            return wanted.lost(schema, package, &name, message);
        }
        self.defect(place, package, DefectCode::Syntax, message);
        if package.is_empty() {
            return;
        }
        if schema == "olm.bundle" && !name.is_empty() {
            let (mut bundle, facts) = pending::bundle(Document::default(), name, package);
            bundle.problems.clear();
            bundle.bundle.invalid = Some(Text::from(message.to_owned()));
            return self.keep_bundle(package, place, bundle, &facts);
        }
        self.keep(package, &Pending { place, content: PendingContent::Lost });
    }

    fn keep_bundle(
        &mut self,
        package: &str,
        place: DocumentPosition,
        mut bundle: PendingBundle<'_>,
        facts: &PendingFacts<'_>,
    ) {
        let from = self.kept.len();
        self.append(facts);
        let (known_from, known_to) = self.last_facts;
        if self.kept[known_from..known_to] == self.kept[from..] {
            self.kept.truncate(from);
        } else {
            self.last_facts = (from, self.kept.len());
        }
        bundle.facts = self.last_facts;
        self.keep(package, &Pending { place, content: PendingContent::Bundle(bundle) });
    }

    fn append<T: serde::Serialize>(&mut self, value: &T) {
        self.kept = postcard::to_extend(value, std::mem::take(&mut self.kept))
            .expect("values of this kind can always be written");
    }

    fn keep(&mut self, package: &str, pending: &Pending<'_>) {
        if self.kept.len() > KEPT_MAX {
            if !std::mem::replace(&mut self.is_full, true) {
                let text = "the catalog is too large: the rest of it is left out";
                self.defect(pending.place, "", DefectCode::TooLarge, text);
            }
            return;
        }
        let number = self.number(package);
        let from = self.kept.len();
        self.append(pending);
        self.documents[number as usize].push((from, self.kept.len()));
    }

    fn number(&mut self, package: &str) -> u32 {
        if let Some((last, number)) = &self.last
            && last == package
        {
            return *number;
        }
        let number = match self.packages.get(package) {
            Some(number) => *number,
            None => {
                let number = u32::try_from(self.documents.len()).unwrap_or(u32::MAX);
                self.packages.insert(package.to_owned(), number);
                self.documents.push(Vec::new());
                number
            }
        };
        self.last = Some((package.to_owned(), number));
        number
    }
}
