//! `plimsoll override`: objects that are unmanaged, why, and until when.
//!
//! Overrides lie in the ClusterVersion's spec, their terms in an annotation beside it. Both are
//! written together, and only if they were not changed in between.

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use jiff::Timestamp;
use kube::discovery::Scope;
use kube::{Api, Discovery};
use plimsoll_api::config::ComponentOverride;
use plimsoll_api::{CLUSTER_VERSION_NAME, ClusterVersion, ObjectKey, whole_seconds};
use plimsoll_content::capability::{meant, most_similar};
use plimsoll_plan::spec::overrides::{CORRECTION, OVERRIDE_TERMS, Overrides, Terms};
use serde_json::{Value, json};

use crate::arguments::cluster::ClusterArguments;
use crate::exit;
use crate::patch::patch_as;
use crate::process::now;
use crate::render::format::Format;
use crate::render::table;
use plimsoll_api::duration;

/// What the patches of this command are called in `managedFields`.
const FIELD_MANAGER: &str = "plimsoll-override";

/// What is asked about overrides, and of which cluster.
#[derive(Debug, Args)]
pub struct OverrideArguments {
    /// What to do
    #[command(subcommand)]
    pub command: OverrideCommand,
    /// Which cluster
    #[command(flatten)]
    pub cluster: ClusterArguments,
}

/// What can be done about overrides.
#[derive(Debug, Subcommand)]
pub enum OverrideCommand {
    /// List the unmanaged objects
    List {
        /// Output format
        #[arg(long, short, value_name = "FORMAT", default_value_t)]
        output: Format,
    },
    /// Make an object unmanaged, or change the reason and expiry
    Set(SetArguments),
    /// Manage an object again
    Clear(ObjectArguments),
}

/// Which object.
#[derive(Debug, Args)]
pub struct ObjectArguments {
    /// Its kind, group and name, such as `deployment.apps/crane`; the name may also be a word of
    /// its own
    #[arg(value_name = "KIND[.GROUP]/NAME")]
    pub kind: String,
    /// Its name, unless it is given with the kind
    #[arg(default_value = "", hide_default_value = true)]
    pub name: String,
    /// Its namespace
    #[arg(long, short, default_value = "")]
    pub namespace: String,
}

/// Which object, why, and until when.
#[derive(Debug, Args)]
pub struct SetArguments {
    #[command(flatten)]
    object: ObjectArguments,
    /// Why it is unmanaged
    #[arg(long, default_value = "")]
    reason: String,
    /// How long it stays unmanaged, such as `72h` or `2d`
    #[arg(
        long = "for",
        value_name = "DURATION",
        conflicts_with = "until",
        allow_hyphen_values = true,
        value_parser = duration::parse
    )]
    duration: Option<Duration>,
    /// Until when, such as `2027-01-31T00:00:00Z`; without it, until it is cleared
    #[arg(long, value_name = "TIME", value_parser = time)]
    until: Option<Timestamp>,
}

/// Runs the command.
///
/// # Errors
///
/// When the cluster cannot be reached, what is there cannot be read, or another client changed it
/// at the same moment.
pub async fn run(
    arguments: OverrideArguments,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let OverrideArguments { mut command, cluster } = arguments;
    match &mut command {
        OverrideCommand::List { output: _ } => {}
        OverrideCommand::Set(requested) => requested.object.split_name()?,
        OverrideCommand::Clear(requested) => requested.split_name()?,
    }
    let client = cluster.client("override").await?;
    let object = Api::<ClusterVersion>::all(client.clone())
        .get(CLUSTER_VERSION_NAME)
        .await
        .context("failed to read ClusterVersion \"version\"")?;
    let mut cluster = StoredOverrides::of(&object);
    let now = now();
    let reported = match command {
        OverrideCommand::List { output } => {
            list(&cluster.parsed(), now, &output, out)?;
            return Ok(exit::SUCCESS.into());
        }
        OverrideCommand::Set(mut requested) => {
            let discovery = Discovery::new(client.clone()).run_aggregated().await;
            let discovery = discovery.context("failed to discover the kinds of the server")?;
            let served = discovery.groups().flat_map(|group| group.recommended_resources());
            let served = served.map(|(it, is)| Served {
                kind: it.kind,
                plural: it.plural,
                group: it.group,
                namespaced: is.scope == Scope::Namespaced,
            });
            requested.object.complete(&served.collect::<Vec<_>>())?;
            let until = requested.until.or_else(|| now.checked_add(requested.duration?).ok());
            cluster.set(&requested, until.map(whole_seconds), now)?
        }
        OverrideCommand::Clear(requested) => cluster.clear(&requested)?,
    };
    let version = object.metadata.resource_version.as_deref().unwrap_or_default();
    patch_as(FIELD_MANAGER, &client, &cluster.patch(version)).await?;
    writeln!(out, "{reported}")?;
    Ok(exit::SUCCESS.into())
}

