//! Hosts that are silent: people are told of those that are waited for, and some count as lost after a while.
//!
//! The error of a call that is made again and again: people are told once, and once when it is over.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::host::{HostName, HostStanding};
use crate::engine::host_registry::RegisteredHost;
use crate::runtime::error::Error;

/// The number of looks after which a silence is told. A host is silent at the first ones after the engine was down.
const LOOKS_BEFORE_TOLD: u32 = 8;

/// The number of looks after which a silent host may count as lost: 16 seconds. Within them a worker that could not reach the
/// engine either notices that its call has failed, makes it again, and is heard.
const LOOKS_BEFORE_LOST: u32 = 32;

/// The silence of one host.
#[derive(Debug, Default)]
struct HostSilence {
    /// The number of looks in a row at which the host was silent.
    looks: u32,
    is_told: bool,
}

/// The hosts that are silent, at looks every half second.
#[derive(Debug, Default)]
pub struct SilentHosts(BTreeMap<HostName, HostSilence>);

impl SilentHosts {
    /// Notes what the hosts are now, and returns the sentences about those that are waited for, or are heard of again.
    pub fn news(
        &mut self,
        seen: &[RegisteredHost],
        is_waited_for: impl Fn(&HostName) -> bool,
    ) -> Vec<String> {
        let mut news = Vec::new();
        for host in seen {
            let name = &host.host;
            let is_lost = host.standing == HostStanding::Lost;
            if is_lost || host.is_alive() {
                let was_told = self.0.remove(name).is_some_and(|silence| silence.is_told);
                if was_told && !is_lost {
                    news.push(format!("host {name} responds again"));
                }
                continue;
            }
            let known = self.0.entry(name.clone()).or_default();
            known.looks = known.looks.saturating_add(1);
            if known.looks > LOOKS_BEFORE_TOLD && !known.is_told && is_waited_for(name) {
                known.is_told = true;
                news.push(silence(host));
            }
        }
        news
    }

    /// Notes that the engine could not be asked. Nobody could be heard meanwhile, so each silence has to show itself anew.
    pub(in crate::runtime) fn start_again(&mut self) {
        for known in self.0.values_mut() {
            known.looks = 0;
        }
    }

    /// Returns those hosts that have been silent for longer than their workers said, also at every look of late.
    pub(in crate::runtime) fn overdue<'a>(
        &self,
        seen: &'a [RegisteredHost],
    ) -> Vec<&'a RegisteredHost> {
        let is_overdue = |host: &&RegisteredHost| {
            let looks = self.0.get(&host.host).map_or(0, |known| known.looks);
            looks >= LOOKS_BEFORE_LOST && host.report.is_overdue(host.silent_for)
        };
        seen.iter().filter(is_overdue).collect()
    }
}

/// Returns the sentence about a host that is silent while it is waited for.
fn silence(host: &RegisteredHost) -> String {
    let (name, seconds) = (&host.host, host.silent_for.as_secs());
    format!(
        "host {name} has been silent for {seconds} s, and raymond waits for its turns: restart its worker, or declare it lost with `raymond hosts lost {name}`"
    )
}

/// Returns a sentence about each host that is silent now while it is waited for.
pub fn silences(seen: &[RegisteredHost], is_waited_for: impl Fn(&HostName) -> bool) -> Vec<String> {
    let is_silent = |host: &&RegisteredHost| {
        host.standing != HostStanding::Lost && !host.is_alive() && is_waited_for(&host.host)
    };
    seen.iter().filter(is_silent).map(silence).collect()
}

/// The number of calls in a row that have to fail before people are told.
const FAILURES: u32 = 2;

/// The most errors that are told of the same calls.
const MOST_TOLD: usize = 3;

/// The errors of a call that stand now. One call may fail by chance, such as when another program writes the same file.
#[derive(Debug)]
pub(in crate::runtime) struct ToldError {
    /// The consequence of a failure, and the state once the call succeeds again.
    sentences: (&'static str, &'static str),
    /// The number of calls in a row that failed.
    failures: u32,
    /// The errors that people were told, until a call succeeds.
    told: BTreeSet<String>,
}

impl ToldError {
    /// Returns one about calls whose failure means the first, and whose success the second.
    pub(in crate::runtime) fn about(failed: &'static str, mended: &'static str) -> Self {
        Self { sentences: (failed, mended), failures: 0, told: BTreeSet::new() }
    }

    /// Notes what came of a call, and warns of an error that is new.
    pub(in crate::runtime) fn note(&mut self, called: Result<(), Error>) {
        if let Err(error) = &called {
            tracing::debug!("{error}");
        }
        if let Some(news) = self.news(called) {
            tracing::warn!("{news}");
        }
    }

