//! Waiting for what a server of its own clock does in its own time.
//!
//! The embedded server has done everything when it answers. A real control plane has not: when an
//! admission webhook takes effect, or garbage is collected, nothing tells. This is the one place
//! where a test asks again and again; everywhere else time is virtual or events are watched.

use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval, timeout};

/// How long a real control plane may take before a test gives up: many times what it takes on an
/// idle machine, since others may share it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);
/// The time between two questions: short beside what is waited for, long beside a question.
const PERIOD: Duration = Duration::from_millis(50);

/// Nothing came in time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} did not come within {} s", PATIENCE.as_secs())]
pub struct TimedOut {
    what: String,
}

/// Asks until there is an answer; `what` names in an error what was waited for.
///
/// # Errors
/// When there is none within five minutes.
pub async fn poll<T, F: Future<Output = Option<T>>>(
    what: &str,
    ask: impl Fn() -> F,
) -> Result<T, TimedOut> {
    let answered = async {
        let mut ticks = interval(PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            if let Some(answer) = ask().await {
                return answer;
            }
        }
    };
    timeout(PATIENCE, answered).await.map_err(|_| TimedOut { what: what.to_owned() })
}

#[cfg(test)]
mod tests {
    //! The answer comes through, and an absent one is named.

    use std::cell::Cell;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_first_answer_ends_the_wait() {
        let questions = Cell::new(0);
        let answer = poll("a third question", || async {
            questions.set(questions.get() + 1);
            (questions.get() == 3).then_some(3)
        });
        assert_eq!(answer.await, Ok(3));
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_never_comes_is_named() {
        let error = poll("the end", || async { None::<()> }).await.unwrap_err();
        assert_eq!(error.to_string(), "the end did not come within 300 s");
    }
}