/// The overrides of the ClusterVersion and the terms in its annotation.
struct StoredOverrides {
    overrides: Vec<ComponentOverride>,
    terms: Vec<Terms>,
    annotation: Option<String>,
    /// Whether all of the annotation can be read.
    unreadable: Option<String>,
}

impl StoredOverrides {
    fn of(object: &ClusterVersion) -> Self {
        let annotations = object.metadata.annotations.as_ref();
        let annotation = annotations.and_then(|it| it.get(OVERRIDE_TERMS)).cloned();
        let read = annotation.as_deref().map(serde_json::from_str::<Vec<Terms>>);
        let (terms, unreadable) = match read {
            None => (Vec::new(), None),
            Some(Ok(terms)) => (terms, None),
            Some(Err(error)) => (Vec::new(), Some(error.to_string())),
        };
        Self { overrides: object.spec.overrides.clone(), terms, annotation, unreadable }
    }

    fn parsed(&self) -> Overrides {
        Overrides::parse(&self.overrides, self.annotation.as_deref())
    }

    /// Fails if the annotation cannot be read: its content is not to be lost.
    fn must_be_readable(&self) -> Result<(), anyhow::Error> {
        match &self.unreadable {
            None => Ok(()),
            Some(error) => anyhow::bail!(
                "the annotation {OVERRIDE_TERMS} cannot be read: {error}; {CORRECTION}"
            ),
        }
    }

    fn set(
        &mut self,
        requested: &SetArguments,
        expires: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<String, anyhow::Error> {
        self.must_be_readable()?;
        if let Some(at) = expires.filter(|at| *at <= now) {
            anyhow::bail!("the override would expire in the past, at {at}: use a later time");
        }
        let SetArguments { object: named, reason, .. } = requested;
        let entry = named.entry();
        self.remove(&entry);
        let terms = Terms {
            kind: entry.kind.clone(),
            group: entry.group.clone(),
            namespace: entry.namespace.clone(),
            name: entry.name.clone(),
            reason: reason.clone(),
            expires,
        };
        let until = expires.map(|at| format!(" until {at}")).unwrap_or_default();
        let reported = format!("{} is unmanaged{until}", terms.object().reference());
        if !reason.is_empty() || expires.is_some() {
            self.terms.push(terms);
        }
        self.overrides.push(entry);
        Ok(reported)
    }

    fn clear(&mut self, requested: &ObjectArguments) -> Result<String, anyhow::Error> {
        self.must_be_readable()?;
        let entry = requested.entry();
        let is_meant = |it: &&ComponentOverride| {
            it.kind.eq_ignore_ascii_case(&entry.kind)
                && (entry.group.is_empty() || it.group == entry.group)
                && (&it.namespace, &it.name) == (&entry.namespace, &entry.name)
        };
        let meant: Vec<ComponentOverride> =
            self.overrides.iter().filter(is_meant).cloned().collect();
        if meant.is_empty() {
            anyhow::bail!(
                "there is no override of {} {:?} in namespace {:?}; `plimsoll override list` \
                 lists them all",
                requested.kind,
                requested.name,
                requested.namespace
            );
        }
        let mut reported = Vec::new();
        for entry in meant {
            self.remove(&entry);
            let ComponentOverride { group, kind, namespace, name, .. } = entry;
            let key = ObjectKey { group, kind, namespace, name };
            reported.push(format!("{} is managed", key.reference()));
        }
        reported.dedup();
        Ok(reported.join("\n"))
    }

    /// Takes out what is about an object.
    fn remove(&mut self, entry: &ComponentOverride) {
        let is_of = |it: &ComponentOverride| {
            ComponentOverride { unmanaged: true, ..it.clone() }
                == ComponentOverride { unmanaged: true, ..entry.clone() }
        };
        self.overrides.retain(|it| !is_of(it));
        self.terms.retain(|terms| {
            let Terms { kind, group, namespace, name, .. } = terms;
            (kind, group, namespace, name)
                != (&entry.kind, &entry.group, &entry.namespace, &entry.name)
        });
    }

    fn patch(&self, resource_version: &str) -> Value {
        let terms = (!self.terms.is_empty())
            .then(|| serde_json::to_string(&self.terms).unwrap_or_default());
        let overrides = (!self.overrides.is_empty()).then_some(&self.overrides);
        json!({
            "metadata": {
                "resourceVersion": resource_version,
                "annotations": { OVERRIDE_TERMS: terms },
            },
            "spec": { "overrides": overrides },
        })
    }
}

/// A kind that the cluster serves.
struct Served {
    kind: String,
    plural: String,
    group: String,
    namespaced: bool,
}

impl Served {
    /// Returns what users call it.
    fn names(&self) -> [&str; 2] {
        [&self.kind, &self.plural]
    }
}

impl ObjectArguments {
    /// Takes `KIND[.GROUP]/NAME` apart.
    fn split_name(&mut self) -> Result<(), anyhow::Error> {
        let parts =
            self.kind.split_once('/').map(|(kind, name)| (kind.to_owned(), name.to_owned()));
        match parts {
            Some((kind, name)) if self.name.is_empty() => (self.kind, self.name) = (kind, name),
            Some(_) => {
                anyhow::bail!("{:?} and {:?} name two objects: give one", self.kind, self.name)
            }
            None => {}
        }
        anyhow::ensure!(
            !self.kind.is_empty() && !self.name.is_empty(),
            "an object needs a kind and a name, such as deployment.apps/crane -n harbour"
        );
        Ok(())
    }

