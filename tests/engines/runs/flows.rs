//! The workflow of most tests: an agent that forks three others, and waits for them.

use serde_json::Value;

use super::cluster::Cluster;
use super::fake::{answers, holds};

/// The number of its turns.
pub(crate) const TURNS: usize = 8;

/// Returns a workflow of three agents with two turns each, between two turns of the agent that forked them.
pub(crate) fn three(cluster: Cluster) -> Cluster {
    cluster
        .file("START.md", "start")
        .file("WORK.md", "work {{item}}")
        .file("REST.md", "rest")
        .file("JOIN.md", "---\njoin: all\n---\nsum up")
}

/// Returns the answer that forks the three.
pub(crate) fn fork() -> String {
    let items = "[&quot;a&quot;,&quot;b&quot;,&quot;c&quot;]";
    format!(r#"<fork next="JOIN.md" each="{items}" as="item">WORK.md</fork>"#)
}

/// Returns the answers to it; the first turns of the three are held at `go`.
pub(crate) fn held_at_work() -> [Value; 4] {
    [
        answers("start", &fork()),
        holds("work", "go", "<goto>REST.md</goto>"),
        answers("rest", "<result>done</result>"),
        answers("sum up", "<result>all done</result>"),
    ]
}
