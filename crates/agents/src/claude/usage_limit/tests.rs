//! The notices of many versions of Claude Code, against a fixed time in fixed zones.

use super::*;

/// Whole seconds since 1970 of an instant as RFC 3339 writes it.
fn at(instant: &str) -> Timestamp {
    let instant: jiff::Timestamp = instant.parse().expect(instant);
    Timestamp(u64::try_from(instant.as_millisecond()).expect("after 1970"))
}

fn berlin() -> TimeZone {
    TimeZone::get("Europe/Berlin").expect("bundled")
}

fn check(now: &str, text: &str, expected: &str) {
    let found = usage_limit(text, at(now), &berlin());
    let resets = found.map(|limit| limit.resets.map(|t| t.0));
    assert_eq!(resets, Some(Some(at(expected).0)), "{text} at {now}, expected {expected}");
}

#[test]
fn reset_time_is_parsed_from_every_known_notice() {
    // Sunday noon in UTC, 13:00 in Berlin, 07:00 in New York.
    let now = "2026-11-22T12:00:00Z";
    let table = [
        ("You've hit your limit · resets 3pm (America/New_York)", "2026-11-22T20:00:00Z"),
        ("You've hit your session limit · resets 2:30pm (Europe/Berlin)", "2026-11-22T13:30:00Z"),
        ("You’ve hit your session limit ∙ resets 1:30am (Asia/Dhaka)", "2026-11-22T19:30:00Z"),
        ("you have hit your Opus limit | resets 5pm", "2026-11-22T16:00:00Z"),
        ("Youve hit your limit - resets 5pm", "2026-11-22T16:00:00Z"),
        ("You've hit your limit Â· resets 8pm (Asia/Dhaka)", "2026-11-22T14:00:00Z"),
        ("You've hit your org's monthly usage limit · resets Dec 1, 1am", "2026-12-01T00:00:00Z"),
        ("You've reached your Fable 5 limit · resets Mon 9am", "2026-11-23T08:00:00Z"),
        (
            "API Error: 400 You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC.",
            "2026-12-01T00:00:00Z",
        ),
        (
            "You’ve hit your limit for Claude messages. Limits will reset at 9:30 AM. View your usage details.",
            "2026-11-23T08:30:00Z",
        ),
        (
            "Claude usage limit reached. Your limit will reset at 3pm (Asia/Kolkata).",
            "2026-11-23T09:30:00Z",
        ),
        (
            "Claude usage limit reached. Your limit will reset at 1pm (Etc/GMT+5).",
            "2026-11-22T18:00:00Z",
        ),
        ("Claude AI usage limit reached|1763812800", "2025-11-22T12:00:00Z"),
        ("Claude AI usage limit reached|1795363200", "2026-11-22T16:00:00Z"),
        ("Claude AI usage limit reached|1795363200000", "2026-11-22T16:00:00Z"),
        ("You're out of extra usage · resets 3pm", "2026-11-22T14:00:00Z"),
        ("You’re out of usage credits · resets Nov 25, 2pm (UTC)", "2026-11-25T14:00:00Z"),
        ("Your org is out of usage · resets in 3h", "2026-11-22T15:00:00Z"),
        ("5-hour limit reached ∙ resets 11pm", "2026-11-22T22:00:00Z"),
        ("Session limit reached ∙ resets 11:00 PM\nUpgrade", "2026-11-22T22:00:00Z"),
        ("Session limit reached ∙ resets 5:00\u{202f}PM", "2026-11-22T16:00:00Z"),
        ("Opus weekly limit reached ∙ resets Nov 29 at 5pm", "2026-11-29T16:00:00Z"),
        (
            "Weekly limit reached · resets 10am (Asia/Seoul) · /upgrade to Max or turn on /extra-usage",
            "2026-11-23T01:00:00Z",
        ),
        (
            "API Error: 429 {\"error\":{\"code\":\"1308\",\"message\":\"Usage limit reached for 5 hour. Your limit will reset at 2026-11-22 18:55:29\"}}",
            "2026-11-22T17:55:29Z",
        ),
        (
            "Weekly/Monthly Limit Exhausted. Your limit will reset at 2026-11-27 12:05:49",
            "2026-11-27T11:05:49Z",
        ),
        ("usage limit reached, try again at 3:45 PM", "2026-11-22T14:45:00Z"),
    ];
    for (text, expected) in table {
        check(now, text, expected);
        check(now, &text.to_uppercase(), expected);
    }
}

