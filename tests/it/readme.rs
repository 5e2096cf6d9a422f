//! The README and the pages it links to first: their commands run, and their tables are those of the code.

use std::fs;
use std::path::Path;
use std::process::Command;

use raymond::domain::transition::TagName;
use raymond::language::tag;

use crate::support::{Test, when};

fn page(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).expect("there is a page")
}

fn readme() -> String {
    page("README.md")
}

/// Returns the cells of the table whose first heading is `heading`, without the head.
fn table(text: &str, heading: &str) -> Vec<Vec<String>> {
    let head = format!("| {heading} |");
    let rows = text.lines().skip_while(|line| !line.starts_with(&head)).skip(2);
    rows.take_while(|line| line.starts_with('|'))
        .map(|line| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect())
        .collect()
}

#[test]
fn listed_tags_parse_and_match_those_of_the_code() {
    let rows = table(&readme(), "tag");
    let listed: Vec<TagName> = rows
        .iter()
        .map(|row| {
            let reading = tag::find(row[0].trim_matches('`'));
            let [Ok(transition)] = reading.tags.as_slice() else { panic!("{row:?}: {reading:?}") };
            transition.tag()
        })
        .collect();
    assert_eq!(listed, TagName::ALL);
}

#[test]
fn readme_lists_the_commands_of_the_short_help() {
    let listed: Vec<String> = table(&readme(), "command")
        .iter()
        .filter_map(|row| row[0].split(' ').nth(1).map(|name| name.trim_matches('`').to_owned()))
        .collect();
    let help = Test::new().raymond(&["help"]);
    let (_, commands) = help.stdout.split_once("\nCommands:\n").expect("it lists commands");
    let mut shown: Vec<&str> = commands
        .lines()
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    let mut listed: Vec<&str> = listed.iter().map(String::as_str).collect();
    listed.sort_unstable();
    shown.sort_unstable();
    assert_eq!(listed, shown);
}

/// Returns the fenced blocks of a page: the paragraph before each, its language and its text.
fn blocks(page: &str) -> Vec<(String, String, String)> {
    let mut found = Vec::new();
    let (mut before, mut lines) = (String::new(), page.lines());
    while let Some(line) = lines.next() {
        if let Some(language) = line.strip_prefix("```") {
            let text = lines.by_ref().take_while(|line| *line != "```");
            let text = text.collect::<Vec<_>>().join("\n") + "\n";
            found.push((std::mem::take(&mut before), language.to_owned(), text));
        } else if !line.is_empty() {
            before = line.to_owned();
        }
    }
    found
}

/// Returns a line of a script that fails unless it exits as its comment says.
fn with_exit_code(line: &str) -> String {
    match line.split_once("# exits ") {
        Some((command, code)) => format!("code=0; {command} || code=$?; test $code = {code}\n"),
        None => format!("{line}\n"),
    }
}

#[test]
fn each_block_of_the_readme_runs_as_printed_and_shows_the_files_that_are_there() {
    let page = readme();
    let test = Test::new()
        .rule(when("the sea").reply("Too long. <goto>POLISH.md</goto>"))
        .rule(when("weakest word").reply("<result>Salt wind</result>"))
        .rule(when("a lighthouse").reply("<result>One light\n</result>"));
    let flow = test.flow();
    let mut script = "raymond=$0\nraymond() { \"$raymond\" \"$@\"; }\ncargo() { test \"$*\" = 'install --path .'; }\nset -e\n".to_owned();
    let mut files = Vec::new();
    for (before, language, text) in blocks(&page) {
        match language.as_str() {
            "sh" => script.extend(text.lines().map(with_exit_code)),
            "markdown" | "yaml" => {
                let mut quoted = before.split('`').filter(|part| part.contains('/'));
                let path = quoted.next().expect("the line above names the file").to_owned();
                if path.starts_with("files/") {
                    fs::create_dir_all(flow.join("files")).expect("created");
                    fs::write(flow.join(&path), &text).expect("written");
                }
                files.push((path, text));
            }
            other => panic!("a block of an unknown kind: {other}"),
        }
    }
    let outcome = test.shell(&script).wait();
    outcome.ok().stderr_has("no model is called").stdout_has("into one white wing.");
    outcome.stderr_has("the budget of $0.05 is used up").stdout_has("result: summary.txt");
    outcome.stderr_has("when the cause is fixed: raymond retry first --prompts");
    assert_eq!(files.len(), 8);
    for (path, text) in files {
        let stored = fs::read_to_string(flow.join(&path)).expect("it is there");
        assert!(stored.starts_with(&text), "{path}: {stored}");
    }
    assert_eq!(fs::read_to_string(flow.join("haiku.txt")).expect("written"), "One light\n");
}

#[test]
fn tour_picture_matches_the_output_of_the_program() {
    let drawn = Command::new("python3")
        .args(["docs/pictures/tour.py", env!("CARGO_BIN_EXE_raymond")])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("python3 runs");
    assert!(drawn.status.success(), "{}", String::from_utf8_lossy(&drawn.stderr));
    assert_eq!(
        String::from_utf8_lossy(&drawn.stdout),
        page("docs/pictures/tour.svg"),
        "draw it again: python3 docs/pictures/tour.py target/debug/raymond > docs/pictures/tour.svg"
    );
}

