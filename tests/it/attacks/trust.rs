//! The author of a workflow lets it do more than prompt.

use serde_json::json;

use super::graph;
use crate::support::{Test, always};

/// Returns a workflow that is not trusted.
fn folder(files: &[(&str, &str)]) -> Test {
    let test = Test::new().prompt("START.md", "start").rule(always().reply("<result>ok</result>"));
    let test = test.env("RAYMOND_TRUST", "false");
    files.iter().fold(test, |test, (name, text)| test.file(name, text.as_bytes()))
}

#[test]
fn untrusted_folder_is_refused_with_list_of_its_requests() {
    let command = graph(&json!({"type": "bash_exec", "command": "touch pwned"}));
    let clone = graph(&json!({"type": "clone_repo", "url": "http://127.0.0.1:1/x", "dest": "d"}));
    let page = graph(&json!({"type": "web_fetch", "url": "http://127.0.0.1:1/", "store_as": "p"}));
    let table: [(&str, &str, &str); 7] = [
        ("other.yaml", &command, "runs commands: the node `start`: bash_exec: touch pwned"),
        ("sub/x.yaml", &clone, "reaches other machines: the node `start`: clone_repo: http://"),
        (
            "x.yaml",
            &page,
            "reaches other machines: the node `start`: web_fetch: http://127.0.0.1:1/",
        ),
        (
            "raymond.yaml",
            "plugins: [touch pwned]\n",
            "raymond.yaml:1:1: starts plug-ins: touch pwned",
        ),
        ("N.md", "---\nallowed_tools: [Bash]\n---\nx", "N.md:2:17: widens what Claude Code may do"),
        (
            "raymond.yaml",
            "env: { LD_PRELOAD: ./x.so }\n",
            "raymond.yaml:1:8: widens what Claude Code may do",
        ),
        (
            ".claude/settings.json",
            "{}",
            ".claude/settings.json:1:1: brings settings of Claude Code",
        ),
    ];
    for (name, text, told) in table {
        let test = folder(&[(name, text)]);
        let outcome = test.run(&["START.md"]);
        outcome.code(77).stderr_has(told).stderr_has("raymond trust ").stderr_has("--trust");
        assert!(test.calls().is_empty() && !test.run_dir().exists(), "{name}");
        assert!(!test.flow().join("pwned").exists(), "{name}");
    }
}

#[test]
fn untrusted_folder_exceeding_run_options_is_refused_with_reason() {
    let test = folder(&[("START.md", "---\ntools: [Read]\n---\nstart")]);
    let restricted = ["START.md", "--id", "a", "--", "--tools", "Bash"];
    test.run(&restricted).code(77).stderr_has("START.md:2:").stderr_has("--tools");
    assert!(test.calls().is_empty() && !test.run_dir().exists());
    // The stand-in refuses the option, which shows that the run was allowed to begin.
    test.run(&["START.md", "--id", "b", "--trust", "--", "--tools", "Bash"])
        .code(1)
        .stderr_has("unknown option");
    test.run(&restricted).code(77);
}

#[test]
fn folder_trust_holds_for_any_run_options() {
    let test = folder(&[
        (
            "START.md",
            "---\nallowed_tools: [\"Bash(ls:*)\"]\nallowed_transitions: [{ tag: result }]\n---\nstart",
        ),
        ("NEXT.md", "---\npermission_mode: acceptEdits\n---\nnext"),
    ]);
    test.raymond(&["trust", "."]).ok();
    for (run, options) in
        [("a", &["--permission-mode", "plan"][..]), ("b", &["--trust"]), ("c", &[])]
    {
        let outcome = test.run(&[&["START.md", "--id", run], options].concat());
        assert_ne!(outcome.status.code(), Some(77), "{run}: {outcome:#?}");
    }
}

#[test]
fn prompt_only_folder_needs_no_trust() {
    folder(&[("NEXT.md", "next"), ("notes.txt", "bash_exec")]).run(&["START.md"]).ok();
}

