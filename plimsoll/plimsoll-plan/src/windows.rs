//! Maintenance windows: when they are open, and when that changes.

pub mod problems;
pub mod schedule;

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use plimsoll_api::olm::window::{
    MaintenanceWindowSpec, WindowExclusion, WindowReference, WindowTimes,
};
use plimsoll_api::{Reason, duration};
use serde::Deserialize as _;
use serde_json::Value;

use self::problems::window_problems;
use self::schedule::Schedule;

/// How many openings are searched for a closing, of all windows together: more than a year of days that follow one
/// another, in milliseconds. One that is open every minute of all days would be searched for ever.
const OPENINGS_SEARCHED_MAX: usize = 400;
/// How far ahead a closing is searched for.
const HORIZON: SignedDuration = SignedDuration::from_hours(10 * 366 * 24);

/// A MaintenanceWindow with its name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NamedWindow {
    /// The name of the MaintenanceWindow.
    pub name: String,
    /// The spec of the MaintenanceWindow.
    pub spec: MaintenanceWindowSpec,
}

/// The MaintenanceWindows of a cluster: the opening times of each, or what is wrong with it.
#[derive(Debug, Clone, Default)]
pub struct MaintenanceWindows {
    windows: BTreeMap<String, Result<OpeningTimes, String>>,
    /// Why they cannot be listed; `None` if they can.
    unknown: Option<String>,
}

/// Why a MaintenanceWindow counts as closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClosedWindow {
    /// The reason.
    pub reason: Reason,
    /// The same with what to do, as a sentence without a full stop.
    pub message: String,
}

/// The times at which a MaintenanceWindow is open.
#[derive(Debug, Clone)]
pub struct OpeningTimes {
    windows: Vec<Window>,
    exclusions: Vec<WindowExclusion>,
}

/// A window that opens on a schedule.
#[derive(Debug, Clone)]
struct Window {
    schedule: Schedule,
    lasts: SignedDuration,
}

/// Whether a MaintenanceWindow is open at a moment, and when that changes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WindowState {
    /// Whether it is open.
    pub is_open: bool,
    /// When it opens next; `None` if it never does.
    pub next_opening: Option<Timestamp>,
    /// When it closes next; `None` if it never does, or not for a long time.
    pub next_closing: Option<Timestamp>,
    /// When the state is to be computed again; `None` if it stays as it is.
    pub changes_at: Option<Timestamp>,
}

/// The end of an opening.
enum Closing {
    /// It closes at this time.
    At(Timestamp),
    /// It is open until this time at least.
    NotBefore(Timestamp),
}

impl Closing {
    /// Returns the time at which it closes; `None` if that is not known.
    fn known(self) -> Option<Timestamp> {
        match self {
            Self::At(time) => Some(time),
            Self::NotBefore(_) => None,
        }
    }
}

impl MaintenanceWindows {
    /// Returns MaintenanceWindows that cannot be listed. `why` is what the API server says.
    pub fn unknown(why: &str) -> Self {
        Self { unknown: Some(why.to_owned()), ..Self::default() }
    }

    /// Adds a MaintenanceWindow as it is in the cluster, which may be one that cannot be read.
    pub fn insert_object(&mut self, name: &str, object: &Value) {
        let spec = MaintenanceWindowSpec::deserialize(&object["spec"]);
        let spec = spec.map_err(|error| format!("spec: {error}"));
        self.insert(name, spec.as_ref().map_err(String::clone));
    }

    /// Adds a MaintenanceWindow, with what is wrong with it if it cannot be read.
    pub fn insert(&mut self, name: &str, spec: Result<&MaintenanceWindowSpec, String>) {
        self.windows.insert(name.to_owned(), spec.and_then(OpeningTimes::parse));
    }

    /// Removes a MaintenanceWindow.
    pub fn remove(&mut self, name: &str) {
        self.windows.remove(name);
    }

    /// Returns the opening times of a MaintenanceWindow, or what is wrong with it; `None` if it does not exist.
    pub fn find(&self, name: &str) -> Option<Result<&OpeningTimes, &str>> {
        self.windows.get(name).map(|it| it.as_ref().map_err(String::as_str))
    }