#[test]
fn readme_has_at_most_1100_words_beside_its_blocks() {
    let page = readme();
    let beside: Vec<&str> = page.split("```").step_by(2).collect();
    assert!(beside.join(" ").split_whitespace().count() <= 1100);
}

#[test]
fn fan_out_example_of_the_how_to_runs() {
    let page = page("docs/how-to/fan-out-and-join.md");
    let mut blocks =
        page.split("```markdown\n").skip(1).filter_map(|rest| rest.split("```").next());
    let mut prompt = || blocks.next().expect("three prompts");
    let replies = page.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next());
    let replies = replies.expect("it shows replies");
    let test = Test::new()
        .prompt("START.md", prompt())
        .prompt("CHECK.md", prompt())
        .prompt("REPORT.md", prompt())
        .prompt("replies.yaml", replies)
        .file(".raymond/tmp/links.txt", b"a.html\nb.html\n");
    test.raymond(&["check", "."]).ok().stderr_has(".: 4 files, no problems");
    test.raymond(&["run", ".", "--agent", "scripted", "--stagger", "0s"])
        .ok()
        .stdout_has("Agent main.2 terminated with result: b.html is well\n")
        .stdout_has("{\"id\":\"main.1\",\"state\":\"CHECK.md\",\"status\":\"result\",\"result\":\"a.html is well\",\"variables\":{\"link\":\"a.html\"}}");
    for key in ["join", "timeout", "on_timeout", "on_failure", "rest"] {
        let named = format!("`{key}`");
        assert!(table(&page, "frontmatter").iter().any(|row| row[0] == named), "{key}");
    }
}

#[test]
fn graph_example_of_the_how_to_runs() {
    let page = page("docs/how-to/write-a-graph.md");
    let mut blocks = page.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next());
    let graph = blocks.find(|block| block.starts_with("name: ")).expect("it shows a graph");
    let test = Test::new().file("workflow.yaml", graph.as_bytes());
    let flow = test.flow();
    let flow = flow.to_str().expect("a path");
    test.raymond(&["check", flow]).ok();
    test.raymond(&["run", flow, "--answer", "ask=Ada"]).ok().stdout_has("Greeted 1 so far");
    test.raymond(&["run", flow, "--answer", "ask=1"]).ok().stdout_has("Greeted 2 so far");
    test.raymond(&["run", flow, "--answer", "ask=nobody"]).code(1).says("Nobody was greeted");
    test.raymond(&["run", flow]).code(2).stdout_has("Who is to be greeted?");
}

#[test]
fn program_example_of_the_how_to_runs() {
    let page = page("docs/how-to/write-a-program.md");
    let mut blocks = page.split("```lisp\n").skip(1).filter_map(|rest| rest.split("```").next());
    let program = blocks.find(|block| block.starts_with("(workflow ")).expect("it shows a program");
    let replies = "\"workflow.lisp#author\": [first, better]\n\"workflow.lisp#critic\": [longer! REVISE, APPROVE]\n";
    let test = Test::new()
        .file("workflow.lisp", program.as_bytes())
        .file("replies.yaml", replies.as_bytes());
    let flow = test.flow();
    let flow = flow.to_str().expect("a path");
    test.raymond(&["check", flow]).ok();
    test.raymond(&["signal", "text/released", "--key", "haiku-1"]).ok();
    test.raymond(&[
        "run",
        flow,
        "--agent",
        "scripted",
        "--id",
        "haiku-1",
        "--context",
        "input=a haiku",
    ])
    .ok()
    .stdout_has("Agent main terminated with result: better");
    test.raymond(&["workflow", "watch", "haiku-1"])
        .ok()
        .stdout_has("    Write this, and reply with the text alone: a haiku\n");
}

/// Returns the first block of code after a text of a page.
fn block_after<'page>(page: &'page str, text: &str) -> &'page str {
    let (_, rest) = page.split_once(text).unwrap_or_else(|| panic!("the page has {text}"));
    let block = rest.split_once("```").and_then(|(_, rest)| rest.split_once('\n'));
    block.and_then(|(_, rest)| rest.split("```").next()).expect("a block of code follows")
}

#[test]
fn poems_of_the_tutorial_say_and_cost_what_it_shows() {
    let page = page("docs/tutorial/first-workflow.md");
    let file = |name: &str| block_after(&page, &format!("`poems/{name}`"));
    let replies = file("replies.yaml").replace("    delay: 5s\n", "");
    let test = Test::new()
        .prompt("START.md", file("START.md"))
        .prompt("WRITE.md", file("WRITE.md"))
        .prompt("PICK.md", file("PICK.md"))
        .prompt("replies.yaml", &replies);
    test.raymond(&["check", "."]).ok().stderr_has(".: 4 files, no problems");
    let run = ["run", ".", "--agent", "scripted", "--input", "autumn", "--id", "first"];
    let outcome = test.raymond(&[&run[..], &["--stagger", "0s"]].concat());
    outcome.ok();
    let shown =
        block_after(&page, "raymond run poems --agent scripted --input autumn --id first\n```");
    for line in shown.lines().filter(|line| line.starts_with("main")) {
        let line = line.replace("  5.0s", "  0.0s");
        outcome.assert(outcome.stderr.contains(&line), &line);
    }
    let costs = test.raymond(&["costs", "first"]).ok().stdout.clone();
    for line in block_after(&page, "raymond costs second\n```").lines().filter(|line| *line != "…")
    {
        assert!(costs.contains(line), "{line} in {costs}");
    }
}
