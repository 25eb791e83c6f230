//! What the author of a payload should change: every defect, with its location.
//!
//! Errors keep the payload from being loaded, or a document from doing what it is meant to do;
//! warnings are worth a look. Manifests are judged as they stand in the payload, whatever cluster
//! they are for.

mod capabilities;
mod changes;
mod cluster_operators;
mod doubts;
mod duplicates;
mod objects;
mod refused;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::authoring::Origin;
use crate::capability::is_declaration;
use crate::diagnostic::{Diagnostic, FindingCode, Severity};
use crate::kinds::Kinds;
use crate::location::FileLocation;
use crate::payload::{Directory, PayloadError, SourceFile, TemplateContext, parse_partly};
use crate::position::Position;
use crate::{Manifest, annotations, yaml};

pub use cluster_operators::related_objects;

use refused::CustomKinds;

/// Everything there is to say about the files of a payload, in their order.
pub fn lint(files: &[SourceFile], context: &TemplateContext) -> Vec<Diagnostic> {
    lint_built(files, &BTreeMap::new(), context)
}

/// Everything there is to say about the files of a payload that was built, at its places in the
/// source: `origins` has where the objects of files come from, by the names of the files.
pub fn lint_built(
    files: &[SourceFile],
    origins: &BTreeMap<String, Origin>,
    context: &TemplateContext,
) -> Vec<Diagnostic> {
    lint_included(files, origins, context, &|_| None)
}

/// Does the same as [`lint_built`] for a cluster that does not include some of the documents: `left_out` returns
/// the reason, and `None` for those that it includes. Errors in the others are warnings.
pub fn lint_included(
    files: &[SourceFile],
    origins: &BTreeMap<String, Origin>,
    context: &TemplateContext,
    left_out: &dyn Fn(&Manifest) -> Option<String>,
) -> Vec<Diagnostic> {
    let (payload, errors) = parse_partly(files, context);
    let directories = directories(files);
    let mut report = FindingCollector { directories, left_out, findings: Vec::new() };
    let known = errors.iter().map(PayloadError::diagnostic).chain(payload.warnings.iter().cloned());
    let known = known.chain(files.iter().filter_map(file_name));
    report.findings.extend(known.map(Located::from));

    let kinds = Kinds::of(&payload.manifests);
    let custom_kinds = CustomKinds::of(&payload.manifests);
    // What is wrong with declarations has been said by loading them.
    let applied = payload.manifests.iter().filter(|manifest| !is_declaration(manifest));
    for manifest in applied {
        let object = manifest.written();
        // What is an error about annotations has been said by loading it.
        let doubts = annotations::defects(manifest, &object).into_iter();
        for doubt in doubts.filter(|it| it.code.severity() == Severity::Warning) {
            report.add(manifest, &doubt.field, doubt.code, doubt.message);
        }
        // A document that no cluster includes may hold what it likes.
        if manifest.may_be_included() {
            objects::check(manifest, &object, &kinds, &mut report);
            refused::check(manifest, &object, &custom_kinds, &mut report);
            doubts::check(manifest, &object, &mut report);
        }
    }
    doubts::namespaces(&payload.manifests, &kinds, &mut report);
    capabilities::check(&payload, &mut report);
    cluster_operators::check(&payload.manifests, &mut report);
    duplicates::check(&payload.manifests, &mut report);
    report.finish(files, origins)
}

/// Returns what keeps a cluster at an earlier payload from getting the objects of another one, whose objects
/// come from `origins` as in [`lint_built`].
pub fn lint_update(
    earlier: &[SourceFile],
    files: &[SourceFile],
    origins: &BTreeMap<String, Origin>,
    context: &TemplateContext,
) -> Vec<Diagnostic> {
    // What is wrong with each of them is said by linting it.
    let [(before, _), (after, _)] = [earlier, files].map(|it| parse_partly(it, context));
    let left_out = |_: &Manifest| None::<String>;
    let directories = directories(files);
    let mut report = FindingCollector { directories, left_out: &left_out, findings: Vec::new() };
    changes::check(&before.manifests, &after.manifests, &mut report);
    report.finish(files, origins)
}

/// In which directories there are manifest files of a name; a manifest does not know its own.
type Directories<'a> = BTreeMap<&'a str, Vec<Directory>>;

fn directories(files: &[SourceFile]) -> Directories<'_> {
    let mut directories = Directories::new();
    for file in files.iter().filter(|file| file.holds_manifests()) {
        directories.entry(file.name.as_str()).or_default().push(file.directory);
    }
    directories
}