    /// Returns what people are to be told now.
    fn news(&mut self, called: Result<(), Error>) -> Option<String> {
        let (failed, mended) = self.sentences;
        let error = match called {
            Ok(()) => {
                self.failures = 0;
                let was_told = !std::mem::take(&mut self.told).is_empty();
                return was_told.then(|| mended.to_owned());
            }
            // The writer of the log says that the engine cannot be reached, and that another raymond has the run.
            Err(Error::Engine(error)) if !error.is_mendable() => return None,
            Err(error) => error.to_string(),
        };
        self.failures = self.failures.saturating_add(1);
        let is_news = self.failures >= FAILURES && self.told.len() < MOST_TOLD;
        let is_news = is_news && self.told.insert(error.clone());
        is_news.then(|| format!("{error}; until this is fixed, {failed}"))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::domain::host::HostEpoch;

    fn host(standing: HostStanding, silent_for: u64) -> RegisteredHost {
        let report = r#"{"slots":1,"busy":0,"sessions":0,"raymond":"1","wire":1}"#;
        RegisteredHost {
            host: HostName::parse("a").expect("a name"),
            epoch: HostEpoch(1),
            standing,
            silent_for: Duration::from_secs(silent_for),
            report: serde_json::from_str(report).expect("a report"),
        }
    }

    #[test]
    fn silence_that_is_waited_for_is_told_once_with_its_end() {
        let mut silent = SilentHosts::default();
        let mut told = |standing, silent_for, is_waited_for| {
            let seen = [host(standing, silent_for)];
            (0..20).flat_map(|_| silent.news(&seen, |_| is_waited_for)).collect::<Vec<String>>()
        };
        assert_eq!(told(HostStanding::Active, 1, true), [""; 0]);
        assert_eq!(told(HostStanding::Active, 30, false), [""; 0], "nobody waits for it");
        let news = told(HostStanding::Draining, 40, true);
        assert!(news.len() == 1 && news[0].contains("silent for 40 s"), "{news:?}");
        assert_eq!(told(HostStanding::Active, 0, true), ["host a responds again"]);
        told(HostStanding::Active, 30, true);
        assert_eq!(told(HostStanding::Lost, 50, true), [""; 0]);
    }

    #[test]
    fn host_is_overdue_once_it_was_silent_at_every_look_while_the_engine_answered() {
        let timeout = |silent_for| {
            let mut host = host(HostStanding::Active, silent_for);
            host.report.timeout_ms = Some(60_000);
            [host]
        };
        let mut silent = SilentHosts::default();
        let mut overdue = |seen: &[RegisteredHost; 1], looks| {
            let mut count = 0;
            for _ in 0..looks {
                silent.news(seen, |_| true);
                count += silent.overdue(seen).len();
            }
            count
        };
        assert_eq!(overdue(&timeout(700), 31), 0, "the engine may have been down for so long");
        assert_eq!(overdue(&timeout(0), 1), 0);
        assert_eq!(overdue(&timeout(59), 40), 0, "it has a minute");
        assert_eq!(overdue(&timeout(60), 1), 1);
        assert_eq!(overdue(&[host(HostStanding::Active, 700)], 40), 0, "only a person declares it");
        let mut lost = timeout(700);
        lost[0].standing = HostStanding::Lost;
        assert_eq!(overdue(&lost, 40), 0, "it is already");
        silent.news(&timeout(60), |_| true);
        silent.start_again();
        let mut looks = (0..40).map(|_| {
            silent.news(&timeout(60), |_| true);
            silent.overdue(&timeout(60)).len()
        });
        assert_eq!(looks.by_ref().take(31).sum::<usize>(), 0, "it is heard anew");
        assert_eq!(looks.next(), Some(1));
    }
}

#[cfg(test)]
mod told_error_tests {
    use super::*;
    use crate::engine::EngineError;

    #[test]
    fn error_that_a_person_can_mend_is_told_once_and_so_is_its_end() {
        let (engine, why) = ("postgres://x".to_owned(), "no right".to_owned());
        let refused =
            || Error::from(EngineError::Refused { engine: engine.clone(), why: why.clone() });
        let down =
            || Error::from(EngineError::Unreachable { engine: engine.clone(), why: why.clone() });
        let mut told = ToldError::about("commands wait", "commands are taken");
        let mut news = |called| told.news(called).unwrap_or_default();
        assert_eq!(news(Ok(())), "");
        assert_eq!(news(Err(down())), "", "others tell it");
        assert_eq!(news(Err(refused())), "", "it may have failed by chance");
        assert_eq!(
            news(Err(refused())),
            "the engine postgres://x refused: no right; until this is fixed, commands wait"
        );
        assert_eq!([news(Err(refused())), news(Err(down())), news(Err(refused()))], [""; 3]);
        assert!(news(Err(Error::Nothing)).ends_with("; until this is fixed, commands wait"));
        assert_eq!([news(Err(refused())), news(Err(Error::Nothing))], [""; 2], "both were told");
        assert_eq!([news(Ok(())), news(Ok(()))], ["commands are taken", ""]);
        assert_eq!([news(Err(refused())), news(Ok(()))], [""; 2]);
    }
}
