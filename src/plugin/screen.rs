//! The rows of the live view: agents, their states and activities, times and costs. Pure.
//!
//! It stays calm: a headline, the agents that run, as many as fit, and a line for the rest.

use super::sentence::date;
use crate::actor::registry::{AgentStatus, AgentView};
use crate::domain::money::Usd;
use crate::domain::run::RunStatus;
use crate::domain::time::Timestamp;

/// The numbers of the headline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunHeadline {
    /// The run.
    pub run: String,
    /// The time it was started or resumed.
    pub since: Timestamp,
    /// The number of agents that have ended, and the number of failed ones among them.
    pub ended: (usize, usize),
    /// The cost so far.
    pub spent: Usd,
    /// The limit of the cost.
    pub budget: Option<Usd>,
    /// The status of the run.
    pub status: RunStatus,
    /// The time before which no turn starts, because the usage limit is reached.
    pub limited_until: Option<Timestamp>,
}

/// Returns the rows for a terminal of that size.
#[must_use]
pub fn rows(
    headline: &RunHeadline,
    views: &[AgentView],
    now: Timestamp,
    size: (u16, u16),
) -> Vec<String> {
    let (height, width) = (usize::from(size.0), usize::from(size.1));
    let room = height.saturating_sub(3).clamp(1, 12);
    let shown = if views.len() > room { room - 1 } else { views.len() };
    let name = column(views[..shown].iter().map(|view| view.id.as_str()));
    let state = column(views[..shown].iter().map(|view| view.state.as_str()));
    let mut rows = vec![head(headline, views, now)];
    let limited = headline.limited_until.is_some_and(|until| until > now);
    let waits = if limited { "waiting for the usage limit" } else { "waiting for a free process" };
    rows.extend(views[..shown].iter().map(|view| row(view, now, (name, state), waits)));
    if shown < views.len() {
        rows.push(format!("  … and {} more", views.len() - shown));
    }
    rows.iter()
        .map(|row| console::truncate_str(row, width.saturating_sub(1), "…").into_owned())
        .collect()
}

fn column<'text>(texts: impl Iterator<Item = &'text str>) -> usize {
    texts.map(str::len).max().unwrap_or(0).min(32)
}

fn head(headline: &RunHeadline, views: &[AgentView], now: Timestamp) -> String {
    let running =
        views.iter().filter(|view| matches!(view.phase, AgentStatus::Running { .. })).count();
    let mut parts =
        vec![format!("{running} running"), format!("{} waiting", views.len() - running)];
    let (ended, failed) = headline.ended;
    if ended > 0 {
        parts.push(format!("{ended} ended"));
    }
    if failed > 0 {
        parts.push(format!("{failed} failed"));
    }
    let spent = match headline.budget {
        Some(budget) => format!("{} of {budget}", headline.spent),
        None => headline.spent.to_string(),
    };
    let limited = headline.limited_until.filter(|&until| until > now);
    let state = match (headline.status, limited) {
        (RunStatus::Paused, _) => " · pausing".to_owned(),
        (_, Some(until)) => format!(" · usage limit, continues {}", date(until)),
        _ => String::new(),
    };
    format!(
        "{} · {} · {spent} · {}{state}",
        headline.run,
        parts.join(", "),
        clock(now.since(headline.since))
    )
}

