//! The account's usage limit, as Claude Code words it, and the moment at which it resets. Pure.
//!
//! The program reports it in prose, in its own zone, and in another way every few versions. So the text is cut into
//! words. One of the known openings must be among them, and only the words after that opening are read as a time,
//! because an answer that merely talks about limits must not park a run.

use std::time::Duration;

use jiff::civil::{Date, Time};
use jiff::fmt::temporal::DateTimeParser;
use jiff::tz::TimeZone;

use raymond_model::time::Timestamp;

/// The longest time until a reset, in milliseconds. A limit resets within weeks: a later moment was misread.
const YEAR_MS: u64 = 366 * 24 * 3_600_000;

/// The time, in milliseconds, for which a clock time that has passed still means today, so that "resets at 3pm"
/// read at 3:00:10 is not tomorrow.
const MOMENT_MS: u64 = 60_000;

/// The time, in milliseconds, for which a date that has passed is meant as it stands, not a year later: the limit
/// is over.
const JUST_PAST_MS: u64 = 12 * 3_600_000;

/// The words that name the account's limits, as in `weekly limit reached`.
const LIMITED: [&str; 12] = [
    "usage", "hour", "session", "daily", "weekly", "monthly", "opus", "sonnet", "haiku", "fable",
    "spend", "credit",
];

/// The words that name limits other than the account's.
const OTHERS: [&str; 6] = ["fast", "rate", "context", "request", "token", "concurrency"];

const MONTHS: &str = "january february march april may june july august september october \
                      november december";
const WEEKDAYS: &str = "monday tuesday wednesday thursday friday saturday sunday";

/// Lowercase words, numbers and single signs, without the white space.
type TokenSlice<'t> = &'t [&'t str];

/// A value that was read from the start of tokens, and the tokens that are left.
type TokenParseResult<'t, T> = Option<(T, TokenSlice<'t>)>;

/// A usage limit that is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UsageLimit {
    /// The moment at which it resets, if the text states it in a known form.
    pub(crate) resets: Option<Timestamp>,
}

/// Finds a reached usage limit in `text`, the message of a failed turn.
///
/// A time of day is the next one after `now`, the time at which the text was written, in the zone that the text names,
/// or in `local` if it names none that is known. A date that is past by up to 12 hours is returned as the
/// past moment it is. A reset more than a year away counts as not understood.
pub(crate) fn usage_limit(text: &str, now: Timestamp, local: &TimeZone) -> Option<UsageLimit> {
    // JSON inside of a text may have its quotes escaped.
    let text = text.to_ascii_lowercase().replace("\\u2019", "’");
    let tokens = tokens(&text);
    let after = (0..tokens.len()).find_map(|at| opening(&tokens, at))?;
    let resets = (0..after.len()).find_map(|at| match &after[at..] {
        ["reset" | "resets" | "access" | "again" | "|", rest @ ..] => moment(rest, now, local),
        _ => None,
    });
    Some(UsageLimit { resets })
}

/// Returns the moment of a number of seconds or milliseconds since 1970, whichever fits, because versions differ.
/// `None` for a number that is neither: negative, not finite, or more than a year away from `now`.
pub(crate) fn normalise(resets_at: f64, now: Timestamp) -> Option<Timestamp> {
    let read = Duration::try_from_secs_f64(resets_at).ok()?;
    // As seconds this is the year 5138, as milliseconds 1973.
    let millis =
        if read.as_secs() < 100_000_000_000 { read.as_millis() } else { read.as_secs().into() };
    sane(Timestamp(u64::try_from(millis).ok()?), now)
}

fn sane(at: Timestamp, now: Timestamp) -> Option<Timestamp> {
    (at.0.abs_diff(now.0) <= YEAR_MS).then_some(at)
}

fn tokens(text: &str) -> Vec<&str> {
    let kind = |c: char| if c.is_alphabetic() { 1 } else { u8::from(c.is_ascii_digit()) * 2 };
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let end = match kind(first) {
            0 => first.len_utf8(),
            run => rest.find(|c| kind(c) != run).unwrap_or(rest.len()),
        };
        tokens.push(&rest[..end]);
        rest = rest[end..].trim_start();
    }
    tokens
}

