//! A controller that is cut off at a write of an Action: another one ends the Action, and the first
//! one writes nothing more for it when it goes on.

use serde_json::{Value, json};
use tokio::sync::watch;

use super::{AddOns, Interrupted, LastWrite, Named, Record, requester, start};
use crate::harness::{on_any_cluster, until};

/// The writes at which a controller is cut off, by their position: a change is recorded, written,
/// and recorded as written.
const WRITES: [(usize, LastWrite); 5] = [
    (2, LastWrite::Lost),
    (2, LastWrite::Applied),
    (3, LastWrite::Lost),
    (3, LastWrite::Applied),
    (4, LastWrite::Lost),
];

impl AddOns {
    /// Waits until an Action has ended and is released; returns it.
    async fn released(&self, named: &Named) -> Value {
        let what = format!("Action {} ends and is released", named.name);
        let action = || async { self.object(named).await };
        let is_over = |it: &Value| {
            it["status"]["completionTime"].is_string() && it["metadata"]["finalizers"].is_null()
        };
        until(&what, action, is_over).await
    }

    /// Requests an Action, and waits until it has ended.
    async fn done(&self, name: &str, spec: Value) -> Value {
        let mut spec = spec;
        spec["requester"] = requester();
        let named = self.request_action(name, spec).await;
        let action = self.released(&named).await;
        assert_eq!(action["status"]["state"], "Succeeded", "{action:#}");
        action
    }

    /// Has a controller be cut off at a write, and another one end the Action.
    async fn cut_off(&mut self, at: usize, last: LastWrite) {
        let (resume, resumed) = watch::channel(false);
        let client = &self.harness.client;
        let (mut first, second) = (Interrupted::new(client), Interrupted::new(client));
        first.resumed = Some(resumed);
        *first.record() = Record { kill: Some((at, last)), ..Record::default() };
        self.control_with(first.client());
        let name = format!("install-{at}-{last:?}").to_lowercase();
        let spec = json!({
            "actionClass": "operator-install", "package": "foo", "installDependencies": true,
            "requester": requester(),
        });
        let named = self.request_action(&name, spec).await;
        first.killed.notified().await;
        let suspended = self.controller.take();
        self.control_with(second.client());
        let ended = self.released(&named).await;
        assert_eq!(ended["status"]["state"], "Succeeded", "{name}: {ended:#}");
        self.stop().await;

        self.controller = suspended;
        let before = first.record().done.clone();
        resume.send_replace(true);
        // It does one thing after the other: what it was doing is over by then.
        let nothing = json!({ "actionClass": "autoremove", "dryRun": true });
        self.done(&format!("resumed-{name}"), nothing).await;
        assert_eq!(first.record().done, before, "{name}: it made another change");
        let now = self.object(&named).await;
        assert_eq!(now["metadata"], ended["metadata"], "{name}: it wrote to the Action");
        let others = second.record().done.clone();
        let counts: Vec<usize> = before.values().chain(others.values()).copied().collect();
        assert_eq!(counts, [1, 1], "{name}: {before:?} {others:?}");
        let delete = json!({
            "actionClass": "operator-delete", "package": "foo", "parameters": { "cascade": true },
        });
        self.done(&format!("delete-{name}"), delete).await;
        self.stop().await;
    }
}

#[test]
fn a_controller_that_was_cut_off_writes_nothing_once_another_one_has_ended_its_action() {
    on_any_cluster(|kind| async move {
        let (mut add_ons, _) = start(kind, &[("foo", "1.2.3"), ("bar", "1.2.5")]).await;
        add_ons.stop().await;
        for (at, last) in WRITES {
            add_ons.cut_off(at, last).await;
        }
    });
}