fn row(view: &AgentView, now: Timestamp, (name, state): (usize, usize), waits: &str) -> String {
    let (doing, time) = match &view.phase {
        AgentStatus::Waiting => (waits.to_owned(), String::new()),
        AgentStatus::Parked => ("waiting for a person".to_owned(), String::new()),
        AgentStatus::Asking { node } => (format!("waiting for an answer to {node}"), String::new()),
        AgentStatus::Awaiting(other) => (format!("waiting for {other}"), String::new()),
        AgentStatus::Joining { needs, of } if needs == of => {
            (format!("waiting for {of} agents"), String::new())
        }
        AgentStatus::Joining { needs, of } => {
            (format!("waiting for {needs} of {of} agents"), String::new())
        }
        AgentStatus::Blocked { awaiting } => (format!("waiting for {awaiting}"), String::new()),
        AgentStatus::Idle => ("idle".to_owned(), String::new()),
        AgentStatus::Walking => ("walking the graph".to_owned(), String::new()),
        AgentStatus::Delayed { until } => {
            ("waiting to be run again".to_owned(), format!("in {}", clock(until.since(now))))
        }
        AgentStatus::Staggered { until } => {
            ("waiting to start".to_owned(), format!("in {}", clock(until.since(now))))
        }
        AgentStatus::Held { until, by } => {
            (format!("held by {by}"), format!("in {}", clock(until.since(now))))
        }
        AgentStatus::Running { since, activity } if activity.is_empty() => {
            ("starting".to_owned(), clock(now.since(*since)))
        }
        AgentStatus::Running { since, activity } => (activity.clone(), clock(now.since(*since))),
    };
    format!(
        "  {:name$}  {:state$}  {time:>6}  {:>8}  {doing}",
        view.id,
        view.state,
        view.cost.to_string()
    )
}

/// Returns a duration as `0:05`, `12:34`, `1:02:03`.
#[must_use]
pub fn clock(millis: u64) -> String {
    let seconds = millis / 1000;
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 {
        format!("{hours}:{minutes:02}:{seconds:02}")
    } else {
        format!("{minutes}:{seconds:02}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::id::{AgentId, SessionId, StateName};

    fn view(number: u32, phase: AgentStatus) -> AgentView {
        AgentView {
            id: AgentId::main().child(number),
            state: StateName::parse("WORKER.md").expect("a state"),
            session: SessionId::new("s"),
            stack: 0,
            phase,
            cost: Usd::from_dollars(0.02),
        }
    }

    fn headline() -> RunHeadline {
        RunHeadline {
            run: "tour".into(),
            since: Timestamp(0),
            ended: (3, 1),
            spent: Usd::from_dollars(0.25),
            budget: Some(Usd::from_dollars(1.0)),
            status: RunStatus::Running,
            limited_until: None,
        }
    }

    #[test]
    fn it_tells_who_does_what() {
        let views = [
            view(1, AgentStatus::Running { since: Timestamp(60_000), activity: "Bash".into() }),
            view(12, AgentStatus::Waiting),
            view(13, AgentStatus::Delayed { until: Timestamp(67_000) }),
            view(14, AgentStatus::Staggered { until: Timestamp(67_000) }),
            view(15, AgentStatus::Joining { needs: 3, of: 5 }),
            view(16, AgentStatus::Joining { needs: 5, of: 5 }),
        ];
        assert_eq!(
            rows(&headline(), &views, Timestamp(65_000), (24, 100)),
            [
                "tour · 1 running, 5 waiting, 3 ended, 1 failed · $0.25 of $1.00 · 1:05",
                "  main.1   WORKER.md    0:05     $0.02  Bash",
                "  main.12  WORKER.md             $0.02  waiting for a free process",
                "  main.13  WORKER.md  in 0:02     $0.02  waiting to be run again",
                "  main.14  WORKER.md  in 0:02     $0.02  waiting to start",
                "  main.15  WORKER.md             $0.02  waiting for 3 of 5 agents",
                "  main.16  WORKER.md             $0.02  waiting for 5 agents",
            ]
        );
    }

    #[test]
    fn it_stays_calm_with_thousands() {
        let views: Vec<AgentView> =
            (1..=5000).map(|number| view(number, AgentStatus::Waiting)).collect();
        let rows = rows(&headline(), &views, Timestamp(0), (24, 40));
        assert_eq!(rows.len(), 13);
        assert_eq!(rows[12], "  … and 4989 more");
        assert!(rows.iter().all(|row| row.chars().count() < 40));
    }

    #[test]
    fn time_is_short() {
        assert_eq!([clock(5_400), clock(754_000), clock(3_723_000)], ["0:05", "12:34", "1:02:03"]);
    }
}
