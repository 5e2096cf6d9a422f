//! `raymond.yaml`: the settings of a workflow, unless the command line sets others.

use crate::support::{FakeRule, Test, always, most_at_once, when};

fn with(manifest: &str) -> Test {
    Test::new()
        .prompt("START.md", "start")
        .prompt("BEGIN.md", "begin")
        .file("raymond.yaml", manifest.as_bytes())
}

fn well() -> FakeRule {
    always().reply("<result>well</result>").cost(0.06)
}

#[test]
fn folder_starts_at_manifest_entry() {
    let test = with("name: tour\ndescription: shows it\nentry: BEGIN.md\n").rule(well());
    test.run(&["."]).ok();
    assert_eq!(test.prompts(), ["begin"]);
    test.raymond(&["run", "--id", "named", "START.md"]).ok();
    assert_eq!(test.prompts(), ["begin", "start"], "a file that is named comes first");
}

#[test]
fn missing_or_outside_manifest_entry_is_refused() {
    for entry in ["GONE.md", "../elsewhere/START.md", "sub/START.md"] {
        let test = with(&format!("entry: {entry}\n")).rule(well());
        test.run(&["."]).code_in(&[64, 65]).stderr_has(entry);
        assert!(test.calls().is_empty() && !test.run_dir().exists());
    }
}

#[test]
fn manifest_model_applies_to_states_without_a_model() {
    let test = with("model: haiku\n")
        .prompt("NEXT.md", "---\nmodel: opus\n---\nnext")
        .rule(when("start").reply("<reset>NEXT.md</reset>"))
        .rule(well());
    test.run(&["START.md"]).ok();
    test.raymond(&["run", "--id", "u", "START.md", "--model", "sonnet"]).ok();
    let models: Vec<_> =
        test.calls().iter().map(|call| call.flag("--model").map(str::to_owned)).collect();
    assert_eq!(models, ["haiku", "opus", "sonnet", "opus"].map(|name| Some(name.to_owned())));
}

#[test]
fn manifest_budget_pauses_the_run_unless_a_flag_overrides_it() {
    let test = with("budget: $0.05\n")
        .rule(when("start").reply("<goto>BEGIN.md</goto>").cost(0.06))
        .rule(well());
    test.run(&["START.md"]).code(75).stderr_has("0.05");
    assert_eq!(test.prompts(), ["start"]);
    test.raymond(&["run", "--id", "u", "START.md", "--budget", "1"]).ok();
    assert_eq!(test.prompts(), ["start", "start", "begin"]);
}