    /// Returns why a MaintenanceWindow counts as closed at a moment; `None` if it is open.
    pub fn closed(&self, name: &str, moment: Timestamp) -> Option<ClosedWindow> {
        let (reason, message) = match (&self.unknown, self.find(name)) {
            (Some(why), _) => (
                Reason::MaintenanceWindowsUnknown,
                format!(
                    "whether MaintenanceWindow {name} is open is unknown: {why}; grant get, list and watch on \
                     maintenancewindows.olm.io"
                ),
            ),
            (None, None) => (
                Reason::InvalidMaintenanceWindow,
                format!("there is no MaintenanceWindow {name}: create it, or name another one"),
            ),
            (None, Some(Err(why))) => (
                Reason::InvalidMaintenanceWindow,
                format!("MaintenanceWindow {name} is not accepted: {why}"),
            ),
            (None, Some(Ok(times))) => {
                let why = times.check(moment).err()?;
                (Reason::MaintenanceWindowClosed, format!("MaintenanceWindow {name} {why}"))
            }
        };
        Some(ClosedWindow { reason, message })
    }

    /// Returns when a MaintenanceWindow that is closed at a moment opens; `None` if it is open, never opens, or cannot
    /// be read.
    pub fn opens_at(&self, name: &str, moment: Timestamp) -> Option<Timestamp> {
        let times = self.find(name)?.ok()?;
        if times.is_open(moment) { None } else { times.first_open(moment) }
    }

    /// Checks that the window of a reference is open at a moment.
    ///
    /// # Errors
    ///
    /// The reason that it is not, as a sentence without a full stop.
    pub fn check(&self, reference: &WindowReference, moment: Timestamp) -> Result<(), String> {
        if !reference.name.is_empty() {
            return self.closed(&reference.name, moment).map_or(Ok(()), |it| Err(it.message));
        }
        let times = OpeningTimes::parse_own(&own_times(reference))?;
        times.check(moment).map_err(|why| format!("it {why}"))
    }
}

/// Returns the times of a reference that names no MaintenanceWindow.
pub fn own_times(reference: &WindowReference) -> WindowTimes {
    let WindowReference { name: _, schedule, time_zone, duration } = reference.clone();
    WindowTimes { schedule, time_zone, duration }
}

impl FromIterator<NamedWindow> for MaintenanceWindows {
    fn from_iter<T: IntoIterator<Item = NamedWindow>>(windows: T) -> Self {
        let mut found = Self::default();
        for NamedWindow { name, spec } in windows {
            found.insert(&name, Ok(&spec));
        }
        found
    }
}

impl OpeningTimes {
    /// Parses the windows and exclusions of a MaintenanceWindow.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with it, in one message.
    pub fn parse(spec: &MaintenanceWindowSpec) -> Result<Self, String> {
        let mut problems = Vec::new();
        let mut windows = Vec::new();
        if spec.windows.is_empty() {
            problems.push("spec.windows is empty: write at least one window".to_owned());
        }
        for (index, times) in spec.windows.iter().enumerate() {
            problems.extend(window_problems(times, &format!("spec.windows[{index}]")));
            windows.extend(Window::parse(times));
        }
        for (index, exclusion) in spec.exclusions.iter().enumerate() {
            let WindowExclusion { from, until, .. } = exclusion;
            if until <= from {
                problems.push(format!(
                    "spec.exclusions[{index}].until is {until}: write a time after {from}"
                ));
            }
        }
        match problems.is_empty() {
            true => Ok(Self { windows, exclusions: spec.exclusions.clone() }),
            false => Err(problems.join("; ")),
        }
    }

    /// Parses the window of a reference that names no MaintenanceWindow.
    fn parse_own(times: &WindowTimes) -> Result<Self, String> {
        let problems = window_problems(times, "");
        match problems.is_empty() {
            true => Ok(Self {
                windows: Window::parse(times).into_iter().collect(),
                exclusions: Vec::new(),
            }),
            false => Err(problems.join("; ")),
        }
    }

    /// Returns whether it is open at a moment.
    pub fn is_open(&self, moment: Timestamp) -> bool {
        self.exclusion(moment).is_none() && self.is_window_open(moment)
    }

    /// Returns the first time after a moment at which it opens; `None` if it never does, or stays open for a long
    /// time before.
    pub fn next_opening(&self, after: Timestamp) -> Option<Timestamp> {
        match self.is_open(after) {
            true => self.first_open(self.closing(after).known()?),
            false => self.first_open(after),
        }
    }

    /// Returns the first time after a moment at which it closes; `None` if it never does, or not for a long time.
    pub fn next_closing(&self, after: Timestamp) -> Option<Timestamp> {
        self.closing(self.first_open(after)?).known()
    }

