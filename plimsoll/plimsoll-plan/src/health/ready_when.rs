//! Gates by condition: whether an object is what its annotation waits for.
//!
//! By convention (`conditions`), an object is ready if its controller has seen its latest generation, its
//! condition `Ready` is `True`, and none of `Reconciling` and `Stalled` is. One that is stalled fails. An object
//! without `Ready` is ready once it has an `observedGeneration`; one that reports neither has not been seen by
//! its controller.

use plimsoll_api::{Effect, Reason, Verdict};
use plimsoll_content::ready_when::{CONVENTIONS, READY_WHEN, holds};
use serde_json::Value;

use super::parse;
use super::readiness::{
    because, generation_not_observed, progressing, subject, terminating, waiting,
};

/// Judges an object by its annotation; `None` if it has none.
pub(super) fn judge(kind: &str, live: &Value) -> Option<Verdict> {
    let value = live["metadata"]["annotations"][READY_WHEN].as_str()?;
    let subject = subject(kind, live);
    if let Some(verdict) = terminating(&subject, live) {
        return Some(verdict);
    }
    if value == CONVENTIONS {
        return Some(conventions(&subject, live));
    }
    Some(match holds(value, live) {
        Ok(true) => Verdict::Ready,
        Ok(false) => progressing(format!("{subject} is not ready: {value} is false")),
        Err(error) => progressing(format!("{subject} is not ready: {value} has no value: {error}")),
    })
}

fn conventions(subject: &str, live: &Value) -> Verdict {
    let condition = |type_| parse::condition(live, type_);
    let observed = parse::number(live, &["status", "observedGeneration"]);
    if observed.is_some()
        && let Some(verdict) = generation_not_observed(subject, live)
    {
        return verdict;
    }
    if let Some(stalled) = condition("Stalled").filter(|it| it.status == "True") {
        let because = because(stalled.reason, stalled.message);
        let message = format!("{subject} makes no progress{because}");
        return waiting(Effect::Fail, Reason::WorkloadNotProgressing, message);
    }
    if let Some(reconciling) = condition("Reconciling").filter(|it| it.status == "True") {
        let because = because(reconciling.reason, reconciling.message);
        return progressing(format!("{subject} is being reconciled{because}"));
    }
    match condition("Ready") {
        Some(ready) if ready.status == "True" => Verdict::Ready,
        Some(ready) => {
            let because = because(ready.reason, ready.message);
            progressing(format!("{subject} is not ready{because}"))
        }
        None if observed.is_some() => Verdict::Ready,
        None => progressing(format!("{subject} has not been reported on by its controller")),
    }
}

#[cfg(test)]
mod tests {
    //! Objects with the annotation, and what is said of them.

    use serde_json::json;

    use super::*;

    /// Judges `Lamp "ns/x"` at generation 2; the effect and the message without its name.
    #[expect(clippy::needless_pass_by_value, reason = "json! makes values")]
    fn judged(annotation: &str, status: Value) -> (Effect, String) {
        let live = json!({
            "metadata": {
                "name": "x", "namespace": "ns", "generation": 2,
                "annotations": { (READY_WHEN): annotation },
            },
            "status": status,
        });
        match crate::health::judge("example.com", "Lamp", &live).expect("it is awaited") {
            Verdict::Ready => (Effect::None, String::new()),
            Verdict::ReadyWith { message, .. } => (Effect::None, message),
            Verdict::Waiting { effect, message, .. } => {
                (effect, message.trim_start_matches("Lamp \"ns/x\" ").to_owned())
            }
        }
    }

    #[test]
    fn objects_without_the_annotation_are_not_awaited() {
        let live = json!({ "metadata": { "name": "x" }, "status": { "observedGeneration": 1 } });
        assert_eq!(crate::health::judge("example.com", "Lamp", &live), None);
    }

    #[test]
    fn conventions_are_those_of_conditions() {
        let check = |status: Value, effect: Effect, message: &str| {
            assert_eq!(judged(CONVENTIONS, status), (effect, message.to_owned()));
        };
        let conditions = |list: &[(&str, &str)]| -> Value {
            let condition = |(type_, status): &(&str, &str)| json!({ "type": type_, "status": status, "reason": "Because" });
            list.iter().map(condition).collect()
        };
        check(json!({}), Effect::None, "has not been reported on by its controller");
        check(json!({ "observedGeneration": 2 }), Effect::None, "");
        check(
            json!({ "observedGeneration": 1, "conditions": conditions(&[("Ready", "True")]) }),
            Effect::None,
            "has generation 2, of which its controller has seen 1",
        );
        check(json!({ "conditions": conditions(&[("Ready", "True")]) }), Effect::None, "");
        check(
            json!({ "conditions": conditions(&[("Ready", "False")]) }),
            Effect::None,
            "is not ready: Because",
        );
        check(
            json!({ "conditions": conditions(&[("Ready", "True"), ("Reconciling", "True")]) }),
            Effect::None,
            "is being reconciled: Because",
        );
        check(
            json!({ "conditions": conditions(&[("Ready", "False"), ("Stalled", "True")]) }),
            Effect::Fail,
            "makes no progress: Because",
        );
    }

    #[test]
    fn a_rule_decides() {
        let rule = "self.status.phase == 'On'";
        assert_eq!(judged(rule, json!({ "phase": "On" })).1, "");
        let expected = "is not ready: self.status.phase == 'On' is false";
        assert_eq!(judged(rule, json!({ "phase": "Off" })).1, expected);
        let message = judged(rule, json!({})).1;
        let expected = "is not ready: self.status.phase == 'On' has no value: ";
        assert!(message.starts_with(expected), "{message}");
    }
}
