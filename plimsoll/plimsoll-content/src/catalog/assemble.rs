//! From the documents of a package to the package: what belongs together, and whether it does.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_resolve::range::blang::Range;
use semver::Version;

use super::constraint;
use super::defect::DefectCode;
use super::model::{
    ChannelError, IndexedBundle, IndexedChannel, IndexedEntry, IndexedPackage, IndexedRequirement,
    shortened,
};
use super::order::{order, stranded, without_update};
use super::pending::{
    DocumentPosition, Pending, PendingBundle, PendingChannel, PendingContent, PendingDeprecation,
    PendingPackage,
};
use super::property::check_version;
use super::record::Text;
use super::tables::Tables;
use crate::diagnostic::Diagnostic;
use crate::expressions;

/// Puts a package together.
pub(super) fn package<'a>(
    name: &'a str,
    documents: Vec<Pending<'a>>,
    files: &'a [String],
    kept: &'a [u8],
) -> IndexedPackage<'a> {
    let mut assembly = Assembly {
        place: documents.iter().map(|it| it.place).min().unwrap_or_default(),
        package: IndexedPackage { name: name.into(), ..IndexedPackage::default() },
        files,
        kept,
    };
    let mut packages = Vec::new();
    let mut channels = Vec::new();
    let mut bundles = Vec::new();
    let mut deprecations = Vec::new();
    for Pending { place, content } in documents {
        match content {
            PendingContent::Package(it) => packages.push((place, it)),
            PendingContent::Channel(it) => channels.push((place, it)),
            PendingContent::Bundle(it) => bundles.push((place, it)),
            PendingContent::Deprecations(it) => deprecations.push((place, it)),
            PendingContent::Lost => {}
        }
    }
    assembly.add_bundles(bundles);
    assembly.add_channels(channels);
    assembly.add_package(packages);
    assembly.add_deprecations(deprecations);
    assembly.package
}

struct Assembly<'a> {
    /// Where the package begins.
    place: DocumentPosition,
    package: IndexedPackage<'a>,
    files: &'a [String],
    /// Where the facts of bundles lie.
    kept: &'a [u8],
}

impl<'a> Assembly<'a> {
    fn defect(&mut self, place: DocumentPosition, code: DefectCode, message: impl Into<String>) {
        let (package, defect) =
            (self.package.name.to_string(), place.diagnostic(self.files, code, message));
        self.package.defects.push(Diagnostic { package, ..defect });
    }

    /// A defect of the package as a whole: nothing of it can be used.
    fn invalidate(
        &mut self,
        place: DocumentPosition,
        code: DefectCode,
        message: impl Into<String>,
    ) {
        self.package.invalid = true;
        self.defect(place, code, message);
    }

