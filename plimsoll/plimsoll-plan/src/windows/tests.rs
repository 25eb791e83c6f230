//! When maintenance windows open and close.

use jiff::{SignedDuration, Timestamp};
use plimsoll_api::olm::window::{
    MaintenanceWindowSpec, WindowExclusion, WindowReference, WindowTimes,
};
use plimsoll_content::yaml;
use serde::Deserialize;

use super::{MaintenanceWindows, OpeningTimes, WindowState};

const SECOND: SignedDuration = SignedDuration::from_secs(1);

/// Parses a time.
pub(super) fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// Openings of a MaintenanceWindow.
#[derive(Deserialize)]
struct Case {
    name: String,
    windows: Vec<WindowTimes>,
    #[serde(default)]
    exclusions: Vec<WindowExclusion>,
    after: Timestamp,
    /// The beginning and the end of each.
    openings: Vec<Vec<Timestamp>>,
}

#[test]
fn windows_open_and_close_at_these_times() {
    let documents = yaml::parse(include_str!("openings.yaml"));
    let cases = documents.into_iter().next().unwrap().value.unwrap();
    let cases: Vec<Case> = serde_json::from_value(cases).unwrap();
    assert!(cases.len() > 10);
    for Case { name, windows, exclusions, after, openings } in cases {
        let times = OpeningTimes::parse(&MaintenanceWindowSpec { windows, exclusions }).unwrap();
        let mut moment = after;
        for opening in openings {
            let (opens, closes) = (opening[0], opening.get(1).copied());
            assert_eq!(times.next_opening(moment), Some(opens), "{name}: after {moment}");
            assert_eq!(times.next_closing(opens), closes, "{name}: opened {opens}");
            assert!(!times.is_open(opens - SECOND) && times.is_open(opens), "{name}: {opens}");
            let state = times.state(opens - SECOND);
            let expected = WindowState {
                is_open: false,
                next_opening: Some(opens),
                next_closing: closes,
                changes_at: Some(opens),
            };
            assert_eq!(state, expected, "{name}: before {opens}");
            let Some(closes) = closes else {
                assert_eq!(times.next_opening(opens), None, "{name}");
                assert!(times.state(opens).changes_at > Some(opens), "{name}");
                break;
            };
            assert!(times.is_open(closes - SECOND) && !times.is_open(closes), "{name}: {closes}");
            let state = times.state(closes - SECOND);
            let expected = WindowState {
                is_open: true,
                next_opening: times.next_opening(closes),
                next_closing: Some(closes),
                changes_at: Some(closes),
            };
            assert_eq!(state, expected, "{name}: before {closes}");
            moment = closes - SECOND;
        }
    }
}

/// Returns windows, and exclusions of two days, of which each number selects some.
fn windows_of(number: usize) -> MaintenanceWindowSpec {
    const WINDOWS: [(&str, &str, &str); 8] = [
        ("0 1 * * *", "Europe/Madrid", "2h"),
        ("30 2 * * *", "America/New_York", "30m"),
        ("*/45 3-5 * * *", "Australia/Lord_Howe", "20m"),
        ("0 * * * *", "Europe/Madrid", "15m"),
        ("15 */6 * * *", "Australia/Lord_Howe", "45m"),
        ("0 0 * * 0", "America/New_York", "36h"),
        ("0 22 * * 5", "", "3h"),
        ("50 23 * * *", "", "10m"),
    ];
    let window = |(schedule, time_zone, duration): (&str, &str, &str)| WindowTimes {
        schedule: schedule.into(),
        time_zone: time_zone.into(),
        duration: duration.into(),
    };
    let chosen = [number % 8, (number / 3) % 8, (number * 5 + 1) % 8];
    let exclusion = |hour: usize, hours: usize| {
        let from = begin() + SignedDuration::from_hours(i64::try_from(hour).unwrap());
        let until = from + SignedDuration::from_hours(i64::try_from(hours).unwrap());
        WindowExclusion { from, until, reason: String::new() }
    };
    let exclusions = (0..number % 4).map(|it| exclusion(number * 7 % 40 + 3 * it, number % 5 + 1));
    MaintenanceWindowSpec {
        windows: chosen.map(|it| window(WINDOWS[it])).to_vec(),
        exclusions: exclusions.collect(),
    }
}

/// Returns the beginning of the days on which the clocks of New York go back.
fn begin() -> Timestamp {
    at("2026-10-31T00:00:00Z")
}

#[test]
fn what_opens_and_closes_is_what_single_moments_say() {
    // All times are whole minutes, and two days have more openings than one.
    let minutes: Vec<Timestamp> =
        (0..3 * 24 * 60).map(|it| begin() + SignedDuration::from_mins(it)).collect();
    for number in 0..40 {
        let spec = windows_of(number);
        let times = OpeningTimes::parse(&spec).unwrap();
        let is_open: Vec<bool> = minutes.iter().map(|it| times.is_open(*it)).collect();
        let change = |to: bool| {
            let turns =
                (1..minutes.len()).filter(|at| is_open[*at] == to && is_open[*at - 1] != to);
            turns.map(|at| minutes[at]).collect::<Vec<Timestamp>>()
        };
        for (to, changes) in [(true, change(true)), (false, change(false))] {
            let mut from = minutes[0];
            for changed in changes {
                let next = match to {
                    true => times.next_opening(from),
                    false => times.next_closing(from),
                };
                assert_eq!(next, Some(changed), "{number}: {to} after {from}: {spec:?}");
                from = changed;
            }
        }
        for at in (0..minutes.len()).step_by(17) {
            let state = times.state(minutes[at]);
            assert_eq!(state.is_open, is_open[at]);
            let changed = (at..minutes.len()).find(|it| is_open[*it] != is_open[at]);
            if let Some(changed) = changed {
                assert_eq!(state.changes_at, Some(minutes[changed]), "{number}: {spec:?}");
            }
        }
    }
}

