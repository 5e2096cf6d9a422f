//! Sessions of the real Claude Code go on at another host, seen from the [stand-in](crate::api) for the model.
//!
//! `tests/run` runs these tests with each pinned version, and skips them where it cannot.

#[path = "../../it/claude_code/installed.rs"]
#[expect(dead_code, reason = "other tests ask for the version")]
mod installed;

use self::installed::claude;
use super::cluster::{Cluster, RUN};
use crate::api::{MessagesApi, on};

/// Returns a cluster whose machines have Claude Code, logged in, and nothing else.
fn with_claude(api: &MessagesApi) -> Cluster {
    Cluster::new().with_environment(&[
        ("RAYMOND_CLAUDE", claude().to_str().expect("a path")),
        ("IS_SANDBOX", "1"),
        ("ANTHROPIC_BASE_URL", api.url()),
        ("ANTHROPIC_API_KEY", "test"),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        ("DISABLE_AUTOUPDATER", "1"),
        ("DISABLE_TELEMETRY", "1"),
    ])
}

#[test]
fn session_goes_on_at_another_host_with_its_whole_history() {
    let api = MessagesApi::start();
    let cluster = with_claude(&api)
        .file("START.md", "ALPHA: look around.")
        .file("NEXT.md", "BRAVO: paint it {{answer}}.")
        .file("LAST.md", "CHARLIE: look at it.");
    api.script([
        on("ALPHA").reply(r#"A quiet street. <ask next="NEXT.md">Which colour?</ask>"#),
        on("BRAVO").reply("It is painted. <goto>LAST.md</goto>"),
        on("CHARLIE").reply("<result>POSITIVE</result>").hold(),
    ]);
    let lose = |host: &str| {
        cluster.machine(host).kill9();
        cluster.machine("s").raymond(&["hosts", "lost", host]).ok();
    };
    let first = cluster.machine("a").worker(1, &[]);
    let supervisor = cluster.machine("s").run(&["--model", "haiku", "--on-wait", "stay"]);
    cluster.wait_events("step_finished", 1);
    lose("a");
    drop(first);
    // The session is resumed at its second host,
    let second = cluster.machine("b").worker(1, &[]);
    cluster.wait_events("agents_placed", 1);
    cluster.machine("s").raymond(&["answer", RUN, "NEXT.md=blue"]).ok();
    api.wait_for("CHARLIE", 1);
    lose("b");
    drop(second);
    // and a turn that was lost there begins again at a third one, from clean history.
    let _third = cluster.machine("c").worker(1, &[]);
    api.wait_for("CHARLIE", 2);
    api.release("CHARLIE");
    supervisor.wait().ok().says("POSITIVE");
    let requests = api.requests();
    let [alpha, bravo, _, charlie] = requests.as_slice() else { panic!("{requests:#?}") };
    assert!(bravo.sees("ALPHA: look around.") && bravo.sees("A quiet street."), "{bravo:#?}");
    assert_eq!(alpha.session, bravo.session);
    assert!(charlie.sees("ALPHA: look around.") && charlie.sees("It is painted."), "{charlie:#?}");
    assert_ne!(bravo.session, charlie.session);
}
