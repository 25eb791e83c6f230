//! One conformance suite for the embedded API server and the real one.
//!
//! What is expected was recorded from a real control plane:
//! `PLIMSOLL_CONFORMANCE=record KUBEBUILDER_ASSETS=... cargo test -p k8s-testkit --test it
//! conformance` records it anew, `PLIMSOLL_CONFORMANCE_ONLY=text` runs only the cases whose file or
//! title contains the text.
//!
//! Where the embedded server is not there yet is listed in `gaps.txt` beside the cases; who closes a
//! gap removes its line, and the test insists on it. `PLIMSOLL_CONFORMANCE=gaps` shows what differs.

mod answers;
mod ask;
mod case;
mod normalise;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use futures::StreamExt;
use k8s_testkit::{ClusterKind, TestCluster, clusters};
use serde_json::Value;

use self::answers::{Answers, Recorded};
use self::ask::Answer;
use self::case::Case;

/// How many cases run at once. A real server is slowed down by more, the embedded one not.
const CONCURRENCY: usize = 24;

/// What the suite promises to hold at least.
const CASES_MIN: usize = 400;

/// Cases of this area make what others share, and run first.
const FIRST: &str = "0-shared/";

/// How many lines of differences a failing case shows.
const SHOWN_MAX: usize = 30;

fn is_recording() -> bool {
    std::env::var("PLIMSOLL_CONFORMANCE").is_ok_and(|mode| mode == "record")
}

/// The cases, as `FILE: TITLE`, that the embedded server is known to fail.
fn gaps() -> BTreeSet<String> {
    if std::env::var("PLIMSOLL_CONFORMANCE").is_ok_and(|mode| mode == "gaps") {
        return BTreeSet::new();
    }
    include_str!("../../conformance/gaps.txt").lines().map(str::to_owned).collect()
}

/// The cases of this run.
fn selected() -> Vec<Case> {
    let only = std::env::var("PLIMSOLL_CONFORMANCE_ONLY").unwrap_or_default();
    let is_wanted = |case: &Case| {
        case.file.starts_with(FIRST) || case.title.contains(&only) || case.file.contains(&only)
    };
    case::read_all().into_iter().filter(is_wanted).collect()
}

/// What came of a case.
struct Outcome {
    case: Case,
    answers: Result<(Vec<Answer>, Vec<Value>), String>,
}

async fn run(cluster: &TestCluster, cases: Vec<Case>, concurrency: usize) -> Vec<Outcome> {
    let (first, rest): (Vec<Case>, Vec<Case>) =
        cases.into_iter().partition(|case| case.file.starts_with(FIRST));
    let mut outcomes = Vec::new();
    for cases in [first, rest] {
        let mut running = futures::stream::iter(cases.into_iter().map(|case| {
            let client = cluster.client();
            async move {
                let answers = ask::ask(client, &case).await.map(|answers| {
                    let documents = normalise::normalise(&case, &answers);
                    (answers, documents)
                });
                Outcome { case, answers }
            }
        }))
        .buffered(concurrency);
        while let Some(outcome) = running.next().await {
            outcomes.push(outcome);
        }
    }
    outcomes
}

/// What is wrong with an outcome, or nothing.
fn problem(outcome: &Outcome, recorded: Option<&Recorded>, kind: ClusterKind) -> Option<String> {
    let (answers, documents) = match &outcome.answers {
        Ok(answers) => answers,
        Err(error) => return Some(format!("  {error}\n")),
    };
    let Some(recorded) = recorded else { return Some("  no answers are recorded\n".to_owned()) };
    let differs = kind == ClusterKind::Embedded && outcome.case.differs.is_some();
    let expected = if differs { &recorded.embedded } else { &recorded.answers };
    let mut text = String::new();
    if expected.len() != documents.len() {
        let _ = writeln!(text, "  {} answers are recorded: record anew", expected.len());
    }
    for ((answer, document), expected) in answers.iter().zip(documents).zip(expected) {
        let lines = answers::differences(expected, document);
        if lines.is_empty() {
            continue;
        }
        let _ = writeln!(text, "  {}", answer.asked);
        for line in lines.iter().take(SHOWN_MAX) {
            let _ = writeln!(text, "    {line}");
        }
        if lines.len() > SHOWN_MAX {
            let _ = writeln!(text, "    and {} more", lines.len() - SHOWN_MAX);
        }
    }
    (!text.is_empty()).then_some(text)
}

/// What does not conform.
#[derive(Default)]
struct Failures {
    text: String,
    by_file: BTreeMap<String, usize>,
    titles: BTreeSet<String>,
}

