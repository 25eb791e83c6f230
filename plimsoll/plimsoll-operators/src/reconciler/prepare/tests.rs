//! Tests of retries of failed preparations.

use std::time::Duration;

use jiff::Timestamp;
use plimsoll_api::Reason;
use plimsoll_api::olm::{BundleReference, CertificateProvider};
use plimsoll_plan::reconciler::Uptime;

use super::{
    BlockCause, OperatorBlock, Preparation, RETRY_INTERVAL, RevisionInputs, TrackedOperator,
};
use crate::reconciler::{Moment, OperatorReconciler};

fn wanted(generation: i64) -> RevisionInputs {
    RevisionInputs {
        bundle: BundleReference { name: "bar.v1.0.0".into(), ..BundleReference::default() },
        config: None,
        certificates: CertificateProvider::default(),
        ready_when: Vec::new(),
        namespace: String::new(),
        inspected: None,
        risks: Vec::new(),
        generation,
    }
}

/// Returns whether a bundle that was blocked by an object is tried again, for a generation of the spec and
/// some time after the failure for generation 1.
fn is_tried_again(generation: i64, after: Duration) -> bool {
    let block = OperatorBlock::new(Reason::Conflict, "an object is in the way");
    let failed = Preparation::Failed {
        wanted: wanted(1),
        block: block.clone(),
        cause: BlockCause::Cluster,
        retry_at: Uptime::from_start(RETRY_INTERVAL),
    };
    let operator = TrackedOperator { preparation: Some(failed), ..TrackedOperator::default() };
    let mut reconciler = OperatorReconciler::default();
    reconciler.operators.insert("bar".to_owned(), operator);
    let (time, uptime) = (Timestamp::UNIX_EPOCH, Uptime::from_start(after));
    let moment = Moment { time, steady: time, uptime };
    reconciler.with("bar", moment, |it| {
        it.prepare(wanted(generation));
    });
    // Without a catalog to read from, it fails for another reason.
    match &reconciler.operators["bar"].preparation {
        Some(Preparation::Failed { block: now, .. }) => *now != block,
        _ => false,
    }
}

#[test]
fn what_failed_is_tried_again_after_a_while_and_at_once_for_another_spec() {
    let soon = Duration::from_secs(1);
    assert!(!is_tried_again(1, soon));
    assert!(is_tried_again(1, RETRY_INTERVAL));
    assert!(is_tried_again(2, soon));
}
