//! Locks of what is installed: they are what they are of files alone, whether the catalog is read here or by the
//! cluster's resolver.

use super::*;

/// The catalog with a minimum version of Kubernetes, which OperatorRevisions do not have, and an image with a digest.
fn described(minimum: &str) -> Documents {
    let metadata = json!({
        "type": "olm.csv.metadata",
        "value": {
            "minKubeVersion": minimum,
            "installModes": [{ "type": "AllNamespaces", "supported": true }],
        },
    });
    let text = catalog().text.replace("example.com/lantern:2", "example.com/lantern@sha256:1");
    let text = text.replace(r#""properties":["#, &format!(r#""properties":[{metadata},"#));
    Documents { text, ..catalog() }
}

/// Returns what `operator lock` would write.
async fn locked(client: Option<&Client>, words: &[&str]) -> String {
    let words = ["lock", "--dry-run", "--no-cache"].iter().chain(words);
    let line = LockLine::try_parse_from(words).expect("a command line");
    let mut out = Vec::new();
    lock::run(client, &line.arguments, &mut out).await.expect("a lock file");
    String::from_utf8(out).expect("a text")
}

/// Returns why `operator lint --locked` refuses files; `None` if it does not.
async fn refused(client: Option<&Client>, words: &[&str]) -> Option<String> {
    let words = ["lint", "--locked", "--no-cache"].iter().chain(words);
    let line = LintLine::try_parse_from(words).expect("a command line");
    let ended = lint::run(client, &line.arguments, &mut Vec::new()).await;
    ended.err().map(|error| error.to_string())
}

#[tokio::test]
async fn what_is_installed_is_locked_as_its_catalog_describes_it() {
    let setup = Setup::new(vec![described("1.20.0")], OperatorInventory::default());
    let (client, _) = api_server(Some(setup.service.clone()));
    let client = Some(&client);
    let main = setup.directory.path().join("main");
    let directory = tempfile::tempdir().expect("a directory");
    let manifest = "apiVersion: olm.io/v1\nkind: Operator\nmetadata: {name: lantern}\nspec: {version: 2.0.0}\n";
    std::fs::write(directory.path().join("lantern.yaml"), manifest).expect("a file");
    let path = directory.path().display().to_string();
    let catalog = format!("main={}", main.display());
    let without = [path.as_str(), "--state", "files", "--catalog", catalog.as_str()];
    let beside = [path.as_str(), "--catalog", catalog.as_str()];
    let asked = [path.as_str()];
    let text = locked(None, &without).await;
    assert!(text.contains("descriptionDigest"), "{text}");
    assert_eq!(locked(client, &beside).await, text);
    assert_eq!(locked(client, &asked).await, text);
    std::fs::write(directory.path().join("operators.lock"), text).expect("a file");
    assert_eq!(refused(None, &without).await, None);
    assert_eq!(refused(client, &beside).await, None);
    assert_eq!(refused(client, &asked).await, None);

    // The catalog says something else of the bundle.
    let publish = |documents: Documents| {
        std::fs::write(main.join("catalog.json"), documents.text).expect("a file");
    };
    publish(described("1.21.0"));
    let says = "lantern v2.0.0 is another bundle than the locked one; write it anew";
    for (client, words) in [(None, without.as_slice()), (client, &beside)] {
        let error = refused(client, words).await.expect("it is another bundle");
        assert!(error.contains(says), "{words:?}: {error}");
    }

    // It has another version only, and what is installed stays.
    let text = described("1.20.0").text.replace("2.0.0", "2.1.0");
    publish(Documents { text, ..described("1.20.0") });
    assert_eq!(refused(client, &beside).await, None);
}