#[test]
fn changed_script_revokes_trust_and_changed_prompt_does_not() {
    let command = graph(&json!({"type": "bash_exec", "command": "touch ran"}));
    let test = folder(&[("flow.yaml", &command), ("run.sh", "true\n")]);
    test.raymond(&["trust", "."]).ok().stdout_has("bash_exec: touch ran");
    test.run(&["START.md", "--id", "a"]).ok();
    std::fs::write(test.flow().join("START.md"), "start differently").expect("written");
    test.run(&["START.md", "--id", "b"]).ok();
    std::fs::write(test.flow().join("run.sh"), "touch pwned\n").expect("written");
    test.run(&["START.md", "--id", "c"])
        .code(77)
        .stderr_has("it has changed since you trusted it (run.sh changed)");
    test.raymond(&["trust", ".", "--show"]).ok().stderr_has("has changed since: run.sh changed");
    assert_eq!(test.raymond(&["trust", ".", "--show", "--json"]).ok().json()["trusted"], false);
    test.run(&["START.md", "--id", "d", "--trust"]).ok();
    test.raymond(&["trust", ".", "--show"]).ok().stderr_has("is trusted");
    test.run(&["flow.yaml", "--id", "e"]).ok();
    assert!(test.flow().join("ran").exists());
    let listed = test.raymond(&["trust", "--list", "--json"]);
    let listed = listed.ok().json();
    assert_eq!(listed[0]["origin"], "option");
    assert_eq!(listed.as_array().map(Vec::len), Some(1));
    test.raymond(&["trust", "--remove", "."]).ok();
    test.run(&["START.md", "--id", "f"]).code(77);
}

#[test]
fn terminal_shows_requests_and_asks_for_trust() {
    let command = graph(&json!({"type": "bash_exec", "command": "touch ran"}));
    let test = folder(&[("flow.yaml", &command)]);
    let mut screen = test.on_screen(&["run", "--id", "t", "START.md"], (30, 120));
    screen.wait_for(&["flow.yaml", "runs commands", "Type yes"]);
    screen.keys("no\r");
    assert_eq!(screen.wait_for_exit(), Some(77));
    assert!(!test.run_dir().exists());
    let mut screen = test.on_screen(&["run", "--id", "t", "START.md"], (30, 120));
    screen.wait_for(&["Type yes"]);
    screen.keys("yes\r");
    assert_eq!(screen.wait_for_exit(), Some(0));
    test.run(&["START.md", "--id", "again"]).ok();
}

#[test]
fn changed_text_keeps_trust_at_terminal_and_changed_command_asks() {
    let command = graph(&json!({"type": "bash_exec", "command": "touch ran"}));
    let test = folder(&[("flow.yaml", &command)]);
    test.raymond(&["trust", "."]).ok();
    write_file(&test, "flow.yaml", &format!("# Why it is so.\n{command}"));
    let told = "texts in it have changed since you trusted it (flow.yaml)";
    test.run(&["START.md", "--id", "a"]).code(77).stderr_has(told);
    test.raymond(&["trust", ".", "--show"]).ok().stderr_has("only texts have changed since");
    let mut screen = test.on_screen(&["run", "--id", "b", "START.md"], (30, 120));
    screen.wait_for(&["keeps your trust: only texts have changed, in flow.yaml"]);
    assert_eq!(screen.wait_for_exit(), Some(0), "it does not ask");
    test.run(&["START.md", "--id", "c"]).ok();
    write_file(&test, "flow.yaml", &command.replace("touch ran", "touch pwned"));
    let mut screen = test.on_screen(&["run", "--id", "d", "START.md"], (30, 120));
    screen.wait_for(&["flow.yaml changed", "touch pwned", "Type yes"]);
    screen.keys("no\r");
    assert_eq!(screen.wait_for_exit(), Some(77));
}

fn write_file(test: &Test, name: &str, content: &str) {
    std::fs::write(test.flow().join(name), content).expect("written");
}

/// Each edit changes what a trusted folder runs, or what is given to it.
#[test]
fn edit_that_reaches_a_privileged_act_asks_again() {
    let command = |command: &str| graph(&json!({"type": "bash_exec", "command": command}));
    let imported = |file: &str| {
        let graph = command("${imports.cfg.description}");
        graph.replacen('{', &format!("{{\"imports\": {{\"cfg\": \"{file}\"}},"), 1)
    };
    let (data, words) = (imported("d.yaml"), imported("d.txt"));
    let guarded = graph(&json!({"type": "bash_exec", "command": "true", "unless": "sh check.txt"}));
    let hooked = command("sh hook.txt");
    let wide = "---\nallowed_tools: [Bash]\n---\nGo.";
    let plain = "<result>x</result>";
    let edits = [
        ("an import", vec![("g.yaml", &*data)], "d.yaml", "description: echo"),
        ("a text", vec![("g.yaml", &*words)], "d.txt", "description: echo"),
        ("a test", vec![("g.yaml", &*guarded)], "check.txt", "true"),
        ("a prompt with tools", vec![], "MORE.md", wide),
        ("its mark", vec![], "MORE.md", "\u{feff}---\nallowed_tools: [Bash]\n---\nGo."),
        ("a pattern", vec![], "MORE.md", "---\nallowed_tools: [\"Bash(*a*)\"]\n---\nGo."),
        ("the manifest's", vec![("raymond.yaml", "allowed_tools: [Bash]")], "MORE.md", plain),
        (
            "what a named file names",
            vec![("g.yaml", &*hooked), ("hook.txt", "sh ./next.txt")],
            "next.txt",
            "true",
        ),
        (
            "a system prompt",
            vec![("A.md", "---\nallowed_tools: [Bash]\nsystem_prompt_file: s.md\n---\nGo.")],
            "s.md",
            "Be kind.",
        ),
        (
            "a plug-in",
            vec![("sub/A.md", "---\nplugin_dirs: [helpers]\n---\nGo.")],
            "sub/helpers/commands/c.md",
            "Say x.",
        ),
    ];
    for (what, others, file, text) in edits {
        let mut files = others;
        files.push((file, text));
        let test = folder(&files);
        test.raymond(&["trust", "."]).ok();
        test.raymond(&["trust", ".", "--show"]).ok().stderr_has("is trusted");
        write_file(&test, file, &format!("{text} evil"));
        let shown = test.raymond(&["trust", ".", "--show"]);
        assert!(shown.stderr.contains(&format!("{file} changed")), "{what}: {}", shown.stderr);
        test.run(&["START.md", "--id", "a"]).code(77);
    }
}

