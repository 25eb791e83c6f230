//! Whether the API server's storage goes back to an earlier state, as one that is restored from a
//! backup does.
//!
//! Nobody says so: watches that continue at a revision which the storage has not reached again show
//! nothing. But a storage is only replaced under a server that stops or ends its watches, and the newest
//! revision never falls otherwise. So it is requested whenever a connection was lost, and a cluster at
//! rest costs no requests. Only revisions of one resource are compared, since a server may keep others
//! in another storage.

use std::time::Duration;

use super::Uptime;

/// Least time between two checks: a server that is down interrupts every watch, again and again.
pub const CHECK_INTERVAL_MIN: Duration = Duration::from_secs(1);

/// Longest time between two checks that the server refuses: somebody has to allow them, and until then
/// asking changes nothing.
pub const REFUSED_INTERVAL_MAX: Duration = Duration::from_secs(5 * 60);

/// The answer to a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RevisionAnswer {
    /// The newest revision of the storage.
    Newest(u64),
    /// The server refuses to tell.
    Refused,
    /// There was no answer.
    Lost,
}

/// The storage went back to an earlier state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StorageRollback {
    /// The newest revision that was seen before.
    pub seen: u64,
    /// The newest revision now.
    pub now: u64,
}

/// When to ask for the newest revision, and what it means.
#[derive(Debug, Clone)]
pub struct RevisionChecks {
    /// The newest revision that was seen.
    newest: u64,
    /// What `newest` was when the check under way began; `None` when there is none.
    pending: Option<u64>,
    /// When the next check begins; `None` while nothing hints at a restored storage.
    check_at: Option<Uptime>,
    /// When a check may begin at the earliest.
    not_before: Uptime,
    /// When the check under way, or the latest one, began.
    started: Uptime,
    /// How many checks in a row were refused.
    refusals: u32,
}

impl RevisionChecks {
    /// Starts with nothing seen.
    pub fn new(uptime: Uptime) -> Self {
        Self {
            newest: 0,
            pending: None,
            check_at: None,
            not_before: uptime,
            started: uptime,
            refusals: 0,
        }
    }

    /// An answer of the server, or a watch, showed a revision.
    pub fn seen(&mut self, revision: u64) {
        self.newest = self.newest.max(revision);
    }

    /// Something happened that a restored storage would cause too.
    pub fn suspect(&mut self, uptime: Uptime) {
        self.check_at = Some(uptime.max(self.not_before));
    }

    /// When to call [`Self::start`]; `None` while a check is under way or none is needed.
    pub fn wake_at(&self) -> Option<Uptime> {
        self.check_at.filter(|_| self.pending.is_none())
    }

    /// Begins a check if it is time; true if one begins.
    pub fn start(&mut self, uptime: Uptime) -> bool {
        let is_due = self.wake_at().is_some_and(|at| at <= uptime);
        if is_due {
            self.pending = Some(self.newest);
            self.started = uptime;
            self.not_before = uptime + CHECK_INTERVAL_MIN;
            self.check_at = None;
        }
        is_due
    }

    /// The check under way ended. One that was not answered calls for another one soon; one that was
    /// refused for another one later, and later each time.
    pub fn answered(&mut self, answer: RevisionAnswer) -> Option<StorageRollback> {
        // What was seen since the request was sent may be newer than the answer.
        let seen = self.pending.take().unwrap_or_default();
        let now = match answer {
            RevisionAnswer::Newest(now) => now,
            RevisionAnswer::Refused => {
                self.refusals += 1;
                let delay = CHECK_INTERVAL_MIN * 2u32.pow(self.refusals.min(10));
                self.not_before = self.started + delay.min(REFUSED_INTERVAL_MAX);
                self.check_at = Some(self.not_before);
                return None;
            }
            RevisionAnswer::Lost => {
                self.check_at = Some(self.not_before);
                return None;
            }
        };
        self.refusals = 0;
        self.seen(now);
        (now < seen).then_some(StorageRollback { seen, now })
    }
}

#[cfg(test)]
mod tests {
    //! Scripts of what is seen and when it is checked.

    use super::*;

    /// Runs a script of lines `SECONDS EVENT => OUTCOME`.
    #[track_caller]
    fn check(script: &str) {
        let mut checks = RevisionChecks::new(Uptime::default());
        for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let (event, expected) = line.split_once("=>").unwrap_or((line, ""));
            let words: Vec<&str> = event.split_whitespace().collect();
            let uptime = Uptime::from_start(Duration::from_secs(words[0].parse().unwrap()));
            let outcome = match words[1..] {
                ["seen", revision] => {
                    checks.seen(revision.parse().unwrap());
                    String::new()
                }
                ["suspect"] => {
                    checks.suspect(uptime);
                    String::new()
                }
                ["start"] => if checks.start(uptime) { "started" } else { "" }.to_owned(),
                ["lost"] => {
                    assert_eq!(checks.answered(RevisionAnswer::Lost), None);
                    String::new()
                }
                ["refused"] => {
                    assert_eq!(checks.answered(RevisionAnswer::Refused), None);
                    let delay = checks.wake_at().expect("it is tried again");
                    format!("again at {}", delay.since_start().as_secs())
                }
                ["answered", revision] => {
                    let newest = RevisionAnswer::Newest(revision.parse().unwrap());
                    match checks.answered(newest) {
                        Some(StorageRollback { seen, now }) => format!("back from {seen} to {now}"),
                        None => String::new(),
                    }
                }
                _ => panic!("unknown line {line:?}"),
            };
            assert_eq!(outcome, expected.trim(), "after `{event}`");
        }
    }

    #[test]
    fn a_revision_that_falls_is_found_when_a_connection_is_lost() {
        check(
            "0 seen 100
             3600 start =>
             3600 suspect
             3600 start => started
             3600 start =>
             3601 answered 150 =>
             7200 start =>
             7200 suspect
             7200 start => started
             7200 answered 140 => back from 150 to 140",
        );
    }

    #[test]
    fn a_lost_connection_calls_for_a_check_at_once_but_not_more_than_once_a_second() {
        check(
            "0 seen 100
             5 suspect
             5 start => started
             5 lost
             5 suspect
             5 start =>
             6 start => started
             6 answered 90 => back from 100 to 90",
        );
    }

    #[test]
    fn a_check_that_is_refused_is_tried_again_less_and_less_often() {
        check(
            "0 seen 100
             5 suspect
             5 start => started
             5 refused => again at 7
             6 suspect
             6 start =>
             7 start => started
             7 refused => again at 11
             11 start => started
             11 refused => again at 19
             19 start => started
             19 answered 120 =>
             30 suspect
             30 start => started
             30 refused => again at 32",
        );
        let mut at = 0;
        let lines = [2, 4, 8, 16, 32, 64, 128, 256, 300, 300].map(|delay| {
            let began = at;
            at += delay;
            format!("{began} start => started\n{began} refused => again at {at}")
        });
        check(&format!("0 suspect\n{}", lines.join("\n")));
    }

    #[test]
    fn what_was_seen_after_the_request_says_nothing_about_its_answer() {
        check(
            "0 seen 100
             30 suspect
             30 start => started
             30 seen 120
             30 answered 110 =>
             60 suspect
             60 start => started
             60 answered 119 => back from 120 to 119",
        );
    }
}