    /// Puts the kind into the words of the server, as an override must have it to mean anything. A
    /// kind that is not served, in the words of a manifest, is left as it is: it may come later.
    fn complete(&mut self, served: &[Served]) -> Result<(), anyhow::Error> {
        let entry = self.entry();
        let is_meant = |it: &&Served| {
            let is_called = |name: &str| name.eq_ignore_ascii_case(&entry.kind);
            (is_called(&it.kind) || is_called(&it.plural))
                && (it.group == entry.group || !self.kind.contains('.'))
        };
        let named: Vec<&Served> = served.iter().filter(is_meant).collect();
        let exact = named.iter().find(|it| it.group == entry.group);
        let found = match (exact, named.as_slice()) {
            (Some(found), _) => found,
            (None, [found]) => found,
            (None, []) if entry.kind.starts_with(char::is_uppercase) => return Ok(()),
            (None, []) => anyhow::bail!(
                "the server has no kind {:?}{}; `kubectl api-resources` lists those it has, and \
                 one that it will have is written as in a manifest, such as `Deployment.apps`",
                self.kind,
                meant(most_similar(&entry.kind, served.iter().flat_map(Served::names)))
            ),
            (None, several) => {
                let names: Vec<String> =
                    several.iter().map(|it| format!("{}.{}", it.kind, it.group)).collect();
                anyhow::bail!("{:?} may mean {}: name one", self.kind, names.join(" or "))
            }
        };
        if found.namespaced && self.namespace.is_empty() {
            anyhow::bail!("a {} is in a namespace: name it with --namespace", found.kind);
        }
        self.kind = match found.group.as_str() {
            "" => found.kind.clone(),
            group => format!("{}.{group}", found.kind),
        };
        Ok(())
    }

    fn entry(&self) -> ComponentOverride {
        let (kind, group) = self.kind.split_once('.').unwrap_or((&self.kind, ""));
        ComponentOverride {
            kind: kind.to_owned(),
            group: group.to_owned(),
            namespace: self.namespace.clone(),
            name: self.name.clone(),
            unmanaged: true,
        }
    }
}

fn list(
    overrides: &Overrides,
    now: Timestamp,
    output: &Format,
    out: &mut dyn Write,
) -> Result<(), anyhow::Error> {
    let entries = overrides.progress(now);
    if !output.write(&entries, out)? {
        if entries.is_empty() {
            writeln!(out, "No overrides.")?;
        } else {
            let row = |entry: &plimsoll_api::progress::OverrideProgress| {
                vec![
                    entry.object.reference(),
                    format!("{:?}", entry.state),
                    entry.expires.map_or_else(|| "never".to_owned(), |at| at.to_string()),
                    entry.reason.clone(),
                ]
            };
            let rows: Vec<Vec<String>> = entries.iter().map(row).collect();
            table::print(out, &["OBJECT", "STATE", "EXPIRES", "REASON"], &rows)?;
        }
        for problem in &overrides.problems {
            writeln!(out, "warning: {problem}")?;
        }
    }
    Ok(())
}

/// Reads a time.
fn time(text: &str) -> Result<Timestamp, String> {
    text.parse().map_err(|_| {
        format!("`{text}` is not a time with its offset, such as 2027-01-31T00:00:00Z")
    })
}

#[cfg(test)]
mod tests {
    //! What is written for what is asked.

    use super::*;

    fn cluster(annotation: &str) -> StoredOverrides {
        let object = json!({
            "apiVersion": "config.openshift.io/v1", "kind": "ClusterVersion",
            "metadata": { "name": "version", "annotations": { OVERRIDE_TERMS: annotation } },
            "spec": { "overrides": [
                { "kind": "ConfigMap", "group": "", "namespace": "n", "name": "kept",
                  "unmanaged": true },
            ] },
        });
        StoredOverrides::of(&serde_json::from_value(object).unwrap())
    }