#[test]
fn plain_prompt_that_makes_a_script_a_state_asks_for_it() {
    let command = graph(&json!({"type": "bash_exec", "command": "true"}));
    let test = folder(&[("g.yaml", &command), ("cleanup.sh", "touch pwned")]);
    test.raymond(&["trust", "."]).ok();
    write_file(&test, "START.md", "Say <goto>cleanup.sh</goto>");
    test.run(&["START.md", "--id", "a"]).code(77).stderr_has("(cleanup.sh asks for more)");
}

#[test]
fn plugin_added_to_manifest_by_agent_is_not_started_by_next_run() {
    let test = folder(&[]);
    test.run(&["START.md", "--id", "first"]).ok();
    let manifest = "plugins: [touch pwned]\n";
    std::fs::write(test.flow().join("raymond.yaml"), manifest).expect("written");
    test.run(&["START.md", "--id", "second"]).code(77).stderr_has("starts plug-ins: touch pwned");
    test.run(&["START.md", "--id", "third", "--no-plugins"]).ok();
    assert!(!test.flow().join("pwned").exists());
}

#[test]
fn trust_file_with_invalid_proof_is_ignored() {
    let command = graph(&json!({"type": "bash_exec", "command": "touch pwned"}));
    let test = folder(&[("flow.yaml", &command)]);
    test.raymond(&["trust", "."]).ok();
    let trust = test.root().join("home/.local/state/raymond/trust");
    let kept =
        std::fs::read_dir(trust).expect("kept").next().expect("a file").expect("read").path();
    let content = std::fs::read_to_string(&kept).expect("read");
    std::fs::write(&kept, content.replacen("sha256:", "sha256:0", 1)).expect("written");
    test.run(&["flow.yaml"]).code(77).stderr_has("touch pwned");
    assert!(!test.flow().join("pwned").exists());
}

#[test]
fn file_changed_during_trust_prompt_is_not_trusted() {
    let harmless = graph(&json!({"type": "bash_exec", "command": "true"}));
    let test = folder(&[("flow.yaml", &harmless)]);
    let mut screen = test.on_screen(&["run", "--id", "t", "flow.yaml"], (30, 120));
    screen.wait_for(&["Type yes"]);
    let evil = graph(&json!({"type": "bash_exec", "command": "touch pwned"}));
    std::fs::write(test.flow().join("flow.yaml"), evil).expect("written");
    screen.keys("yes\r");
    screen.wait_for(&["touch pwned", "Type yes"]);
    screen.keys("no\r");
    assert_eq!(screen.wait_for_exit(), Some(77));
    assert!(!test.flow().join("pwned").exists());
    test.run(&["flow.yaml", "--id", "u"]).code(77);
}

#[test]
fn untrusted_graph_writes_nothing_that_other_programs_execute() {
    for path in
        [".git/config", ".git/hooks/post-checkout", ".claude/settings.json", ".bashrc", ".envrc"]
    {
        let write = graph(&json!({"type": "write_file", "path": path, "content": "x"}));
        let test = folder(&[("flow.yaml", &write)]);
        test.run(&["flow.yaml"]);
        assert!(!test.flow().join(path).exists(), "{path}");
        let records = test.journal().iter().map(ToString::to_string).collect::<String>();
        assert!(records.contains("which other programs take commands from"), "{records}");
    }
}