#[test]
fn reset_time_is_parsed_in_common_formats() {
    let now = "2026-11-22T12:00:00Z";
    let table = [
        ("resets 1pm", "2026-11-22T12:00:00Z"),
        ("resets 12:58pm", "2026-11-23T11:58:00Z"),
        ("resets 1:01pm", "2026-11-22T12:01:00Z"),
        ("resets 12am (UTC)", "2026-11-23T00:00:00Z"),
        ("resets 12pm (UTC)", "2026-11-22T12:00:00Z"),
        ("resets 12:30pm (UTC)", "2026-11-22T12:30:00Z"),
        ("resets 12:30 a.m. (UTC)", "2026-11-23T00:30:00Z"),
        ("resets 15:00", "2026-11-22T14:00:00Z"),
        ("resets: 15:00", "2026-11-22T14:00:00Z"),
        ("resets 15:00 UTC", "2026-11-22T15:00:00Z"),
        ("resets 15:00 UTC - see the plan", "2026-11-22T15:00:00Z"),
        ("resets 3pm UTC and so on", "2026-11-22T15:00:00Z"),
        ("resets 3pm, UTC.", "2026-11-22T15:00:00Z"),
        ("resets 3pm (GMT)", "2026-11-22T15:00:00Z"),
        ("resets 3pm (UTC+2)", "2026-11-22T13:00:00Z"),
        ("resets 3pm (GMT-5)", "2026-11-22T20:00:00Z"),
        ("resets 3pm (+05:30)", "2026-11-23T09:30:00Z"),
        ("resets 3pm +0530.", "2026-11-23T09:30:00Z"),
        ("resets 3pm America/Port-au-Prince.", "2026-11-22T20:00:00Z"),
        ("resets 3pm (america/argentina/buenos_aires)", "2026-11-22T18:00:00Z"),
        ("resets 3pm (Europe/Barcelona)", "2026-11-22T14:00:00Z"),
        ("resets 3pm (Etc/Unknown)", "2026-11-22T14:00:00Z"),
        ("resets 3pm (", "2026-11-22T14:00:00Z"),
        ("resets 3pm ()", "2026-11-22T14:00:00Z"),
        ("resets 3pm (+99:99)", "2026-11-22T14:00:00Z"),
        ("resets in 2 hours 5 minutes", "2026-11-22T14:05:00Z"),
        ("resets in 1 day, 2 hours and 5 minutes.", "2026-11-23T14:05:00Z"),
        ("resets in 45m", "2026-11-22T12:45:00Z"),
        ("resets in 1d 5h", "2026-11-23T17:00:00Z"),
        ("resets in: 4hr 29min 10s · later", "2026-11-22T16:29:10Z"),
        ("resets tomorrow at 9am", "2026-11-23T08:00:00Z"),
        ("resets 9am tomorrow (UTC)", "2026-11-23T09:00:00Z"),
        ("resets today at 9am", "2026-11-22T08:00:00Z"),
        ("resets tomorrow", "2026-11-22T23:00:00Z"),
        ("resets Thurs 9am", "2026-11-26T08:00:00Z"),
        ("resets Sunday, 2pm", "2026-11-22T13:00:00Z"),
        ("resets Sunday, 12pm", "2026-11-22T11:00:00Z"),
        ("resets Sat 2pm", "2026-11-28T13:00:00Z"),
        ("resets Mon 12:00am", "2026-11-22T23:00:00Z"),
        ("resets Sunday Nov 29, 2am (Europe/London)", "2026-11-29T02:00:00Z"),
        ("resets Dec 4", "2026-12-03T23:00:00Z"),
        ("resets Dec 4 (UTC)", "2026-12-04T00:00:00Z"),
        ("resets 4 December at 15:00", "2026-12-04T14:00:00Z"),
        ("resets 5pm on Dec 4 (UTC)", "2026-12-04T17:00:00Z"),
        ("resets Jan 2, 2027, 3pm (UTC)", "2027-01-02T15:00:00Z"),
        ("resets Jan 2, 2027 at 3pm (UTC)", "2027-01-02T15:00:00Z"),
        ("resets Jul 15 at 12am (UTC)", "2027-07-15T00:00:00Z"),
        ("resets Jul 15, 12:30am", "2027-07-14T22:30:00Z"),
        ("limit will reset at 2026-11-22T15:00:00Z", "2026-11-22T15:00:00Z"),
        ("limit will reset at 2026-11-22T15:00:00.250+02:00.", "2026-11-22T13:00:00Z"),
        ("reset at 1795363200", "2026-11-22T16:00:00Z"),
        ("resets soon, i.e. resets 3pm", "2026-11-22T14:00:00Z"),
    ];
    for (words, expected) in table {
        check(now, &format!("You've hit your limit · {words}"), expected);
    }
}

