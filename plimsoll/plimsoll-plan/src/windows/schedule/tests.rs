//! Schedules in local time.

use super::Schedule;
use crate::windows::tests::at;

/// Checks the times of a schedule after a moment.
#[track_caller]
fn check(schedule: &str, zone: &str, after: &str, expected: &[&str]) {
    let parsed = Schedule::parse(schedule, zone).unwrap();
    let times = std::iter::successors(parsed.after(at(after)), |it| parsed.after(*it));
    let times: Vec<_> = times.take(expected.len()).collect();
    let expected: Vec<_> = expected.iter().map(|it| at(it)).collect();
    assert_eq!(times, expected, "{schedule} {zone}");
}

#[test]
fn schedules_follow_the_local_time() {
    let friday = "50 16 * * 5";
    // The clocks go back on Sunday, 25 October 2026, in Madrid, and on 1 November in New York.
    check(
        friday,
        "Europe/Madrid",
        "2026-10-20T00:00:00Z",
        &["2026-10-23T14:50:00Z", "2026-10-30T15:50:00Z", "2026-11-06T15:50:00Z"],
    );
    check(
        friday,
        "America/New_York",
        "2026-10-24T00:00:00Z",
        &["2026-10-30T20:50:00Z", "2026-11-06T21:50:00Z"],
    );
    // They go forward by half an hour on 4 October.
    check(
        friday,
        "Australia/Lord_Howe",
        "2026-10-01T00:00:00Z",
        &["2026-10-02T06:20:00Z", "2026-10-09T05:50:00Z"],
    );
    check(friday, "", "2026-10-20T00:00:00Z", &["2026-10-23T16:50:00Z", "2026-10-30T16:50:00Z"]);
}

#[test]
fn times_that_occur_twice_or_not_at_all_count_once() {
    let madrid = "Europe/Madrid";
    // 02:30 occurs twice.
    let autumn = ["2026-10-24T00:30:00Z", "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"];
    check("30 2 * * *", madrid, "2026-10-23T12:00:00Z", &autumn);
    // On 29 March there is no 02:30: the next valid time is used instead.
    let spring = ["2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"];
    check("30 2 * * *", madrid, "2026-03-27T12:00:00Z", &spring);
    // Several of them are one then.
    let spring = ["2026-03-28T13:00:00Z", "2026-03-29T01:00:00Z", "2026-03-29T12:00:00Z"];
    check("0 2,14 * * *", madrid, "2026-03-28T02:00:00Z", &spring);
    check("*/20 2 * * *", madrid, "2026-03-29T00:30:00Z", &[spring[1], "2026-03-30T00:00:00Z"]);
    let autumn = ["2026-10-25T00:00:00Z", "2026-10-25T00:30:00Z", "2026-10-26T01:00:00Z"];
    check("0,30 2 * * *", madrid, "2026-10-24T12:00:00Z", &autumn);
    // A moment at which the clock shows for the second time what it showed before.
    check("0,30 2 * * *", madrid, "2026-10-25T01:10:00Z", &autumn[2..]);
    check("0 */2 * * *", madrid, "2026-03-29T00:00:00Z", &["2026-03-29T01:00:00Z"]);
    // Half an hour is left out.
    check("15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00Z", &["2026-10-03T15:30:00Z"]);
    // Every hour is every hour that passes.
    let hours = ["2026-03-29T00:00:00Z", "2026-03-29T01:00:00Z", "2026-03-29T02:00:00Z"];
    check("0 * * * *", madrid, "2026-03-28T23:30:00Z", &hours);
    let hours = ["2026-10-25T00:00:00Z", "2026-10-25T01:00:00Z", "2026-10-25T02:00:00Z"];
    check("0 * * * *", madrid, "2026-10-24T23:30:00Z", &hours);
}

#[test]
fn schedules_know_the_calendar() {
    check("0 0 29 2 *", "", "2026-01-01T00:00:00Z", &["2028-02-29T00:00:00Z"]);
    check("0 0 29 2 *", "", "2096-03-01T00:00:00Z", &["2104-02-29T00:00:00Z"]);
    check("0 9 31 * *", "", "2026-01-31T09:00:00Z", &["2026-03-31T09:00:00Z"]);
    check("@monthly", "", "2026-12-31T00:00:00Z", &["2027-01-01T00:00:00Z"]);
    // A day of the month or one of the week, as in cron.
    check(
        "0 0 13 * FRI",
        "",
        "2026-11-07T00:00:00Z",
        &["2026-11-13T00:00:00Z", "2026-11-20T00:00:00Z"],
    );
}

#[test]
fn the_latest_time_is_found_however_many_there_are() {
    for (schedule, zone) in [
        ("*/7 * * * *", "Europe/Madrid"),
        ("30 2 * * *", "Europe/Madrid"),
        ("15 */5 * * 1-5", "America/New_York"),
        ("*/9 1-3 * * *", "America/New_York"),
        ("7 * * * *", "Australia/Lord_Howe"),
        ("0,1 0 1 * *", "Australia/Lord_Howe"),
    ] {
        let parsed = Schedule::parse(schedule, zone).unwrap();
        let since = at("2026-10-20T00:00:00Z");
        let all: Vec<_> = std::iter::successors(parsed.after(since), |it| parsed.after(*it))
            .take(2_000)
            .collect();
        for hour in 0..200 {
            let until = since + jiff::SignedDuration::from_mins(hour * 61);
            let expected = all.iter().rfind(|it| **it <= until).copied();
            assert_eq!(parsed.latest(since, until), expected, "{schedule} {zone} until {until}");
        }
    }
    let minutely = Schedule::parse("* * * * *", "").unwrap();
    let (since, until) = (at("1970-01-01T00:00:00Z"), at("2026-10-20T12:34:56.789Z"));
    assert_eq!(minutely.latest(since, until), Some(at("2026-10-20T12:34:00Z")));
}

#[test]
fn what_is_no_schedule_is_refused() {
    let check = |schedule: &str, zone: &str, expected: &str| {
        let error = Schedule::parse(schedule, zone).unwrap_err();
        assert!(error.contains(expected), "{error}");
    };
    check("every day", "", "`every day` is no schedule: write minute, hour, day of the month");
    check("@sometimes", "", "`@sometimes` is no schedule: write minute, ");
    check("60 0 * * *", "", "`60 0 * * *` is no schedule: ");
    check("0 0 * * 8", "", "`0 0 * * 8` is no schedule: ");
    check("0 0 * * *", "Europe/Nowhere", "`Europe/Nowhere` is no time zone");
    check("TZ=Europe/Madrid 0 0 * * *", "", "write it to timeZone");
    // Seconds and years are not those of CronJobs.
    check("0 0 0 * * *", "", "`0 0 0 * * *` is no schedule");
    check("0 0 1 1 * * 2027", "", "is no schedule: write minute, ");
    check("0 0 30 2 *", "", "`0 0 30 2 *` is never: there is no such day");
    check("0 0 31 4,6 *", "", "is never");
}