#[test]
fn graph_needs_trust_for_hidden_files_and_those_that_tools_obey() {
    let paths = [
        ".bash_aliases",
        ".vimrc",
        ".netrc",
        ".pre-commit-config.yaml",
        ".github/workflows/x.yml",
        ".devcontainer/devcontainer.json",
        ".cursor/mcp.json",
        "docs/CLAUDE.md",
        ".aws/config",
        "Makefile",
    ];
    for path in paths {
        let write = graph(&json!({"type": "write_file", "path": path, "content": "x"}));
        let test = folder(&[("flow.yaml", &write)]);
        test.run(&["flow.yaml"]).code(77).stderr_has(&format!("write_file: {path}"));
        assert!(!test.flow().join(path).exists(), "{path}");
        test.run(&["flow.yaml", "--trust", "--id", "trusting"]);
        assert!(test.flow().join(path).exists(), "{path}");
    }
}

#[test]
fn refusal_also_lists_requests_that_run_options_allow() {
    let rules = "---\nallowed_tools: [Bash]\n---\nx";
    let test = folder(&[("N.md", rules), (".claude/settings.json", "{}")]);
    let outcome = test.run(&["START.md", "--allow-tool", "Bash"]);
    outcome.code(77).stderr_has("N.md:2:17: widens").stderr_has(".claude/settings.json:1:1");
}

#[test]
fn changed_file_named_by_trusted_command_revokes_trust() {
    let command = graph(&json!({"type": "bash_exec", "command": "sh steps.txt"}));
    let test = folder(&[("flow.yaml", &command), ("steps.txt", "true\n")]);
    test.raymond(&["trust", "."]).ok();
    std::fs::write(test.flow().join("steps.txt"), "touch pwned\n").expect("written");
    test.run(&["flow.yaml"]).code(77);
    assert!(!test.flow().join("pwned").exists());
}

#[test]
fn trusting_prompt_only_folder_stores_nothing() {
    let test = folder(&[]);
    test.raymond(&["trust", "."]).ok().stderr_has("only prompts");
    assert_eq!(test.raymond(&["trust", "--list", "--json"]).ok().json(), json!([]));
}

#[test]
fn changed_claude_code_plugin_file_revokes_trust() {
    let test = folder(&[
        ("N.md", "---\nplugin_dirs: [helpers]\n---\nx"),
        ("helpers/commands/paint.md", "---\nallowed-tools: Read\n---\npaint"),
    ]);
    test.raymond(&["trust", "."]).ok();
    test.run(&["START.md", "--id", "a"]).ok();
    let command = test.flow().join("helpers/commands/paint.md");
    std::fs::write(command, "---\nallowed-tools: Bash\n---\npaint").expect("written");
    let outcome = test.run(&["START.md", "--id", "b"]);
    outcome.code(77).stderr_has("(helpers/commands/paint.md changed)");
}

#[test]
fn missing_mcp_config_does_not_hide_other_requests() {
    let keys = "---\nmcp_config: [gone.json]\nallowed_tools: [Bash]\n---\nx";
    let test = folder(&[("N.md", keys)]);
    test.run(&["START.md"]).code(77).stderr_has("`allowed_tools`: `Bash`");
}

#[test]
fn process_with_cleared_environment_cannot_grant_trust() {
    let raymond = env!("CARGO_BIN_EXE_raymond");
    let command = format!("env -i HOME=\"$HOME\" {raymond} trust . 2> said; echo $? > code");
    let test = folder(&[("flow.yaml", &graph(&json!({"type": "bash_exec", "command": command})))]);
    test.run(&["flow.yaml", "--trust"]).ok();
    let read = |name: &str| std::fs::read_to_string(test.flow().join(name)).expect("written");
    assert_eq!(read("code").trim(), "77", "{}", read("said"));
}

#[test]
fn trust_variable_accepts_only_boolean_words() {
    let command = graph(&json!({"type": "bash_exec", "command": "touch ran"}));
    let test = folder(&[("flow.yaml", &command)]);
    let with = |word: &str| {
        let run = format!("RAYMOND_TRUST={word} \"$0\" run flow.yaml --id {word}");
        test.shell(&run).wait()
    };
    with("off").code(77);
    with("junk").code(64).stderr_has("write true or false");
    with("on").ok();
    let listed = test.raymond(&["trust", "--list", "--json"]).ok().json();
    assert_eq!(listed[0]["origin"], "environment");
}

#[test]
fn runs_in_the_workflow_folder_itself_keep_what_it_was_trusted_for() {
    let wide = "---\nallowed_tools: [\"Bash(ls:*)\"]\n---\nGo.";
    let test = folder(&[("START.md", wide)]);
    let runs = test.flow().join("runs");
    test.run(&["START.md", "--trust", "--dir", &runs.display().to_string()])
        .ok()
        .ended("main", "ok");
}
