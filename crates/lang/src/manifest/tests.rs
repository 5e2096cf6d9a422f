//! Tests of reading manifests.

use super::*;
use raymond_model::turn_options::OnDenied;

#[test]
fn all_manifest_keys_are_optional() {
    for text in ["", "# nothing\n", "name: tour\n"] {
        let read = parse(text).expect("valid");
        assert_eq!(Manifest { name: None, ..read }, Manifest::default());
    }
}

#[test]
fn all_manifest_keys_are_parsed() {
    let text = "name: review\ndescription: reviews\nentry: BEGIN.md\nmodel: haiku\nbudget: $2.50\nmax_procs: auto\nmax_fan_out: 50\nstagger: 1s\non_limit: pause\non_denied: fail\nsupervision:\n  restart: temporary\npermission_mode: plan\nclaude_args: [--effort, low]\n";
    let read = parse(text).expect("valid");
    assert_eq!((read.entry.as_deref(), read.model), (Some("BEGIN.md"), Some(ModelName::HAIKU)));
    assert_eq!((read.budget, read.max_procs), (Some(Usd::from_dollars(2.5)), Some(MaxProcs::Auto)));
    assert_eq!(read.on_limit, Some(OnLimit::Pause));
    assert_eq!(read.options.on_denied, Some(OnDenied::Fail));
    assert_eq!((read.max_fan_out, read.stagger_ms), (Some(50), Some(1000)));
    assert!(read.supervision.restart.is_some());
    assert_eq!(read.claude_args, ["--effort", "low"]);
    assert_eq!(parse("max_procs: 4").map(|read| read.max_procs), Ok(Some(MaxProcs::Count(4))));
}

#[test]
fn invalid_manifest_is_error_with_location_and_hint() {
    let table = [
        ("mdel: opus\n", "1:1: unknown key `mdel`; did you mean `model`?"),
        (
            "model: a b\n",
            "1:8: `a b` cannot be the name of a model; write one word, such as opus, sonnet, haiku or a full name",
        ),
        ("start: A.md\n", "1:1: unknown key `start`; did you mean `entry`?"),
        (
            "vars: { a: b }\n",
            "1:1: unknown key `vars`; a run gets values with --var, and `inputs` declares them",
        ),
        ("budget: -1\n", "1:9: write an amount in US dollars, such as 2 or 0.50"),
        ("max_procs: 0\n", "1:12: write a number from 1 to 65535, or auto"),
        ("on_denied: stop\n", "1:12: unknown value `stop` of `on_denied`; use continue, fail"),
        (
            "output: a.json\n",
            "1:9: an `output` is the form of one state's answer, which decides what follows there; put it into the frontmatter of that state",
        ),
        ("on_limit: stop\n", "1:11: unknown value `stop`; use wait, pause, fail"),
        (
            "supervision:\n  timeout: x\n",
            "2:12: `x` is not a duration; write for example 200ms, 30s, 5m or 1h",
        ),
    ];
    for (text, expected) in table {
        assert_eq!(parse(text).expect_err(text).to_string(), expected);
    }
}

#[test]
fn manifest_cannot_grant_itself_privileges() {
    for text in [
        "claude_args: [--dangerously-skip-permissions]\n",
        "claude_args: [--permission-mode, bypassPermissions]\n",
        "claude_args: [--permission-mode=bypassPermissions]\n",
        "permission_mode: bypassPermissions\n",
        "claude_args: [--settings, evil.json]\n",
        "claude_args: [--mcp-config=evil.json]\n",
        "claude_args: [--effort, low, --allowedTools, Bash]\n",
        "claude_args: [a prompt]\n",
        "claude_args: [--effort, low, a prompt]\n",
    ] {
        let error = parse(text).expect_err(text).to_string();
        assert!(error.contains("on the command line"), "{error}");
    }
}
