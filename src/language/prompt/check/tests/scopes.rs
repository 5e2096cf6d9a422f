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
    let one = found(&[("START.md", inline), ("work/GO.md", work), end]);
    assert_eq!(one.len(), 1, "{one:?}");
    assert!(one[0].contains("RF401 nothing fills {{other}}"), "{one:?}");
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