#[test]
fn date_without_year_means_next_or_just_past_occurrence() {
    let table = [
        ("2026-12-30T12:00:00Z", "Jan 2 at 3pm (UTC)", "2027-01-02T15:00:00Z"),
        ("2026-07-15T06:00:00Z", "Jul 15 at 12am (UTC)", "2026-07-15T00:00:00Z"),
        ("2026-07-15T13:00:00Z", "Jul 15 at 12am (UTC)", "2027-07-15T00:00:00Z"),
        ("2027-01-01T03:00:00Z", "Dec 31 at 11pm (UTC)", "2026-12-31T23:00:00Z"),
        ("2027-03-01T00:00:00Z", "Feb 29 at 1am (UTC)", "2028-02-29T01:00:00Z"),
        ("2026-11-22T23:30:00Z", "1am", "2026-11-23T00:00:00Z"),
    ];
    for (now, words, expected) in table {
        check(now, &format!("weekly limit reached ∙ resets {words}"), expected);
    }
}

#[test]
fn time_skipped_or_repeated_by_dst_is_resolved() {
    let table = [
        // The night of March 29: 02:30 does not exist in Berlin.
        ("2026-03-28T23:00:00Z", "2:30am", "2026-03-29T01:30:00Z"),
        // The night of October 25: 02:30 comes at 00:30 and at 01:30 UTC.
        ("2026-10-24T23:00:00Z", "2:30am", "2026-10-25T00:30:00Z"),
        ("2026-10-25T01:00:00Z", "2:30am", "2026-10-25T01:30:00Z"),
        ("2026-10-25T02:00:00Z", "2:30am", "2026-10-26T01:30:00Z"),
    ];
    for (now, words, expected) in table {
        check(now, &format!("session limit reached ∙ resets {words}"), expected);
    }
}

#[test]
fn time_of_day_counts_from_when_the_notice_was_written() {
    let table = [
        // Written before the reset and read after it: today, and not tomorrow.
        ("2026-11-22T12:25:00Z", "12:26pm (UTC)", "2026-11-22T12:26:00Z"),
        ("2026-11-22T12:29:00Z", "12:26pm (UTC)", "2026-11-23T12:26:00Z"),
        ("2026-11-22T23:59:30Z", "12am (UTC)", "2026-11-23T00:00:00Z"),
        // The evening before the clocks are set forward, and back, in New York.
        ("2026-03-08T04:00:00Z", "3am (America/New_York)", "2026-03-08T07:00:00Z"),
        ("2026-11-01T03:00:00Z", "3am (America/New_York)", "2026-11-01T08:00:00Z"),
        ("2026-11-01T05:20:00Z", "1:30am (America/New_York)", "2026-11-01T05:30:00Z"),
        ("2026-11-01T05:40:00Z", "1:30am (America/New_York)", "2026-11-01T06:30:00Z"),
        ("2026-11-22T18:00:00Z", "12:15am (Asia/Kathmandu)", "2026-11-22T18:30:00Z"),
        ("2026-11-22T12:00:00Z", "in 5 minutes", "2026-11-22T12:05:00Z"),
    ];
    for (written, words, expected) in table {
        check(written, &format!("You\\u2019ve hit your session limit · resets {words}"), expected);
    }
}

