//! Scripts in a folder: the tags in their texts are ways, though none that is certain.

use super::*;

const START: &str =
    "---\nallowed_transitions:\n  - { tag: goto, target: BUILD.sh }\n---\nGo to BUILD.sh.";

fn found(files: &[(&str, &str)]) -> Vec<String> {
    checked(&[&[("START.md", START)], files].concat(), None, &[])
}

#[test]
fn values_that_scripts_give_fill_placeholders() {
    let script = "#!/bin/sh\necho \"<goto error=\\\"$e\\\" from='x'>FIX.md</goto>\"\n";
    let fix = "{{error}} {{from}} {{other}}\n<result>x</result>";
    let found = found(&[("BUILD.sh", script), ("FIX.md", fix)]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("RF401 nothing fills {{other}}"), "{found:?}");
}

#[test]
fn join_after_forks_of_a_script_waits_for_their_agents() {
    let script = "echo '<fork next=\"ALL.md\" each=\"list.json\">WORK.md</fork>'\n";
    let all = "---\njoin: all\n---\n{{results}} <result>x</result>";
    let work = "{{item}} {{field}} <result>x</result>";
    let found = found(&[("BUILD.sh", script), ("ALL.md", all), ("WORK.md", work)]);
    assert!(found.is_empty(), "{found:?}");
    let passed = [
        ("BUILD.sh", "echo '<goto>ALL.md</goto>'\n"),
        ("ALL.md", all),
        ("START.md", "<fork next=\"BUILD.sh\">WORK.md</fork>"),
        ("WORK.md", "<result>x</result>"),
    ];
    let found = checked(&passed, None, &[]);
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn missing_target_of_a_script_is_warned_of_at_its_place() {
    let script = "# or <goto>OLD.md</goto>\nif x; then echo \"a \\\"b\\\" <goto>GOEN.md</goto>\"\nelse echo \"<goto>$next</goto>\"; fi\necho '<call>GONE.md</call>'";
    let found = found(&[("BUILD.sh", script), ("GONE.md", "<result>x</result>")]);
    let beyond = checked(&[("START.sh", "echo '<goto>gone/</goto>'\n")], None, &[]);
    assert!(
        beyond[0]
            .starts_with("START.sh:1:7: warning: RF103 the script has <goto>gone/</goto>, but"),
        "{beyond:?}"
    );
    assert_eq!(
        found,
        [
            "BUILD.sh:2:26: warning: RF103 the script has <goto>GOEN.md</goto>, but GOEN.md: there is no such file; did you mean GONE.md?",
            "BUILD.sh:4:7: warning: RF106 the script has a tag that is refused: <call> needs the attribute return=\"FILE.md\"",
        ]
    );
}

#[test]
fn tag_whose_quotes_a_shell_takes_is_warned_of() {
    let end = ("END.md", "<result>x</result>");
    let script = "x=1\necho \"<call return=\"END.md\">END.md</call>\"\n";
    let warning = "BUILD.sh:2:7: warning: RF106 the script has a <call> within \"…\", where the shell takes the quotes of its attributes; write \\\" there, or put the whole tag into '…'";
    assert_eq!(found(&[("BUILD.sh", script), end]), [warning]);
    for sound in [
        "echo \"<call return=\\\"END.md\\\">END.md</call>\"",
        "echo '<call return=\"END.md\">END.md</call>'",
        "echo \"<goto>END.md</goto>\"",
    ] {
        assert!(found(&[("BUILD.sh", sound), end]).is_empty(), "{sound}");
    }
    let wrong = "echo \"<call return=\\\"GONE.md\\\">END.md</call>\"";
    let found = found(&[("BUILD.sh", wrong), end]);
    assert!(found.len() == 1 && found[0].starts_with("BUILD.sh:1:7: warning: RF103"), "{found:?}");
}