async fn conforms(kind: ClusterKind) {
    let cases = selected();
    let all = cases.len();
    let mut failures = failures(kind, cases, CONCURRENCY).await;
    if kind == ClusterKind::ControlPlane && !failures.titles.is_empty() {
        // The caches of a busy server lag behind: what failed is asked of one that is at rest.
        let is_wanted =
            |case: &Case| case.file.starts_with(FIRST) || failures.titles.contains(&case.title);
        let again = selected().into_iter().filter(is_wanted).collect();
        failures = self::failures(kind, again, 1).await;
    }
    let Failures { text, by_file, .. } = failures;
    let count: usize = by_file.values().sum();
    assert!(by_file.is_empty(), "{kind}: {count} of {all} cases fail\n{text}{by_file:#?}");
}

async fn failures(kind: ClusterKind, cases: Vec<Case>, concurrency: usize) -> Failures {
    let cluster = kind.start().await.expect("the cluster starts");
    let outcomes = run(&cluster, cases, concurrency).await;
    drop(cluster);
    let mut recorded: BTreeMap<String, Answers> = BTreeMap::new();
    let mut failures = Failures::default();
    let gaps = if kind == ClusterKind::Embedded { gaps() } else { BTreeSet::new() };
    for outcome in &outcomes {
        let file = &outcome.case.file;
        let answers = recorded.entry(file.clone()).or_insert_with(|| answers::read(file));
        let name = format!("{file}: {}", outcome.case.title);
        let text = match problem(outcome, answers.get(&outcome.case.title), kind) {
            Some(_) if gaps.contains(&name) => continue,
            None if gaps.contains(&name) => "  passes: remove it from gaps.txt\n".to_owned(),
            Some(text) => text,
            None => continue,
        };
        let _ = writeln!(failures.text, "{name}\n{text}");
        *failures.by_file.entry(file.clone()).or_default() += 1;
        failures.titles.insert(outcome.case.title.clone());
    }
    failures
}

/// Records the answers of a real server, and of the embedded one where it differs on purpose.
async fn record() {
    let real = ClusterKind::ControlPlane.start().await.expect("a control plane to record from");
    let outcomes = run(&real, selected(), CONCURRENCY).await;
    drop(real);
    let embedded = TestCluster::embedded();
    let is_wanted = |case: &Case| case.differs.is_some() || case.file.starts_with(FIRST);
    let different = selected().into_iter().filter(is_wanted).collect();
    let mut different: BTreeMap<String, Vec<Value>> = run(&embedded, different, CONCURRENCY)
        .await
        .into_iter()
        .filter(|outcome| outcome.case.differs.is_some())
        .filter_map(|outcome| Some((outcome.case.title.clone(), outcome.answers.ok()?.1)))
        .collect();
    let titles: BTreeSet<String> = case::read_all().into_iter().map(|case| case.title).collect();
    let mut recorded: BTreeMap<String, Answers> = BTreeMap::new();
    let mut failures = String::new();
    for outcome in outcomes {
        let file = &outcome.case.file;
        let answers = recorded.entry(file.clone()).or_insert_with(|| answers::read(file));
        let title = outcome.case.title.clone();
        match outcome.answers {
            Ok((_, documents)) => {
                let embedded = different.remove(&title).unwrap_or_default();
                answers.insert(title, Recorded { answers: documents, embedded });
            }
            Err(error) => {
                let _ = writeln!(failures, "{file}: {title}\n  {error}");
            }
        }
    }
    for (file, answers) in &mut recorded {
        answers.retain(|title, _| titles.contains(title));
        answers::write(file, answers);
    }
    assert!(failures.is_empty(), "not everything could be recorded:\n{failures}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_embedded_server_answers_as_the_real_one_did() {
    if is_recording() {
        record().await;
    } else {
        conforms(ClusterKind::Embedded).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_real_server_still_answers_as_it_did() {
    if !is_recording() && clusters().contains(&ClusterKind::ControlPlane) {
        conforms(ClusterKind::ControlPlane).await;
    }
}

#[test]
fn there_are_hundreds_of_cases_with_titles_of_their_own() {
    let cases = case::read_all();
    assert!(cases.len() >= CASES_MIN, "{} cases", cases.len());
    let mut titles = BTreeSet::new();
    for case in &cases {
        assert!(titles.insert(&case.title), "there are two cases {:?}", case.title);
    }
}

/// The document that tells users where the servers differ.
const DOCUMENT: &str = include_str!("../../../../docs/api-server.md");

#[test]
fn cases_that_differ_on_purpose_are_in_the_docs_with_their_reason() {
    let cases = case::read_all();
    for case in &cases {
        if let Some(why) = &case.differs {
            let line = format!("| {} | {why} |", case.title);
            assert!(
                DOCUMENT.lines().any(|found| found == line),
                "docs/api-server.md lacks\n{line}"
            );
        }
    }
}
