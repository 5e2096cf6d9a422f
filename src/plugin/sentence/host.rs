//! The sentence about agents that are given hosts.

use std::collections::BTreeMap;

use crate::domain::home::PlacedAgent;
use crate::domain::host::HostName;

/// Returns the sentence: the hosts that were lost, and the number of agents that each host is given.
pub(super) fn placed(placed: &[PlacedAgent], lost: &[HostName]) -> String {
    let mut counts: BTreeMap<&HostName, usize> = BTreeMap::new();
    for one in placed {
        *counts.entry(&one.host).or_default() += 1;
    }
    let given = |(host, count): (&HostName, &usize)| match count {
        1 => format!("1 agent on {host}"),
        count => format!("{count} agents on {host}"),
    };
    let given: Vec<String> = counts.iter().map(|(host, count)| given((host, count))).collect();
    let given = if given.is_empty() { "no agent is placed".to_owned() } else { given.join(", ") };
    match lost {
        [] => format!("placed: {given}"),
        [host] => format!("host {host} was declared lost: {given}"),
        hosts => {
            let hosts: Vec<&str> = hosts.iter().map(HostName::as_str).collect();
            format!("hosts {} were declared lost: {given}", hosts.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::host::HostEpoch;
    use crate::domain::id::AgentId;

    #[test]
    fn sentence_counts_agents_by_host() {
        let host = |name: &str| HostName::parse(name).expect("a name");
        let at = |agent: u32, name: &str| PlacedAgent {
            agent: AgentId::main().child(agent),
            host: host(name),
            epoch: HostEpoch(1),
        };
        assert_eq!(
            placed(&[at(1, "b"), at(2, "a"), at(3, "b")], &[]),
            "placed: 1 agent on a, 2 agents on b"
        );
        assert_eq!(placed(&[at(1, "b")], &[host("a")]), "host a was declared lost: 1 agent on b");
        assert_eq!(
            placed(&[], &[host("a"), host("b")]),
            "hosts a, b were declared lost: no agent is placed"
        );
    }
}
