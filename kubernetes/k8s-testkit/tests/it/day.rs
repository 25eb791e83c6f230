//! Time that passes by itself: a controller's day on a paused clock.

pub(crate) mod controller;

#[tokio::test(start_paused = true)]
async fn a_day_of_requeues_watches_and_renewals_passes_on_a_paused_clock() {
    let began = tokio::time::Instant::now();
    let reconciliations = controller::day().await;
    assert_eq!(began.elapsed(), controller::DAY);
    // Ten objects, one look at each every ten minutes and one at the beginning.
    let looks = 10 * (1 + controller::DAY.as_secs() / controller::REQUEUE.as_secs());
    assert!((looks - 10..=looks + 20).contains(&reconciliations), "{reconciliations}, not {looks}");
}
