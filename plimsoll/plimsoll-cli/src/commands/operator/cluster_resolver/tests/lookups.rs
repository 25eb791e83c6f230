//! What is looked up in catalogs that cannot be read here: the resolver's answers are what the same catalogs say on
//! this machine.

use plimsoll_operators::RequestedOperator;

use super::*;
use crate::commands::operator::names;
use crate::commands::operator::{OperatorCommand, execute};

#[derive(Parser)]
struct CommandLine {
    #[command(subcommand)]
    command: OperatorCommand,
}

/// Returns what a command prints, and how it ends.
async fn printed_by(client: &Client, words: &[&str]) -> String {
    let words = std::iter::once("operator").chain(words.iter().copied());
    let line = CommandLine::try_parse_from(words).expect("a command line");
    let mut out = Vec::new();
    let mut prompter = Prompter::NonInteractive;
    let ended = execute(Some(client), &line.command, &mut prompter, &mut out).await;
    let text = String::from_utf8(out).expect("a text");
    match ended {
        Ok(code) => format!("{text}{code:?}"),
        Err(error) => format!("{text}{error:#}"),
    }
}

/// A catalog with two versions of a package, and a package with a broken channel.
fn two_packages() -> Documents {
    let text = r#"
{"schema":"olm.package","name":"lantern","defaultChannel":"stable","description":"Light."}
{"schema":"olm.channel","package":"lantern","name":"stable","entries":[{"name":"lantern.v2.1.0","replaces":"lantern.v2.0.0","skipRange":"<2.0.0"},{"name":"lantern.v2.0.0"}]}
{"schema":"olm.bundle","package":"lantern","name":"lantern.v2.0.0","image":"example.com/lantern:2.0","properties":[{"type":"olm.package","value":{"packageName":"lantern","version":"2.0.0"}},{"type":"olm.gvk","value":{"group":"example.com","version":"v1","kind":"Beacon"}}]}
{"schema":"olm.bundle","package":"lantern","name":"lantern.v2.1.0","image":"example.com/lantern:2.1","properties":[{"type":"olm.package","value":{"packageName":"lantern","version":"2.1.0"}},{"type":"olm.gvk","value":{"group":"example.com","version":"v1","kind":"Beacon"}},{"type":"olm.package.required","value":{"packageName":"ledger","versionRange":">=1.0.0"}},{"type":"olm.csv.metadata","value":{"displayName":"Lantern","description":"Light for \"all\".","provider":{"name":"Pier"},"minKubeVersion":"1.20.0","installModes":[{"type":"AllNamespaces","supported":true}]}}]}
{"schema":"olm.deprecations","package":"lantern","entries":[{"reference":{"schema":"olm.bundle","name":"lantern.v2.0.0"},"message":"it is \"old\""}]}
{"schema":"olm.package","name":"ledger","defaultChannel":"stable"}
{"schema":"olm.channel","package":"ledger","name":"stable","entries":[{"name":"ledger.v1.0.0"},{"name":"ledger.v1.1.0"}]}
{"schema":"olm.bundle","package":"ledger","name":"ledger.v1.0.0","image":"example.com/ledger:1","properties":[{"type":"olm.package","value":{"packageName":"ledger","version":"1.0.0"}}]}
{"schema":"olm.bundle","package":"ledger","name":"ledger.v1.1.0","image":"example.com/ledger:2","properties":[{"type":"olm.package","value":{"packageName":"ledger","version":"1.1.0"}}]}
"#;
    Documents { name: "main".to_owned(), weight: 0, text: text.to_owned() }
}

/// Returns what the resolver knows of the Operator of the cluster.
fn inventory() -> OperatorInventory {
    let operator: RequestedOperator = serde_json::from_value(json!({
        "spec": { "version": "2.0.0" },
        "created": "2026-01-01T00:00:00Z",
        "isDependency": false,
        "isDeleting": false,
    }))
    .expect("an Operator");
    let operators = BTreeMap::from([("lantern".to_owned(), operator)]);
    OperatorInventory { operators, ..OperatorInventory::default() }
}

