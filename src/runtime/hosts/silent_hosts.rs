//! Tells people of hosts that are silent while they are waited for, once for each silence.

use std::collections::BTreeMap;

use crate::domain::host::{HostName, HostStanding};
use crate::engine::host_registry::RegisteredHost;
use crate::runtime::sharing::sighting;

/// The number of looks after which a silence is told. A host is silent at the first ones after the engine was down.
const LOOKS: u32 = 8;

/// The hosts that are silent, and at how many looks they were.
#[derive(Debug, Default)]
pub(super) struct SilentHosts(BTreeMap<HostName, u32>);

impl SilentHosts {
    /// Notes what the hosts are now, and tells of those that are waited for.
    pub(super) fn tell(
        &mut self,
        seen: &[RegisteredHost],
        is_waited_for: impl Fn(&HostName) -> bool,
    ) {
        for host in seen {
            let name = &host.host;
            if host.standing == HostStanding::Lost || sighting(host.clone()).is_alive {
                if self.0.remove(name).is_some_and(|looks| looks > LOOKS) {
                    tracing::warn!("host {name} is heard of again");
                }
                continue;
            }
            let looks = self.0.entry(name.clone()).or_default();
            if *looks < LOOKS {
                *looks += 1;
            } else if *looks == LOOKS && is_waited_for(name) {
                *looks += 1;
                tracing::warn!(
                    "host {name} has been silent for {} s, and what runs there is waited for: start its worker again, or declare it lost with `raymond hosts lost {name}`",
                    host.silent_for.as_secs()
                );
            }
        }
    }
}