#[test]
fn manifest_max_procs_limits_concurrent_processes() {
    let test = with("max_procs: 2\n")
        .rule(when("start").times(6).reply(r#"<fork next="START.md">BEGIN.md</fork>"#))
        .rule(when("start").reply("<result>led</result>"))
        .rule(when("begin").hold_before("go").reply("<result>begun</result>"));
    let mut live = test.spawn(&["START.md"]);
    live.wait_for("two at once", |test| most_at_once(&test.call_log()) == 2);
    test.release("go");
    live.wait().ok();
    assert_eq!(most_at_once(&test.call_log()), 2);
}

#[test]
fn manifest_claude_args_are_passed_verbatim_unless_overridden() {
    let test = with("claude_args: [--append-system-prompt, \"be brief; $HOME\"]\n").rule(well());
    test.run(&["START.md"]).ok();
    assert_eq!(test.calls()[0].flag("--append-system-prompt"), Some("be brief; $HOME"));
    test.raymond(&["run", "--id", "u", "START.md", "--", "--effort", "low"]).ok();
    let call = &test.calls()[1];
    assert_eq!(call.flag("--effort"), Some("low"));
    assert!(!call.has("--append-system-prompt"), "what the command line gives comes instead");
}

#[test]
fn permission_mode_flag_overrides_the_manifest() {
    let test = with("permission_mode: plan\n").rule(well());
    test.run(&["START.md"]).ok();
    let options = ["run", "--id", "u", "START.md", "--permission-mode", "acceptEdits"];
    test.raymond(&options).ok();
    let calls = test.calls();
    assert_eq!(calls[0].flag("--permission-mode"), Some("plan"));
    assert_eq!(calls[1].flag("--permission-mode"), Some("acceptEdits"));
    test.raymond(&["run", "--id", "v", "START.md", "--dangerously-skip-permissions"]).ok();
    let call = &test.calls()[2];
    assert!(call.has("--dangerously-skip-permissions"), "whoever runs it can ask for it");
}

#[test]
fn manifest_on_limit_applies_unless_a_flag_overrides_it() {
    let limit = || always().limit_text("Claude usage limit reached.");
    with("on_limit: pause\n").rule(limit()).run(&["START.md"]).code(75).stderr_has("usage limit");
    let test = with("on_limit: pause\n").rule(limit());
    test.run(&["START.md", "--on-limit", "fail"]).code(1).failed("main");
}

#[test]
fn resumed_run_keeps_the_manifest_it_started_with() {
    let test = with("model: haiku\nclaude_args: [--effort, low]\n")
        .rule(when("start").hold_before("go").reply("<reset>BEGIN.md</reset>"))
        .rule(well());
    let mut live = test.spawn(&["START.md"]);
    live.wait_calls(1);
    live.interrupt();
    live.wait_stderr("interrupt");
    test.release("go");
    live.wait().code(130);
    let test = test.file("raymond.yaml", b"model: opus\nno such: manifest\n");
    test.resume(&[]).ok();
    let call = &test.calls()[1];
    assert_eq!((call.flag("--model"), call.flag("--effort")), (Some("haiku"), Some("low")));
}

#[test]
fn each_manifest_error_is_reported_with_its_place_and_nothing_starts() {
    let table = [
        ("mdel: opus\n", "raymond.yaml:1:1: RF003 unknown key `mdel`; did you mean `model`?"),
        (
            "name: x\nmodel: two words\n",
            "raymond.yaml:2:8: RF003 `two words` cannot be the name of a model",
        ),
        ("name: x\nbudget: lots\n", "raymond.yaml:2:9: RF003 write an amount in US dollars"),
        ("budget: 0\n", "raymond.yaml:1:9: RF003 write an amount above 0"),
        ("max_procs: many\n", "raymond.yaml:1:12: RF003 write a number from 1 to 65535, or auto"),
        ("on_limit: stop\n", "raymond.yaml:1:11: RF003 unknown value `stop`"),
        ("supervision:\n  restart: often\n", "raymond.yaml:2:12: RF003 unknown value `often`"),
        ("supervision:\n  max_restart: 3\n", "raymond.yaml:2:3: RF003 unknown key `max_restart`"),
        ("name: [\n", "raymond.yaml:"),
        (
            "model: haiku\nmodel: opus\n",
            "raymond.yaml:2:1: RF003 the key `model` is already on line 1",
        ),
    ];
    for (manifest, said) in table {
        for command in ["run", "start"] {
            let test = with(manifest).rule(well());
            test.raymond(&[command, "--id", "t", "START.md"]).code(65).stderr_has(said);
            assert!(test.calls().is_empty() && !test.run_dir().exists(), "{manifest}");
        }
    }
}

#[test]
fn each_manifest_key_that_widens_permissions_is_refused() {
    let table = [
        ("name: x\nclaude_args: [--dangerously-skip-permissions]\n", "raymond.yaml:2:15: "),
        ("claude_args: [--allow-dangerously-skip-permissions]\n", "raymond.yaml:1:15: "),
        ("claude_args: [--permission-mode, bypassPermissions]\n", "raymond.yaml:1:15: "),
        ("claude_args: [\"--permission-mode=bypassPermissions\"]\n", "raymond.yaml:1:15: "),
        ("claude_args: [\"--permission-mode=bypass\\x50ermissions\"]\n", "raymond.yaml:1:15: "),
        (
            "claude_args: [--settings, '{\"permissions\":{\"defaultMode\":\"bypassPermissions\"}}']\n",
            "raymond.yaml:1:15: ",
        ),
        ("claude_args: [--mcp-config, evil.json]\n", "raymond.yaml:1:15: "),
        ("permission_mode: bypassPermissions\n", "raymond.yaml:1:18: "),
    ];
    for (manifest, place) in table {
        let test = with(manifest).rule(well());
        let outcome = test.run(&["START.md"]);
        outcome.code(65).stderr_has(place).stderr_has("on the command line");
        assert!(test.calls().is_empty() && !test.run_dir().exists(), "{manifest}");
    }
}

#[test]
fn run_without_a_required_input_of_its_workflow_is_refused() {
    let inputs =
        "inputs:\n  - { name: topic, description: what to look at }\n  - { name: input }\n";
    let test = with(inputs).prompt("START.md", "start {{topic}} {{input}}").rule(well());
    let outcome = test.run(&["."]);
    outcome.code(64).stderr_has("raymond.yaml: the workflow needs the inputs `topic` (what to look at), `input`; give them: --var topic=TEXT --input TEXT");
    assert!(test.calls().is_empty() && !test.run_dir().exists());
    test.run(&[".", "--var", "topic=bees"]).code(64).stderr_has("the input `input`");
    test.run(&[".", "--var", "topic=bees", "--input", "hives"]).ok();
    assert_eq!(test.prompts(), ["start bees hives"]);
}

#[test]
fn default_of_an_input_fills_what_a_run_leaves_out() {
    let inputs = "inputs: [{ name: tone, default: kind }, { name: more, required: false }]\n";
    let test = with(inputs).prompt("START.md", "start {{tone}}").rule(well());
    test.run(&["."]).ok();
    test.raymond(&["run", "--id", "u", ".", "--var", "tone=rude"]).ok();
    assert_eq!(test.prompts(), ["start kind", "start rude"]);
}

#[test]
fn check_takes_variables_with_and_without_values() {
    let test = Test::new().prompt("START.md", "{{a}} {{b}} {{c}} <result>x</result>");
    let outcome = test.raymond(&["check", ".", "--var", "a=b", "--var", "b"]);
    outcome.ok().stdout_has("nothing fills {{c}}");
    outcome.assert(!outcome.stdout.contains("{{a}}"), "`a` is given");
    test.raymond(&["check", ".", "--var", "=b"]).code(64);
}

#[test]
fn manifest_of_another_name_is_reported_and_refused_if_it_has_a_budget() {
    for name in ["raymond.yml", "Raymond.yaml", "RAYMOND.YML"] {
        let flow = |text: &[u8]| {
            let test = Test::new().prompt("START.md", "Say it: <result>x</result>");
            test.file(name, text).file("replies.yaml", b"START.md: <result>x</result>\n")
        };
        let said = format!(
            "{name}:1:1: RF003 this file has no effect, nor does its budget of $0.25; its name has to be raymond.yaml"
        );
        let test = flow(b"budget: 0.25\n");
        test.raymond(&["check", "."]).code(65).says(&said);
        test.run(&["START.md", "--agent", "scripted"]).code(65).stderr_has(&said);
        let said = "this file has no effect; its name has to be raymond.yaml";
        flow(b"max_procs: 2\n").run(&["START.md", "--agent", "scripted"]).ok().stderr_has(said);
    }
}