    /// Returns the state at a moment.
    pub fn state(&self, moment: Timestamp) -> WindowState {
        if !self.is_open(moment) {
            let next_opening = self.first_open(moment);
            let next_closing = next_opening.and_then(|it| self.closing(it).known());
            let changes_at = next_opening;
            return WindowState { is_open: false, next_opening, next_closing, changes_at };
        }
        let (next_closing, changes_at) = match self.closing(moment) {
            Closing::At(time) => (Some(time), time),
            Closing::NotBefore(time) => (None, time),
        };
        let next_opening = next_closing.and_then(|it| self.first_open(it));
        let changes_at = Some(changes_at).filter(|it| *it > moment);
        WindowState { is_open: true, next_opening, next_closing, changes_at }
    }

    /// Checks that it is open at a moment.
    ///
    /// # Errors
    ///
    /// The reason that it is not, as the end of a sentence.
    fn check(&self, moment: Timestamp) -> Result<(), String> {
        if self.is_open(moment) {
            return Ok(());
        }
        let exclusion = self.exclusion(moment).filter(|it| !it.reason.is_empty());
        let because = exclusion.map(|it| format!(" ({})", it.reason)).unwrap_or_default();
        let opens = match self.first_open(moment) {
            Some(time) => format!("it opens {time}"),
            None => "it never opens again: change its windows or exclusions".to_owned(),
        };
        Err(format!("is not open{because}, {opens}"))
    }

    /// Returns the first moment from another one on at which it is open; `None` if there is none.
    fn first_open(&self, from: Timestamp) -> Option<Timestamp> {
        let mut moment = from;
        loop {
            // Each exclusion is passed once.
            while let Some(exclusion) = self.exclusion(moment) {
                moment = exclusion.until;
            }
            if self.is_window_open(moment) {
                return Some(moment);
            }
            moment = self.windows.iter().filter_map(|it| it.schedule.after(moment)).min()?;
        }
    }

    /// Returns when it closes that is open at a moment.
    fn closing(&self, open: Timestamp) -> Closing {
        let excluded = self.exclusions.iter().map(|it| it.from).filter(|from| *from > open).min();
        let horizon = open.saturating_add(HORIZON).unwrap_or(Timestamp::MAX);
        let mut end = open;
        let mut searched = 0;
        // Since when each window may have opened again: those that have not stay out of the search.
        let mut reopened = vec![open; self.windows.len()];
        while searched < OPENINGS_SEARCHED_MAX {
            if let Some(from) = excluded.filter(|from| *from <= end) {
                return Closing::At(from);
            }
            let mut latest = None;
            for (window, reopened) in self.windows.iter().zip(&mut reopened) {
                if *reopened <= end {
                    searched += 1;
                    latest = latest.max(window.closing(end));
                    *reopened = window.schedule.after(end).unwrap_or(Timestamp::MAX);
                }
            }
            match latest {
                None => return Closing::At(end),
                Some(closing) if closing > horizon => return Closing::NotBefore(horizon),
                Some(closing) => end = closing,
            }
        }
        Closing::NotBefore(end)
    }

    /// Returns whether one of the windows is open at a moment, whatever the exclusions say.
    fn is_window_open(&self, moment: Timestamp) -> bool {
        self.windows.iter().any(|it| it.closing(moment).is_some())
    }

    /// Returns an exclusion that is in effect at a moment; `None` if there is none.
    fn exclusion(&self, moment: Timestamp) -> Option<&WindowExclusion> {
        self.exclusions.iter().find(|it| it.from <= moment && moment < it.until)
    }
}

impl Window {
    /// Parses a window; `None` if something is wrong with it.
    fn parse(times: &WindowTimes) -> Option<Self> {
        let schedule = Schedule::parse(&times.schedule, &times.time_zone).ok()?;
        let lasts = SignedDuration::try_from(duration::parse(&times.duration).ok()?).ok()?;
        Some(Self { schedule, lasts })
    }

    /// Returns when it closes if it is open at a moment; `None` if it is not.
    fn closing(&self, moment: Timestamp) -> Option<Timestamp> {
        let since = moment.saturating_sub(self.lasts).unwrap_or(Timestamp::MIN);
        let opened = self.schedule.latest(since.max(Timestamp::UNIX_EPOCH), moment)?;
        Some(opened.saturating_add(self.lasts).unwrap_or(Timestamp::MAX))
    }
}

#[cfg(test)]
mod tests;