#[tokio::test]
async fn lookups_need_no_catalog_here() {
    let setup = Setup::new(vec![two_packages()], inventory());
    let (client, asked) = api_server(Some(setup.service.clone()));
    let catalog = format!("main={}", setup.directory.path().join("main").display());
    for (words, expected) in [
        (["search"].as_slice(), "v2.1.0"),
        (&["search", "LIGHT", "pier"], "Light."),
        (&["search", "", "nothing"], "No packages found"),
        (&["search", "-o", "json"], "\"displayName\": \"Lantern\""),
        (&["show", "lantern"], "example.com/v1 Beacon"),
        (&["show", "lantern", "-o", "wide"], "example.com/lantern:2.1"),
        (&["show", "lantern", "-o", "json"], "it is \\\"old\\\""),
        (&["show", "lantern", "-o", "mermaid"], "lantern"),
        (&["show", "lantern@~2.0"], "lantern.v2.0.0"),
        (&["show", "ledger", "-o", "yaml"], "ledger.v1.1.0"),
        (&["show", "lantern@9"], "no version of `lantern` matches 9; there is v2.1.0, v2.0.0"),
        (&["show", "lantern", "--channel", "stabel"], "did you mean `stable`?"),
        (&["show", "lantrn"], "no catalog has package `lantrn`, did you mean `lantern`?"),
        (&["who-provides", "beacon"], "v2.0.0 - v2.1.0"),
        (&["who-provides", "example.com/v1/Beacon", "-o", "json"], "\"installed\": \"2.0.0\""),
        (&["who-provides", "Becon"], "No packages found"),
        (&["list"], "v2.1.0"),
        (&["list", "lantern", "-o", "json"], "\"updateKnown\": true"),
    ] {
        asked.lock().expect("no thread panics").clear();
        let words = [words, &["--no-cache"]].concat();
        let found = printed_by(&client, &words).await;
        assert!(found.contains(expected), "{words:?}: {found}");
        let paths = asked.lock().expect("no thread panics").clone();
        let queries = paths.iter().filter(|it| it.contains("/proxy/"));
        assert_eq!(queries.count(), 1, "{words:?}: {paths:?}");
        let here =
            printed_by(&client, &[&words[..], &["--catalog", catalog.as_str()]].concat()).await;
        assert_eq!(found, here, "{words:?}");
    }
}

#[tokio::test]
async fn names_of_packages_are_those_of_the_resolver() {
    let service = Setup::new(vec![two_packages()], OperatorInventory::default()).service;
    let (client, _) = api_server(Some(service));
    let choice = CatalogChoice { no_cache: true, ..CatalogChoice::default() };
    let found = names::packages(Some(&client), &choice).await.expect("names");
    let found: Vec<(&str, &str)> = found.iter().map(|(name, it)| (&**name, &**it)).collect();
    assert_eq!(found, [("lantern", "main"), ("ledger", "main")]);
}

#[tokio::test]
async fn a_resolver_that_is_not_known_fails_lookups_and_no_list() {
    let service = Setup::new(vec![two_packages()], OperatorInventory::default()).service;
    let names = &["asked", "other"];
    let (client, _) = api_server_of(Some(Served { service, names, refusals: 0 }));
    for words in [["search"].as_slice(), &["show", "lantern"], &["who-provides", "Beacon"]] {
        let found = printed_by(&client, words).await;
        assert!(found.starts_with("several Services have the label"), "{words:?}: {found}");
    }
    let found = printed_by(&client, &["list"]).await;
    assert!(found.contains("<unknown>"), "{found}");
    let (client, _) = api_server(None);
    let found = printed_by(&client, &["search"]).await;
    assert!(found.starts_with("Catalog `main` is at `/nowhere/main`"), "{found}");
}