/// Returns the tokens after the opening of a limit's notice, if there is one around `at`.
fn opening(tokens: TokenSlice<'_>, at: usize) -> Option<TokenSlice<'_>> {
    let before = &tokens[..at];
    match &tokens[at..] {
        ["hit" | "reached", "your", rest @ ..] => {
            let you = matches!(before, [.., "you", "have"] | [.., "you", _, "ve"] | [.., "youve"]);
            let named = &rest[..rest.iter().take(8).take_while(|t| is_in_clause(t)).count()];
            let limit = named.iter().position(|t| matches!(*t, "limit" | "limits"))?;
            let ours = limit == 0 || named[..limit].iter().any(|t| LIMITED.contains(t));
            (you && ours && !named[..limit].iter().any(is_other)).then_some(rest)
        }
        ["limit", "reached" | "exhausted", rest @ ..] => {
            let named = before.iter().rev().take_while(|t| is_in_clause(t));
            let words: Vec<&str> = named.copied().filter(|t| t.len() > 1).take(5).collect();
            let ours = words.iter().any(|t| LIMITED.contains(t));
            (ours && words.len() < 5 && !words.iter().any(is_other)).then_some(rest)
        }
        ["out", "of", "usage", rest @ ..] | ["out", "of", "extra", "usage", rest @ ..] => {
            matches!(before, [.., "re" | "are" | "is" | "youre"]).then_some(rest)
        }
        _ => None,
    }
}

/// Returns whether a word, or the plural of one, names a limit that is not the account's.
fn is_other(token: &&str) -> bool {
    OTHERS
        .iter()
        .any(|other| token.strip_prefix(other).is_some_and(|rest| matches!(rest, "" | "s")))
}

/// Returns whether a token continues the clause that it is in.
fn is_in_clause(token: &str) -> bool {
    matches!(token, "'" | "’" | "-" | "/" | "_") || token.starts_with(|c: char| c.is_alphanumeric())
}

/// Returns the moment at the start of `tokens`.
fn moment(tokens: TokenSlice<'_>, now: Timestamp, local: &TimeZone) -> Option<Timestamp> {
    let tokens = skip(tokens);
    let at = match tokens {
        ["in", rest @ ..] => now.plus(span(skip(rest))?),
        [digits, ..] if digits.len() > 8 => return normalise(digits.parse().ok()?, now),
        _ => {
            let (before, rest) = optional(day, tokens);
            let (time, rest) = optional(clock, skip(rest));
            let (after, rest) = optional(day, skip(rest));
            let zone = zone(skip(rest)).unwrap_or_else(|| local.clone());
            due(before.or(after), time, &zone, now)?
        }
    };
    sane(at, now)
}

fn skip(mut tokens: TokenSlice<'_>) -> TokenSlice<'_> {
    while let [":" | "," | "at" | "on" | "and" | "t", rest @ ..] = tokens {
        tokens = rest;
    }
    tokens
}

fn optional<'t, T>(
    read: fn(TokenSlice<'t>) -> TokenParseResult<'t, T>,
    tokens: TokenSlice<'t>,
) -> (Option<T>, TokenSlice<'t>) {
    read(tokens).map_or((None, tokens), |(found, rest)| (Some(found), rest))
}

/// Returns the milliseconds of `2 hours 5 minutes`, `1d 5h`, `45m`.
fn span(mut tokens: TokenSlice<'_>) -> Option<u64> {
    let mut total = None;
    while let [number, unit, rest @ ..] = skip(tokens) {
        let seconds = match *unit {
            "s" | "sec" | "secs" | "second" | "seconds" => 1,
            "m" | "min" | "mins" | "minute" | "minutes" => 60,
            "h" | "hr" | "hrs" | "hour" | "hours" => 3600,
            "d" | "day" | "days" => 86_400,
            _ => break,
        };
        let Ok(number) = number.parse::<u64>() else { break };
        total = Some(number.checked_mul(seconds * 1000)?.checked_add(total.unwrap_or(0))?);
        tokens = rest;
    }
    total
}

#[derive(Clone, Copy)]
enum ResetDay {
    /// The number of days from today.
    In(i8),
    /// The next such weekday, from Monday as 0.
    Weekday(i8),
    /// The next date with this month and day.
    Yearly(i8, i8),
    Exactly(Date),
}

fn day(tokens: TokenSlice<'_>) -> TokenParseResult<'_, ResetDay> {
    match tokens {
        ["today", rest @ ..] => Some((ResetDay::In(0), rest)),
        ["tomorrow", rest @ ..] => Some((ResetDay::In(1), rest)),
        [year, "-", month, "-", day, rest @ ..] => {
            let date = Date::new(year.parse().ok()?, month.parse().ok()?, day.parse().ok()?);
            Some((ResetDay::Exactly(date.ok()?), rest))
        }
        [name, rest @ ..] => {
            let Some(weekday) = index(WEEKDAYS, name) else { return month_and_day(tokens) };
            month_and_day(skip(rest)).or(Some((ResetDay::Weekday(weekday), rest)))
        }
        [] => None,
    }
}

/// Reads `Oct 9`, `9 October`, `Jan 2, 2027`.
fn month_and_day(tokens: TokenSlice<'_>) -> TokenParseResult<'_, ResetDay> {
    let [first, second, rest @ ..] = tokens else { return None };
    let (month, day) = match index(MONTHS, first) {
        Some(month) => (month, second),
        None => (index(MONTHS, second)?, first),
    };
    let (month, day) = (month + 1, day.parse().ok()?);
    match skip(rest) {
        [year, rest @ ..] if year.len() == 4 && year.parse::<i16>().is_ok() => {
            Some((ResetDay::Exactly(Date::new(year.parse().ok()?, month, day).ok()?), rest))
        }
        _ => Some((ResetDay::Yearly(month, day), rest)),
    }
}

/// Returns the index of a name, given in full or by at least three letters.
fn index(names: &str, name: &str) -> Option<i8> {
    let at = names.split(' ').position(|full| name.len() > 2 && full.starts_with(name))?;
    i8::try_from(at).ok()
}

/// Reads `3pm`, `2:30 pm`, `15:00`, `15:00:00.000`; not a bare number.
fn clock(tokens: TokenSlice<'_>) -> TokenParseResult<'_, Time> {
    let [hour, rest @ ..] = tokens else { return None };
    let hour: i8 = hour.parse().ok()?;
    let (minute, rest) = optional(after_colon, rest);
    let (second, rest) = optional(after_colon, rest);
    let fraction = second.is_some() && matches!(rest, [".", _, ..]);
    let rest = if fraction { &rest[2..] } else { rest };
    let (hour, rest) = match rest {
        ["am", rest @ ..] | ["a", ".", "m", ".", rest @ ..] => (half(hour)?, rest),
        ["pm", rest @ ..] | ["p", ".", "m", ".", rest @ ..] => (half(hour)? + 12, rest),
        _ if minute.is_none() => return None,
        _ => (hour, rest),
    };
    Some((Time::new(hour, minute.unwrap_or(0), second.unwrap_or(0), 0).ok()?, rest))
}

fn after_colon(tokens: TokenSlice<'_>) -> TokenParseResult<'_, i8> {
    let [":", number, rest @ ..] = tokens else { return None };
    Some((number.parse().ok()?, rest))
}

/// Returns the hours since midnight or noon: 12 counts as 0.
fn half(hour: i8) -> Option<i8> {
    (1..=12).contains(&hour).then_some(hour % 12)
}

/// Reads the zone that follows a time: `(Europe/Berlin)`, `UTC+2`, `Z`, `+05:30`.
fn zone(tokens: TokenSlice<'_>) -> Option<TimeZone> {
    if let ["(", rest @ ..] = tokens {
        return known_zone(&rest[..rest.iter().position(|t| *t == ")")?].concat());
    }
    let glue = |token: &&str| matches!(*token, "/" | "_" | "+" | "-" | ":");
    let glued = tokens.windows(2).take_while(|pair| pair.iter().any(glue)).count();
    let joined = tokens.get(..=glued)?.concat();
    known_zone(&joined).or_else(|| known_zone(tokens.first()?))
}

fn known_zone(name: &str) -> Option<TimeZone> {
    match name.strip_prefix("utc").or_else(|| name.strip_prefix("gmt")).unwrap_or(name) {
        _ if name.is_empty() => None,
        "" | "z" => Some(TimeZone::UTC),
        offset if offset.starts_with(['+', '-']) => fixed_zone(offset),
        _ => TimeZone::get(name).ok().filter(|zone| !zone.is_unknown()),
    }
}

/// Reads `+2`, `-05`, `+0530`, `+05:30`.
fn fixed_zone(offset: &str) -> Option<TimeZone> {
    let (sign, digits) = offset.split_at_checked(1)?;
    let short = digits.find(':').unwrap_or(digits.len()) == 1;
    let padded = format!("{sign}{}{digits}", if short { "0" } else { "" });
    DateTimeParser::new().parse_time_zone(padded).ok()
}

/// Returns the moment meant by a day and a time, one of which may be missing.
fn due(
    day: Option<ResetDay>,
    time: Option<Time>,
    zone: &TimeZone,
    now: Timestamp,
) -> Option<Timestamp> {
    let now_there = jiff::Timestamp::from_millisecond(i64::try_from(now.0).ok()?).ok()?;
    let today = now_there.to_zoned(zone.clone()).date();
    let days_on = |days: i8| today.checked_add(jiff::Span::new().days(days)).ok();
    let just_past = now.0.saturating_sub(JUST_PAST_MS);
    let (dates, later_than): (Vec<Date>, u64) = match day {
        None | Some(ResetDay::In(0)) if time.is_none() => return None,
        None => ((0..=1).filter_map(days_on).collect(), now.0.saturating_sub(MOMENT_MS)),
        Some(ResetDay::In(days)) => (days_on(days).into_iter().collect(), 0),
        Some(ResetDay::Weekday(weekday)) => {
            let same = |date: &Date| date.weekday().to_monday_zero_offset() == weekday;
            ((-1..=7).filter_map(days_on).filter(same).collect(), just_past)
        }
        Some(ResetDay::Yearly(month, day)) => {
            let years = today.year().saturating_sub(1)..=today.year().saturating_add(1);
            (years.filter_map(|year| Date::new(year, month, day).ok()).collect(), just_past)
        }
        Some(ResetDay::Exactly(date)) => (vec![date], 0),
    };
    // A time that comes twice, when clocks are set back, means its first or second moment; a skipped time means the
    // moment after the gap.
    let moments = dates.into_iter().flat_map(|date| {
        let there = zone.to_ambiguous_zoned(date.to_datetime(time.unwrap_or_default()));
        [there.clone().compatible(), there.later()]
    });
    let mut millis = moments.filter_map(|at| at.ok()?.timestamp().as_millisecond().try_into().ok());
    millis.find(|at| *at > later_than).map(Timestamp)
}

#[cfg(test)]
mod tests;
