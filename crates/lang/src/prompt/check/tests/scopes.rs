//! Folders that tags lead to, which have paths of their own only if their states have other names: what they are given, and loops through several of them.

use super::*;

fn found(files: &[(&str, &str)]) -> Vec<String> {
    checked(files, None, &[])
}

#[test]
fn item_of_a_fork_into_another_folder_is_known_there() {
    let work = "{{link}} {{kind}} {{other}} <result>x</result>";
    let inline = "<fork next=\"END.md\" each='[{\"kind\": 1}]' as=\"link\">work/GO.md</fork>";
    let end = ("END.md", "<result>x</result>");
    let lines = found(&[("START.md", inline), ("work/GO.md", work), end]);
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains("RF401 nothing fills {{other}}"), "{lines:?}");
    let in_file = "<fork next=\"END.md\" each=\"links.json\" as=\"link\">work/GO.md</fork>";
    let none = found(&[("START.md", in_file), ("work/GO.md", work), end]);
    assert!(none.is_empty(), "{none:?}");
}

#[test]
fn join_in_another_folder_waits_for_agents_that_were_forked_before() {
    let files = [
        ("START.md", "<fork next=\"NEXT.md\">WORK.md</fork>"),
        ("WORK.md", "<result>x</result>"),
        ("NEXT.md", &*prompt("tag: goto, target: all/GO.md; tag: result", "x")),
        ("all/GO.md", &*format!("---\njoin: all\n{}", &prompt("tag: result", "x")[4..])),
    ];
    assert!(found(&files).is_empty(), "{:?}", found(&files));
    let left_there = [
        ("START.md", &*prompt("tag: call, target: sub/GO.md, return: ALL.md; tag: result", "x")),
        ("ALL.md", &*format!("---\njoin: all\n{}", &prompt("tag: result", "x")[4..])),
        ("sub/GO.md", "<fork next=\"END.md\">END.md</fork>"),
        ("sub/END.md", "<result>x</result>"),
    ];
    assert!(found(&left_there).is_empty(), "{:?}", found(&left_there));
}

#[test]
fn loop_through_several_folders_without_a_result_is_warned_of() {
    let to = |target: &str| prompt(&format!("tag: goto, target: {target}"), "x");
    let files = |last: &str| {
        [("START.md", to("a/")), ("a/START.md", to("../b/NEXT.md")), ("b/NEXT.md", last.to_owned())]
    };
    let checked_with = |last: &str| {
        let files = files(last);
        let files: Vec<(&str, &str)> =
            files.iter().map(|(name, text)| (*name, text.as_str())).collect();
        found(&files)
    };
    let endless = checked_with(&to("../START.md"));
    let found: Vec<&String> = endless.iter().filter(|line| line.contains("RF304")).collect();
    assert_eq!(found.len(), 1, "{endless:?}");
    assert!(found[0].starts_with("START.md:3:26: warning: RF304 an agent that comes here goes"));
    let ends = checked_with(&prompt("tag: goto, target: ../START.md; tag: result", "x"));
    assert!(ends.iter().all(|line| !line.contains("RF304")), "{ends:?}");
}

#[test]
fn folder_that_cannot_be_entered_is_reported_where_its_mistake_is() {
    let start = prompt("tag: goto, target: review/; tag: result", "x");
    let broken = found(&[
        ("START.md", &start),
        ("review/raymond.yaml", "inputs: [oops\n"),
        ("review/START.md", "<result>x</result>"),
    ]);
    assert_eq!(broken.len(), 2, "{broken:#?}");
    assert!(
        broken[0].starts_with("START.md:3:26: RF101 review/: this folder cannot be entered: ")
            && broken[0].contains("raymond.yaml:1:9: this is not YAML"),
        "{broken:#?}"
    );
    assert!(broken[1].contains("raymond.yaml:1:9: RF003 this is not YAML"), "{broken:#?}");
    let empty = found(&[("START.md", &start), ("review/OTHER.md", "<result>x</result>")]);
    assert_eq!(
        empty,
        [
            "START.md:3:26: RF101 review/: this folder cannot be entered: it has no first state; make START.md, START.sh, workflow.yaml or workflow.lisp there, name its first file as `entry` in a raymond.yaml there, or let the tag name the file"
        ]
    );
}

#[test]
fn mistake_in_the_manifest_of_a_folder_is_found_where_a_tag_names_a_state() {
    let found = found(&[
        ("START.md", &prompt("tag: goto, target: review/GO.md; tag: result", "x")),
        ("review/raymond.yaml", "inputs: much\n"),
        ("review/GO.md", "<result>x</result>"),
    ]);
    assert!(found.len() == 1 && found[0].contains("raymond.yaml:1:9: RF003 "), "{found:#?}");
}

#[test]
fn call_that_never_comes_back_through_another_folder_is_error() {
    let files = |last: &str| {
        found(&[
            ("START.md", &prompt("tag: call, target: SUB.md, return: END.md; tag: result", "x")),
            ("SUB.md", &prompt("tag: goto, target: a/", "x")),
            ("a/START.md", last),
            ("END.md", "<result>x</result>"),
        ])
    };
    let endless = files(&prompt("tag: goto, target: ../SUB.md", "x"));
    let calls: Vec<&String> = endless.iter().filter(|line| line.contains("RF301")).collect();
    assert_eq!(calls.len(), 1, "{endless:#?}");
    assert!(calls[0].starts_with("START.md:3:26: RF301 this call of SUB.md never comes back"));
    let sound = files(&prompt("tag: goto, target: ../SUB.md; tag: result", "x"));
    assert!(sound.is_empty(), "{sound:#?}");
    let lines = files("<goto>../SUB.md</goto>");
    assert!(
        lines.iter().any(|line| line.starts_with("START.md:3:26: warning: RF308")),
        "{lines:#?}"
    );
}

#[test]
fn forks_through_another_folder_without_an_end_are_warned_of() {
    let files = |manifest: &str| {
        found(&[
            ("raymond.yaml", manifest),
            ("START.md", &prompt("tag: fork, target: a/, next: END.md", "x")),
            ("a/START.md", &prompt("tag: goto, target: ../START.md", "x")),
            ("END.md", "<result>x</result>"),
        ])
    };
    let endless = files("name: x\n");
    let forks: Vec<&String> = endless.iter().filter(|line| line.contains("RF303")).collect();
    assert_eq!(forks.len(), 1, "{endless:#?}");
    assert!(forks[0].starts_with("START.md:3:5: warning: RF303 START.md forks a/START.md again"));
    let bounded = files("budget: 1\n");
    assert!(bounded.is_empty(), "{bounded:#?}");
}