#[test]
fn notice_without_valid_time_is_limit_without_reset() {
    let texts = [
        "You've hit your limit",
        "You've hit your monthly spend limit. Run /usage-credits to manage your limit.",
        "You've hit your org's monthly spend limit · ask your admin to raise it",
        "You've reached your Fable limit. Run /usage-credits to continue or switch models with /model.",
        "You're out of extra usage.",
        "Your org is out of usage · contact your admin",
        "Weekly limit reached",
        "Fable 5 limit reached",
        "usage limit reached — check plan",
        "Claude AI usage limit reached|1759",
        "Claude AI usage limit reached|99999999999999999999999999",
        "You've hit your limit · resets next month",
        "You've hit your limit · resets soon",
        "You've hit your limit · resets today",
        "You've hit your limit · resets 15",
        "You've hit your limit · resets 13pm",
        "You've hit your limit · resets 25:00",
        "You've hit your limit · resets Feb 30, 3pm",
        "You've hit your limit · resets Jan 2, 2099, 3pm",
        "You've hit your limit · resets in 99999999999999999 days",
        "You've hit your limit · resets in a while",
        "You've hit your limit · resets",
    ];
    for text in texts {
        let found = usage_limit(text, at("2026-11-22T12:00:00Z"), &berlin());
        assert_eq!(found, Some(UsageLimit { resets: None }), "{text}");
    }
}

#[test]
fn other_limits_are_not_usage_limits() {
    let texts = [
        "",
        "the rate limit resets daily",
        "limit reached",
        "request_limit",
        "API Error: 429 {\"type\":\"error\",\"error\":{\"type\":\"rate_limit_error\",\"message\":\"This request would exceed your account's rate limit. Please try again later.\"}}",
        "API Error: Server is temporarily limiting requests (not your usage limit) · try again in 2 minutes",
        "API Error: Request rejected (429) · resets 3pm",
        "You've used 90% of your weekly limit · resets 3pm",
        "Approaching usage limit · resets at 3pm",
        "You're close to your usage limit",
        "You're now using usage credits · Your session limit resets 3pm",
        "You've hit your fast limit · resets in 5m",
        "You've hit your rate limit",
        "You've hit your GitHub API limit",
        "You've reached your requests per minute limit",
        "You have reached your maximum output tokens limit",
        "You've hit your target. The limit is 3pm",
        "I've hit your limit",
        "Fast limit reached and temporarily disabled · resets in 5m",
        "Context limit reached · /compact or /clear to continue",
        "Subagent nesting limit reached (depth 3 of 3)",
        "the handler runs after the weekly limit reached its maximum",
        "ran out of usage examples",
        "Credit balance is too low",
        "hit your",
        "limit reached your",
    ];
    for text in texts {
        assert_eq!(usage_limit(text, at("2026-11-22T12:00:00Z"), &berlin()), None, "{text}");
    }
}

#[test]
fn epoch_number_may_be_seconds_or_milliseconds() {
    let now = at("2026-11-22T12:00:00Z");
    let expected = Some(at("2026-11-22T16:00:00Z"));
    assert_eq!(normalise(1_795_363_200.0, now), expected);
    assert_eq!(normalise(1_795_363_200_000.0, now), expected);
    assert_eq!(normalise(1_795_363_200.5, now), expected.map(|t| t.plus(500)));
    assert_eq!(normalise(1_795_363_200_123.0, now), expected.map(|t| t.plus(123)));
    let nonsense = [-1.0, 0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, 1e9, 1e18];
    for number in nonsense {
        assert_eq!(normalise(number, now), None, "{number}");
    }
}

#[test]
fn mutated_notices_do_not_panic() {
    let seeds = [
        "You've hit your limit · resets Sunday Oct 9, 2026 at 12:30:59.5pm (America/New_York)",
        "Claude AI usage limit reached|1763812800",
        "5-hour limit reached ∙ resets in 2 hours, 5 minutes and 1d +05:30",
        "out of extra usage; You’re out of extra usage reset at 2026-11-22T15:00:00Z-1130é",
    ];
    let pieces =
        ["", " ", "(", ")", "+", "-", ":", "/", "999999999", "é", "·", "pm", "İ", "\u{202f}"];
    let zone = berlin();
    let times = [0, 1, 1_795_348_800_000, 253_402_207_200_000, i64::MAX.unsigned_abs(), u64::MAX]
        .map(Timestamp);
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let mut below = |bound: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        usize::try_from(random >> 33).expect("31 bits") % bound
    };
    for round in 0..20_000 {
        let mut chars: Vec<char> = seeds[round % seeds.len()].chars().collect();
        for _ in 0..=below(4) {
            let from = below(chars.len() + 1);
            let to = (from + below(6)).min(chars.len());
            chars.splice(from..to, pieces[below(pieces.len())].chars());
        }
        let text: String = chars.into_iter().collect();
        let _ = usage_limit(&text, times[below(times.len())], &zone);
    }
}
