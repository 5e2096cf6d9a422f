//! Plug-ins of the manifest and the command line, the paths of their programs, and their environment.

use super::{LOOKS_ON, PRELUDE, lines, told, with};
use crate::support::{Test, always};

#[test]
fn manifest_plugins_are_announced_and_can_be_disabled() {
    let test = with(LOOKS_ON, "");
    let outcome = test.run(&["START.md"]);
    outcome.ok().stderr_has("plug-in p: python3 ").stderr_has("p.py (asked for by raymond.yaml)");
    assert_eq!(told(&test, "hello").len(), 1);
    let outcome = test.raymond(&["run", "--id", "u", "START.md", "--no-plugins"]);
    outcome.ok().stderr_lacks("asked for by");
    assert_eq!(told(&test, "hello").len(), 1, "it was not started");
    let own = ["run", "--id", "v", "START.md", "--no-plugins", "--plugin", "python3 p.py"];
    test.raymond(&own).ok().stderr_lacks("asked for by");
    assert_eq!(told(&test, "hello")[1]["run"], "v", "the command line's is");
}

#[test]
fn plugin_program_is_found_beside_the_prompts_and_runs_in_cwd() {
    let script = format!("{PRELUDE}{LOOKS_ON}");
    let test = Test::new()
        .file("sub/p.py", script.as_bytes())
        .file("sub/raymond.yaml", b"plugins:\n  - { command: python3 ./p.py, deadline: 1m }\n")
        .file("sub/START.md", b"start")
        .file("work/here", b"")
        .rule(always().reply("<result>well</result>"));
    test.run(&["sub", "--cwd", "work"]).ok().stderr_lacks("warning");
    assert!(!lines(&test, "work/told.jsonl").is_empty());
}

#[test]
fn plugin_environment_has_the_run_and_no_api_key() {
    let script =
        "keep('env.jsonl', json.dumps(dict(os.environ)))\nhello()\nfor message in told(): pass\n";
    let test = with(script, "")
        .env("ANTHROPIC_API_KEY", "secret-1")
        .env("CLAUDE_CODE_OAUTH_TOKEN", "secret-2")
        .env("OWN", "kept back")
        .env("TZ", "passed on");
    test.run(&["START.md"]).ok();
    let found = &lines(&test, "env.jsonl")[0];
    assert!(!found.to_string().contains("secret-"), "{found}");
    assert_eq!((&found["RAYMOND_RUN"], &found["RAYMOND_PLUGIN"]), (&"t".into(), &"p".into()));
    assert_eq!(found["RAYMOND_DIR"], test.dir().to_str().expect("text"));
    assert_eq!((&found["TZ"], found.get("OWN")), (&"passed on".into(), None));
    assert!(found.get("RAYMOND_TURN").is_none(), "{found}");
}

#[test]
fn invalid_plugin_command_is_refused() {
    let test = with(LOOKS_ON, "");
    test.run(&["START.md", "--plugin", "'x"]).code(64).stderr_has("a quote has no end");
    test.run(&["START.md", "--plugin", ""]).code(64).stderr_has("write a command");
    let test = test.file("raymond.yaml", b"plugins:\n  - { comand: x }\n");
    test.run(&["START.md"])
        .code(65)
        .stderr_has("raymond.yaml:2:")
        .stderr_has("did you mean `command`");
}

#[test]
fn background_run_starts_its_plugin() {
    let test = with(LOOKS_ON, "");
    let started = test.raymond(&["start", "--id", "t", "START.md"]);
    started.ok().stderr_has("asked for by raymond.yaml");
    crate::support::wait_until("it is told of the end", || told(&test, "finish").len() == 1);
    test.assert_no_survivors();
}
