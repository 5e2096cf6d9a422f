//! Hosts that are silent while they are waited for: people are told, once for each silence.

use std::collections::BTreeMap;

use crate::domain::host::{HostName, HostStanding};
use crate::engine::host_registry::RegisteredHost;

/// The number of looks after which a silence is told. A host is silent at the first ones after the engine was down.
const LOOKS: u32 = 8;

/// The hosts that are silent, and at how many looks they were.
#[derive(Debug, Default)]
pub struct SilentHosts(BTreeMap<HostName, u32>);

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
                let was_told = self.0.remove(name).is_some_and(|looks| looks > LOOKS);
                if was_told && !is_lost {
                    news.push(format!("host {name} is heard of again"));
                }
                continue;
            }
            let looks = self.0.entry(name.clone()).or_default();
            if *looks < LOOKS {
                *looks += 1;
            } else if *looks == LOOKS && is_waited_for(name) {
                *looks += 1;
                news.push(silence(host));
            }
        }
        news
    }
}

/// Returns the sentence about a host that is silent while it is waited for.
fn silence(host: &RegisteredHost) -> String {
    let (name, seconds) = (&host.host, host.silent_for.as_secs());
    format!(
        "host {name} has been silent for {seconds} s, and what runs there is waited for: start its worker again, or declare it lost with `raymond hosts lost {name}`"
    )
}

/// Returns a sentence about each host that is silent now while it is waited for.
#[must_use]
pub fn silences(seen: &[RegisteredHost], is_waited_for: impl Fn(&HostName) -> bool) -> Vec<String> {
    let is_silent = |host: &&RegisteredHost| {
        host.standing != HostStanding::Lost && !host.is_alive() && is_waited_for(&host.host)
    };
    seen.iter().filter(is_silent).map(silence).collect()
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
        assert_eq!(told(HostStanding::Active, 0, true), ["host a is heard of again"]);
        told(HostStanding::Active, 30, true);
        assert_eq!(told(HostStanding::Lost, 50, true), [""; 0]);
    }
}