#[test]
fn what_is_no_window_is_named() {
    let check =
        |windows: &[(&str, &str, &str)], exclusion: Option<(&str, &str)>, expected: &str| {
            let windows = windows.iter().map(|(schedule, time_zone, duration)| WindowTimes {
                schedule: (*schedule).into(),
                time_zone: (*time_zone).into(),
                duration: (*duration).into(),
            });
            let exclusions = exclusion.map(|(from, until)| WindowExclusion {
                from: at(from),
                until: at(until),
                reason: String::new(),
            });
            let spec = MaintenanceWindowSpec {
                windows: windows.collect(),
                exclusions: exclusions.into_iter().collect(),
            };
            let error = OpeningTimes::parse(&spec).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        };
    let nights = ("0 22 * * *", "", "4h");
    check(&[], None, "spec.windows is empty: write at least one window");
    check(
        &[nights, ("often", "", "1h")],
        None,
        "spec.windows[1].schedule: `often` is no schedule: write minute, hour, ",
    );
    check(
        &[("0 22 * * *", "Mars", "4h")],
        None,
        "spec.windows[0].timeZone: `Mars` is no time zone",
    );
    let missing = "spec.windows[0].duration is missing: write for example 4h";
    check(&[("0 22 * * *", "", "")], None, missing);
    let none = "spec.windows[0].duration is \"0s\": write for example 4h";
    check(&[("0 22 * * *", "", "0s")], None, none);
    check(
        &[("0 22 * * *", "", "4 hours"), ("", "", "4h")],
        None,
        "spec.windows[0].duration is \"4 hours\": write hours, minutes and seconds, such as 90s, 40m \
         or 1h30m; spec.windows[1].schedule is missing",
    );
    let moment = "2026-01-01T00:00:00Z";
    check(
        &[nights],
        Some((moment, moment)),
        "spec.exclusions[0].until is 2026-01-01T00:00:00Z: write a time after 2026-01-01T00:00:00Z",
    );
}

#[test]
fn a_window_that_is_always_excluded_never_opens() {
    let spec = MaintenanceWindowSpec {
        windows: vec![WindowTimes {
            schedule: "0 0 29 2 *".into(),
            duration: "1h".into(),
            ..WindowTimes::default()
        }],
        exclusions: vec![WindowExclusion {
            from: at("2026-01-01T00:00:00Z"),
            until: Timestamp::MAX,
            reason: String::new(),
        }],
    };
    let times = OpeningTimes::parse(&spec).unwrap();
    assert_eq!(times.state(at("2026-01-01T00:00:00Z")), WindowState::default());
    assert_eq!(
        times.check(at("2026-01-01T00:00:00Z")),
        Err("is not open, it never opens again: change its windows or exclusions".into())
    );
}

#[test]
fn an_own_window_names_its_fields() {
    let check = |schedule: &str, time_zone: &str, duration: &str, expected: &str| {
        let reference = WindowReference {
            schedule: schedule.into(),
            time_zone: time_zone.into(),
            duration: duration.into(),
            ..WindowReference::default()
        };
        let error = MaintenanceWindows::default().check(&reference, at("2026-01-01T12:00:00Z"));
        let error = error.unwrap_err();
        assert!(error.starts_with(expected), "{error}");
    };
    check("often", "", "1h", "schedule: `often` is no schedule");
    check("0 22 * * *", "Mars", "1h", "timeZone: `Mars` is no time zone");
    check("", "", "", "schedule is missing: write for example \"0 22 * * 5\"; duration is missing");
    check("0 22 * * *", "", "4 hours", "duration is \"4 hours\": write hours");
    check("0 22 * * *", "", "4h", "it is not open, it opens 2026-01-01T22:00:00Z");
}

#[test]
fn many_windows_are_searched_no_longer_than_one() {
    let times = |schedule: String, duration: &str| {
        let duration = duration.to_owned();
        WindowTimes { schedule, duration, ..WindowTimes::default() }
    };
    let state = |windows: Vec<WindowTimes>, moment: &str| {
        let spec = MaintenanceWindowSpec { windows, exclusions: Vec::new() };
        OpeningTimes::parse(&spec).unwrap().state(at(moment))
    };
    // Each begins when the one before ends.
    let quarters = (0..64).map(|it| times(format!("{} {} * * *", it % 4 * 15, it / 4), "15m"));
    let closing = state(quarters.collect(), "2026-01-01T00:00:00Z").next_closing;
    assert_eq!(closing, Some(at("2026-01-01T16:00:00Z")));
    // They never close: after some openings of each, what is not known yet is left for later.
    for (count, minutes) in [(1, 400), (64, 7)] {
        let moment = at("2026-01-01T00:00:00Z");
        let always = vec![times("* * * * *".to_owned(), "1m"); count];
        let state = state(always, "2026-01-01T00:00:00Z");
        assert_eq!((state.is_open, state.next_closing), (true, None));
        let searched = moment + SignedDuration::from_mins(minutes);
        assert_eq!(state.changes_at, Some(searched), "{count}");
    }
}