fn file_name(file: &SourceFile) -> Option<Diagnostic> {
    if !file.holds_manifests() || Position::of(&file.name).is_some() {
        return None;
    }
    let message = "the name does not begin with `0000_<run level>_<component>_`: its manifests have no place in the order";
    Some(file.location().diagnostic(FindingCode::FileName, message))
}

/// The findings so far, and what is needed to say where something is.
struct FindingCollector<'a> {
    directories: Directories<'a>,
    /// Why the cluster does not include a document; `None` if it does.
    left_out: &'a dyn Fn(&Manifest) -> Option<String>,
    findings: Vec<Located>,
}

/// A diagnostic and the path of the field that it is about.
struct Located {
    diagnostic: Diagnostic,
    field: String,
    /// Whether it names the column of the field.
    has_column: bool,
}

impl From<Diagnostic> for Located {
    fn from(diagnostic: Diagnostic) -> Self {
        Self { diagnostic, field: String::new(), has_column: false }
    }
}

impl FindingCollector<'_> {
    /// Adds a finding about a field of a manifest, named by its path such as `spec.a[0].b`.
    fn add(
        &mut self,
        manifest: &Manifest,
        field: &str,
        code: FindingCode,
        message: impl Into<String>,
    ) {
        let diagnostic = self.diagnostic(manifest, code, message.into());
        self.findings.push(Located { field: field.to_owned(), ..Located::from(diagnostic) });
    }

    /// Adds a finding about a field with its column, and with what helps.
    fn add_located(
        &mut self,
        manifest: &Manifest,
        field: &str,
        code: FindingCode,
        message: String,
        help: Option<String>,
    ) {
        let mut diagnostic = Diagnostic { help, ..self.diagnostic(manifest, code, message) };
        diagnostic.shorten();
        self.findings.push(Located { diagnostic, field: field.to_owned(), has_column: true });
    }

    fn diagnostic(&self, manifest: &Manifest, code: FindingCode, message: String) -> Diagnostic {
        let directories = self.directories.get(&*manifest.file);
        let directory = directories.and_then(|directories| directories.last().copied());
        let location = FileLocation {
            directory: directory.unwrap_or(Directory::ReleaseManifests),
            file: Arc::clone(&manifest.file),
            document: Some(manifest.document),
            line: None,
        };
        let mut diagnostic = location.diagnostic(code, message);
        if diagnostic.severity == Severity::Error
            && let Some(reason) = (self.left_out)(manifest)
        {
            diagnostic.severity = Severity::Warning;
            diagnostic.message = format!(
                "{}; the cluster does not include the document: {reason}",
                diagnostic.message
            );
        }
        diagnostic
    }

    /// The findings with their lines, in order.
    fn finish(
        mut self,
        files: &[SourceFile],
        origins: &BTreeMap<String, Origin>,
    ) -> Vec<Diagnostic> {
        let files: BTreeMap<String, &SourceFile> =
            files.iter().rev().map(|file| (file.path(), file)).collect();
        let mut lines: BTreeMap<String, Vec<yaml::Lines>> = BTreeMap::new();
        for Located { diagnostic, field, has_column } in &mut self.findings {
            let name = diagnostic.file.rsplit('/').next().unwrap_or_default();
            if let Some(origin) = origins.get(name) {
                relocate(diagnostic, origin, field, *has_column);
                continue;
            }
            let (None, Some(document)) = (diagnostic.line, diagnostic.document) else { continue };
            let documents = lines.entry(diagnostic.file.clone()).or_insert_with(|| {
                let file = files.get(&diagnostic.file);
                let text = file.and_then(|file| std::str::from_utf8(&file.bytes).ok());
                text.map(yaml::lines).unwrap_or_default()
            });
            let position = documents.get(document).map(|lines| lines.position(field));
            diagnostic.line = position.map(|(line, _)| line);
            diagnostic.column = position.map(|(_, column)| column).filter(|_| *has_column);
        }
        let mut found: Vec<Diagnostic> =
            self.findings.into_iter().map(|it| it.diagnostic).collect();
        found.sort();
        found.dedup();
        found
    }
}

/// Gives a diagnostic of a built file its place in the source.
fn relocate(diagnostic: &mut Diagnostic, origin: &Origin, field: &str, has_column: bool) {
    let position = origin.position(field);
    diagnostic.file.clone_from(&origin.path);
    diagnostic.document = None;
    diagnostic.line = position.map_or(origin.line, |(line, _)| Some(line));
    diagnostic.column = position.map(|(_, column)| column).filter(|_| has_column);
}

#[cfg(test)]
mod tests;
