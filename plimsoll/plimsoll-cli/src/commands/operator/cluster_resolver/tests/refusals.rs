//! Refusals: three ways to ask, one sentence.

use serde_json::{Value, json};

use super::*;

impl Setup {
    /// Returns what the service says of a query that it refuses.
    async fn refused(&self, query: &ResolutionQuery) -> String {
        let request = Request::post("/v1/resolve");
        let request = request.body(Full::new(Bytes::from(json!(query).to_string())));
        let (code, text) = self.send(request.expect("a request")).await;
        let status: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(status["kind"], "Status", "{code}: {text}");
        status["message"].as_str().expect("a text").to_owned()
    }

    /// Returns what the command says, beside the same catalog.
    async fn failed(&self, query: &ResolutionQuery) -> String {
        let path = |name: &str| self.directory.path().join(name).display().to_string();
        let (catalog, nowhere) = (format!("main={}", path("main")), path("nowhere"));
        let mut words = vec!["resolve", "--dry-run", "--no-cache", "--state", "files"];
        words.extend(["--catalog", &catalog, "--write", &nowhere]);
        for (option, value) in [
            ("--channel", &query.channel),
            ("--repository", &query.repository),
            ("--prefer-repository", &query.prefer_repository),
        ] {
            words.extend(value.iter().flat_map(|value| [option, value.as_str()]));
        }
        for (option, values) in [("--exclude", &query.exclude), ("--use", &query.providers)] {
            words.extend(values.iter().flat_map(|value| [option, value.as_str()]));
        }
        words.extend(query.packages.iter().map(String::as_str));
        let line = Line::try_parse_from(words).expect("it is a command line");
        let mut prompter = Prompter::NonInteractive;
        let ended = run(None, &line.arguments, &mut prompter, &mut Vec::new()).await;
        format!("{:#}", ended.expect_err("it is refused"))
    }
}

#[tokio::test]
async fn three_ways_to_ask_are_refused_in_the_same_words() {
    let setup = Setup::new(vec![catalog()], OperatorInventory::default());
    for (query, has_action, expected) in [
        (
            json!({ "packages": ["lanter"] }),
            true,
            "no catalog has package `lanter`, did you mean `lantern`?",
        ),
        (json!({ "packages": ["x"] }), true, "no catalog has package `x`; there are lantern"),
        (
            json!({ "packages": ["lantern"], "repository": "mian" }),
            true,
            "there is no catalog `mian`, did you mean `main`?",
        ),
        (
            json!({ "packages": ["lantern"], "channel": "beta" }),
            true,
            "lantern has no channel beta; its channels are stable",
        ),
        (
            json!({ "packages": ["lantern"], "preferRepository": "x" }),
            false,
            "there is no catalog `x`; there are main",
        ),
        (
            json!({ "packages": ["lantern@9"] }),
            false,
            "no version of lantern matches 9; there is v2.0.0",
        ),
        (
            json!({ "packages": ["lantern", "lantern"] }),
            false,
            "lantern is named twice: name it once",
        ),
        (
            json!({ "packages": ["lantern"], "exclude": ["lanter"] }),
            false,
            "cannot exclude `lanter`: no catalog has package `lanter`, did you mean `lantern`?",
        ),
        (
            json!({ "packages": ["lantern"], "providers": ["a.b/v1/C=lantern"] }),
            false,
            "cannot use `a.b/v1/C=lantern`: no package provides `a.b/v1/C`; there are none",
        ),
    ] {
        let query: ResolutionQuery = serde_json::from_value(query).expect("a query");
        assert_eq!(setup.refused(&query).await, expected, "{query:?}: the service");
        assert_eq!(setup.failed(&query).await, expected, "{query:?}: the command");
        if has_action {
            let failure = setup.planned(&query).await.expect_err("it is refused");
            assert_eq!(failure.answer(), format!("error: {expected}\n"), "{query:?}: the Action");
        }
    }
}

#[tokio::test]
async fn hints_name_packages_that_nothing_leads_to() {
    let light = r#""properties":[{"type":"olm.gvk","value":{"group":"example.com","version":"v1","kind":"Light"}},"#;
    let lantern = catalog().text.replace(r#""properties":["#, light);
    let page = light.replace("Light", "Page");
    let ledger = catalog().text.replace(r#""properties":["#, &page).replace("lantern", "ledger");
    let text = lantern + &ledger;
    let documents = vec![Documents { text, ..catalog() }];
    let setup = Setup::new(documents, OperatorInventory::default());
    let (client, _) = api_server(Some(setup.service.clone()));
    let unknown = "no catalog has package `ledgr`, did you mean `ledger`?";
    let unknown_api =
        "no package provides `example.com/v1/Paeg`, did you mean `example.com/v1/Page`?";
    let unneeded = "nothing that is resolved requires `example.com/v1/Page`, which ledger provides";
    let (paeg, page) = ("example.com/v1/Paeg=lantern", "example.com/v1/Page=lantern");
    let refused = [paeg, page].map(|it| format!("cannot use `{it}`"));
    for (option, field, value, refused, unknown) in [
        ("--exclude", "exclude", "ledgr", "cannot exclude `ledgr`", unknown),
        ("--use", "providers", "ledgr=lantern", "cannot use `ledgr=lantern`", unknown),
        ("--use", "providers", "lantern=ledgr", "cannot use `lantern=ledgr`", unknown),
        ("--use", "providers", paeg, refused[0].as_str(), unknown_api),
        ("--use", "providers", page, refused[1].as_str(), unneeded),
    ] {
        let query = json!({ "packages": ["lantern"], field: [value] });
        let query: ResolutionQuery = serde_json::from_value(query).expect("a query");
        let expected = format!("{refused}: {unknown}");
        assert_eq!(setup.refused(&query).await, expected, "the service");
        assert_eq!(setup.failed(&query).await, expected, "the command");
        let nowhere = setup.directory.path().join("nowhere").display().to_string();
        let words = ["resolve", "lantern", option, value, "--dry-run", "--write", &nowhere];
        let line = Line::try_parse_from(words).expect("it is a command line");
        let mut prompter = Prompter::NonInteractive;
        let ended = run(Some(&client), &line.arguments, &mut prompter, &mut Vec::new()).await;
        let error = ended.expect_err("it is refused");
        assert_eq!(format!("{error:#}"), expected, "the command without a catalog");
    }
}