    fn add_package(&mut self, documents: Vec<(DocumentPosition, PendingPackage<'a>)>) {
        if !is_label(&self.package.name) {
            let text = "its name is not a DNS label: letters of a-z, digits and `-`, at most 63";
            self.invalidate(self.place, DefectCode::PackageName, text);
        }
        for (place, _) in documents.iter().skip(1) {
            let text = "the package has more than one olm.package document";
            self.invalidate(*place, DefectCode::Duplicate, text);
        }
        let Some((place, package)) = documents.into_iter().next() else {
            let text = "it has no olm.package document";
            return self.invalidate(self.place, DefectCode::NoPackage, text);
        };
        self.package.description = package.description;
        self.package.default_channel = package.default_channel;
        if self.package.channels.is_empty() {
            return self.invalidate(place, DefectCode::NoChannels, "it has no channels");
        }
        let default = self.package.default_channel.clone();
        if default.is_empty() {
            self.invalidate(place, DefectCode::DefaultChannel, "it has no default channel");
        } else if self.package.channel(&default).is_none() {
            let names: Vec<&str> = self.package.channels.iter().map(|it| &*it.name).collect();
            let names = names.join(", ");
            let text = format!("its default channel {default} does not exist; it has {names}");
            self.invalidate(place, DefectCode::DefaultChannel, text);
        }
    }

    /// Adds the bundles, the highest version first.
    fn add_bundles(&mut self, documents: Vec<(DocumentPosition, PendingBundle<'a>)>) {
        let mut bundles: Vec<(Option<Version>, DocumentPosition, PendingBundle<'a>)> = documents
            .into_iter()
            .map(|(place, it)| (check_version(&it.bundle.version).ok(), place, it))
            .collect();
        bundles.sort_by(|(a, place_a, one), (b, place_b, other)| {
            let versions = match (a, b) {
                (Some(a), Some(b)) => b.cmp_precedence(a),
                _ => b.is_some().cmp(&a.is_some()),
            };
            let (one, other) = (&one.bundle, &other.bundle);
            versions
                .then_with(|| other.release.cmp(&one.release))
                .then_with(|| one.name.cmp(&other.name))
                .then_with(|| place_a.cmp(place_b))
        });
        let mut same: Option<(&Version, &PendingBundle<'a>)> = None;
        let mut repeated = Vec::new();
        for (version, place, bundle) in &bundles {
            if let (Some(version), Some((before, other))) = (version, same)
                && version.cmp_precedence(before).is_eq()
                && version.build == before.build
                && bundle.bundle.release == other.bundle.release
                && bundle.bundle.name != other.bundle.name
            {
                let (name, other) = (&bundle.bundle.name, &other.bundle.name);
                repeated.push((*place, format!("bundles {other} and {name} are both {version}")));
            }
            same = version.as_ref().map(|version| (version, bundle));
        }
        for (place, text) in repeated {
            self.defect(place, DefectCode::SameVersion, text);
        }
        let mut names = BTreeSet::new();
        let mut tables = Tables::new(self.kept);
        for (_, place, pending) in bundles {
            let name = pending.bundle.name.clone();
            for (code, message) in &pending.problems {
                self.defect(place, *code, format!("bundle {name}: {message}"));
            }
            if names.contains(&name) {
                let text = format!("there is more than one bundle {name}");
                let first = self.package.bundles.iter_mut().find(|it| it.name == name);
                if let Some(first) = first {
                    first.invalid = Some(Text::from(text.clone()));
                }
                self.defect(place, DefectCode::Duplicate, text);
                continue;
            }
            names.insert(name);
            self.package.bundles.push(tables.add(pending));
        }
        tables.give_to(&mut self.package);
        self.compile_rules();
    }

    /// Compiles the expressions of requirements, each once for all bundles: one that does not compile
    /// makes the bundles that have it invalid.
    fn compile_rules(&mut self) {
        let mut broken: BTreeMap<u32, String> = BTreeMap::new();
        for (number, requirement) in (0..).zip(&self.package.requirements) {
            let IndexedRequirement::Constraint(constraint) = requirement else { continue };
            let mut rules = Vec::new();
            constraint::rules(constraint, &mut rules);
            let cause = rules.into_iter().find_map(|rule| expressions::compile(rule).err());
            broken.extend(cause.map(|cause| (number, cause)));
        }
        let mut found = Vec::new();
        for bundle in &mut self.package.bundles {
            for cause in bundle.required.iter().filter_map(|number| broken.get(number)) {
                let text = format!("olm.constraint: the CEL rule does not compile: {cause}");
                found.push(format!("bundle {}: {text}", bundle.name));
                bundle.invalid.get_or_insert_with(|| Text::from(text));
            }
        }
        for text in found {
            self.defect(self.place, DefectCode::Dependency, text);
        }
    }

    fn add_channels(&mut self, documents: Vec<(DocumentPosition, PendingChannel<'a>)>) {
        let bundles: BTreeMap<String, u32> =
            (0..).zip(&self.package.bundles).map(|(at, it)| (it.name.to_string(), at)).collect();
        let mut listed = vec![false; self.package.bundles.len()];
        let mut channels: BTreeMap<String, IndexedChannel<'a>> = BTreeMap::new();
        for (place, pending) in documents {
            let name = pending.name.to_string();
            if let Some(first) = channels.get_mut(&name) {
                first.order = Err(ChannelError::Twice(name.clone()));
                let text = format!("there is more than one channel {name}");
                self.defect(place, DefectCode::Duplicate, text);
                continue;
            }
            let channel = self.channel(place, pending, &bundles, &mut listed);
            channels.insert(name, channel);
        }
        self.package.channels = channels.into_values().collect();
        for index in (0..listed.len()).filter(|index| !listed[*index]).collect::<Vec<_>>() {
            let text = format!("bundle {} is in no channel", self.package.bundles[index].name);
            self.defect(self.place, DefectCode::NoChannel, text);
        }
    }

    fn channel(
        &mut self,
        place: DocumentPosition,
        pending: PendingChannel<'a>,
        bundles: &BTreeMap<String, u32>,
        listed: &mut [bool],
    ) -> IndexedChannel<'a> {
        let PendingChannel { name, mut entries, nameless } = pending;
        if nameless > 0 {
            let text = format!("channel {name}: {nameless} entries without a name");
            self.defect(place, DefectCode::NoName, text);
        }
        for entry in &mut entries {
            entry.bundle = bundles.get(&*entry.name).copied();
            match entry.bundle {
                Some(bundle) => listed[bundle as usize] = true,
                None => {
                    let text = format!("channel {name}: there is no bundle {}", entry.name);
                    self.defect(place, DefectCode::NoBundle, text);
                }
            }
            let Some(range) = &entry.skip_range else { continue };
            if let Err(error) = Range::parse(range) {
                let text = format!("channel {name}, entry {}: skipRange: {error}", entry.name);
                self.defect(place, DefectCode::SkipRange, text);
                entry.skip_range = None;
            } else if let Some(surprise) = Range::misreading(range) {
                let entry = &entry.name;
                let text = format!("channel {name}, entry {entry}: skipRange {range}: {surprise}");
                self.defect(place, DefectCode::MisleadingRange, text);
            }
        }
        let order = order(&entries);
        match &order {
            Err(error) => {
                self.defect(place, DefectCode::ChannelOrder, format!("channel {name}: {error}"));
            }
            Ok(order) => self.unreached(place, &name, &entries, order),
        }
        IndexedChannel { name, entries, order, deprecated: None }
    }

    /// Reports entries of a channel that updates do not lead to, or do not lead on from.
    fn unreached(
        &mut self,
        place: DocumentPosition,
        channel: &str,
        entries: &[IndexedEntry<'a>],
        order: &[u32],
    ) {
        let stranded = stranded(entries, order);
        if !stranded.is_empty() {
            let names = shortened(&stranded);
            let text = format!("channel {channel}: the head does not lead to {names}");
            self.defect(place, DefectCode::Stranded, text);
        }
        let bundles = &self.package.bundles;
        let without = without_update(entries, order, &|entry| {
            let bundle = bundles.get(entry.bundle? as usize)?;
            check_version(&bundle.version).ok()
        });
        if !without.is_empty() {
            let names = shortened(&without);
            let text = format!(
                "channel {channel}: no update leads on from {names}: what replaces or skips them is skipped \
                 itself; a later entry must skip them as well, in `skips` or `skipRange`"
            );
            self.defect(place, DefectCode::NoUpdate, text);
        }
    }

    fn add_deprecations(
        &mut self,
        documents: Vec<(DocumentPosition, Vec<PendingDeprecation<'a>>)>,
    ) {
        for (place, _) in documents.iter().skip(1) {
            let text = "the package has more than one olm.deprecations document";
            self.defect(*place, DefectCode::Duplicate, text);
        }
        for (place, deprecations) in documents {
            for deprecation in deprecations {
                self.deprecate(place, deprecation);
            }
        }
    }

    fn deprecate(&mut self, place: DocumentPosition, deprecation: PendingDeprecation<'a>) {
        let PendingDeprecation { schema, name, message } = deprecation;
        if message.is_empty() {
            let text = format!("the deprecation of {schema} {name} has no message");
            self.defect(place, DefectCode::Deprecation, text);
        }
        let package = &mut self.package;
        let found = match &*schema {
            "olm.package" if name.is_empty() => Some(&mut package.deprecated),
            "olm.channel" => {
                let mut channels = package.channels.iter_mut();
                channels.find(|it| it.name == name).map(|it| &mut it.deprecated)
            }
            "olm.bundle" => {
                let mut bundles: std::slice::IterMut<'_, IndexedBundle<'a>> =
                    package.bundles.iter_mut();
                bundles.find(|it| it.name == name).map(|it| &mut it.deprecated)
            }
            _ => None,
        };
        match found {
            Some(place @ None) => *place = Some(message),
            Some(Some(_)) => {
                let text = format!("{schema} {name} is deprecated more than once");
                self.defect(place, DefectCode::Deprecation, text);
            }
            None => {
                let text = format!("deprecates {schema} {name}, which does not exist");
                self.defect(place, DefectCode::Deprecation, text);
            }
        }
    }
}

/// Whether a name is a DNS-1123 label.
fn is_label(name: &str) -> bool {
    let edge = |byte: Option<&u8>| byte.is_some_and(|byte| *byte != b'-');
    let bytes = name.as_bytes();
    let allowed = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'-';
    bytes.len() <= 63 && bytes.iter().all(allowed) && edge(bytes.first()) && edge(bytes.last())
}
