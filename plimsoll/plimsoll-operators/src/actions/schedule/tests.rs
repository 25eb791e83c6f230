//! Schedules in local time, and maintenance windows.

use plimsoll_api::olm::action::MaintenanceWindow;

use super::{Schedule, is_open};
use crate::actions::tests::at;

#[test]
fn schedules_follow_the_local_time() {
    let friday = Schedule::parse("50 16 * * 5", "Europe/Madrid").unwrap();
    // The clocks go back on Sunday, 25 October 2026.
    assert_eq!(friday.after(at("2026-10-20T00:00:00Z")), Some(at("2026-10-23T14:50:00Z")));
    assert_eq!(friday.after(at("2026-10-23T14:50:00Z")), Some(at("2026-10-30T15:50:00Z")));
    let night = Schedule::parse("30 2 * * *", "Europe/Madrid").unwrap();
    // 02:30 occurs twice that night, and counts once.
    let first = night.after(at("2026-10-24T12:00:00Z")).unwrap();
    assert_eq!(first, at("2026-10-25T00:30:00Z"));
    assert_eq!(night.after(first), Some(at("2026-10-26T01:30:00Z")));
    // On 29 March there is no 02:30 at night: the next valid time is used instead.
    let spring = night.after(at("2026-03-28T12:00:00Z")).unwrap();
    assert_eq!(spring, at("2026-03-29T01:00:00Z"));
    let missed = friday.latest(at("2026-10-01T00:00:00Z"), at("2026-10-31T00:00:00Z"));
    assert_eq!(missed, Some(at("2026-10-30T15:50:00Z")));
    assert_eq!(friday.latest(at("2026-10-24T00:00:00Z"), at("2026-10-25T00:00:00Z")), None);
}

#[test]
fn what_is_no_schedule_is_refused() {
    let check = |schedule: &str, zone: &str, expected: &str| {
        let error = Schedule::parse(schedule, zone).unwrap_err();
        assert!(error.contains(expected), "{error}");
    };
    check("every day", "", "`every day` is no schedule");
    check("0 0 * * *", "Europe/Nowhere", "`Europe/Nowhere` is no time zone");
    check("TZ=Europe/Madrid 0 0 * * *", "", "write it to timeZone");
}

#[test]
fn windows_are_open_for_their_duration() {
    let window = |duration: &str| MaintenanceWindow {
        schedule: "0 22 * * *".into(),
        time_zone: "Europe/Madrid".into(),
        duration: duration.into(),
    };
    assert_eq!(is_open(&window("4h"), at("2026-07-01T20:00:00Z")), Ok(Ok(())));
    assert_eq!(is_open(&window("4h"), at("2026-07-01T23:59:59Z")), Ok(Ok(())));
    let opens = Some(at("2026-07-02T20:00:00Z"));
    assert_eq!(is_open(&window("4h"), at("2026-07-02T00:00:00Z")), Ok(Err(opens)));
    assert!(is_open(&window(""), at("2026-07-02T00:00:00Z")).is_err());
}