    fn object(kind: &str, name: &str) -> ObjectArguments {
        ObjectArguments { kind: kind.to_owned(), name: name.to_owned(), namespace: "n".to_owned() }
    }

    fn set(name: &str, reason: &str) -> SetArguments {
        SetArguments {
            object: object("Deployment.apps", name),
            reason: reason.to_owned(),
            duration: None,
            until: None,
        }
    }

    #[test]
    fn overrides_and_their_terms_are_written_together_and_others_stay() {
        let now = Timestamp::from_second(1).unwrap();
        let until = Timestamp::from_second(3600).unwrap();
        let mut cluster =
            cluster(r#"[{"kind":"ConfigMap","namespace":"n","name":"kept","reason":"why"}]"#);
        cluster.set(&set("crane", "first"), None, now).unwrap();
        cluster.set(&set("crane", "gearbox"), Some(until), now).unwrap();
        let patch = cluster.patch("7");
        let entry = |kind: &str, group: &str, name: &str| {
            json!({ "kind": kind, "group": group, "namespace": "n", "name": name,
                    "unmanaged": true })
        };
        let expected = [entry("ConfigMap", "", "kept"), entry("Deployment", "apps", "crane")];
        assert_eq!(patch["spec"]["overrides"], json!(expected));
        assert_eq!(patch["metadata"]["resourceVersion"], "7");
        let terms = patch["metadata"]["annotations"][OVERRIDE_TERMS].as_str().unwrap();
        assert_eq!(
            terms,
            r#"[{"kind":"ConfigMap","namespace":"n","name":"kept","reason":"why"},{"kind":"Deployment","group":"apps","namespace":"n","name":"crane","reason":"gearbox","expires":"1970-01-01T01:00:00Z"}]"#
        );
        assert!(cluster.set(&set("crane", ""), Some(now), until).is_err(), "it is past");
        cluster.clear(&object("Deployment.apps", "crane")).unwrap();
        let reported = cluster.clear(&object("configmap", "kept")).unwrap();
        assert_eq!(reported, "configmap/kept -n n is managed");
        assert!(cluster.clear(&object("ConfigMap", "kept")).is_err(), "it is cleared already");
        let patch = cluster.patch("7");
        assert_eq!(patch["spec"]["overrides"], Value::Null);
        assert_eq!(patch["metadata"]["annotations"][OVERRIDE_TERMS], Value::Null);
    }

    #[test]
    fn a_kind_is_put_into_the_words_of_the_server() {
        let served = |kind: &str, plural: &str, group: &str, namespaced| Served {
            kind: kind.to_owned(),
            plural: plural.to_owned(),
            group: group.to_owned(),
            namespaced,
        };
        let served = [
            served("ConfigMap", "configmaps", "", true),
            served("Deployment", "deployments", "apps", true),
            served("Node", "nodes", "", false),
            served("Event", "events", "", true),
            served("Event", "events", "events.k8s.io", true),
            served("Role", "roles", "a.io", true),
            served("Role", "roles", "b.io", true),
        ];
        let check = |kind: &str, expected: Result<&str, &str>| {
            let mut requested = object(kind, "x");
            match (requested.complete(&served), expected) {
                (Ok(()), Ok(expected)) => assert_eq!(requested.kind, expected),
                (Err(error), Err(says)) => assert!(error.to_string().contains(says), "{error}"),
                (found, _) => panic!("{kind}: {found:?}"),
            }
        };
        check("configmap", Ok("ConfigMap"));
        check("deployments", Ok("Deployment.apps"));
        check("deployment.apps", Ok("Deployment.apps"));
        check("event", Ok("Event"));
        check("events.events.k8s.io", Ok("Event.events.k8s.io"));
        check("Later.example.com", Ok("Later.example.com"));
        check("role", Err("Role.a.io or Role.b.io"));
        check(
            "configmpa",
            Err("the server has no kind \"configmpa\", did you mean \"ConfigMap\"?"),
        );
        let mut nowhere = ObjectArguments { namespace: String::new(), ..object("configmap", "x") };
        assert!(nowhere.complete(&served).is_err(), "it has a namespace");
        let mut node = ObjectArguments { namespace: String::new(), ..object("node", "x") };
        node.complete(&served).unwrap();
    }

    #[test]
    fn what_cannot_be_read_is_not_overwritten() {
        let mut cluster = cluster("soon");
        let error = cluster.set(&set("crane", ""), None, Timestamp::UNIX_EPOCH).unwrap_err();
        assert!(error.to_string().contains(OVERRIDE_TERMS), "{error}");
    }
}
