//! Prompts and replies that are too large for the mailbox.

use super::cluster::Cluster;
use super::fake::answers;

/// The length of a prompt and of a reply, in bytes.
const LARGE: usize = 3 * 1024 * 1024;

#[test]
fn large_prompt_and_large_reply_are_contents_of_the_engine() {
    let prompt = format!("start {}", "p".repeat(LARGE));
    let cluster = Cluster::new().file("START.md", &prompt);
    cluster
        .script(&[answers("start", &format!("{}<result>it was long</result>", "r".repeat(LARGE)))]);
    let _worker = cluster.machine("a").worker(1, &[]);
    cluster.machine("s").run(&[]).wait().ok().says("it was long");
    cluster.assert_paid_once();
    let calls = cluster.calls();
    assert_eq!(calls[0].prompt.len(), prompt.len());
    let large = "SELECT count(*) FROM raymond.blob WHERE length(content) > 3000000 \
        AND position('\"version\"'::bytea IN content) + position('\"answer\"'::bytea IN content) > 0";
    assert_eq!(cluster.backend.session().ask(large).as_deref(), Some("2"));
}
