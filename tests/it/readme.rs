//! The README and the pages it links to first: their commands run, and their tables are those of the code.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use clap::CommandFactory;
use raymond::cli::args::Cli;
use raymond::domain::transition::TagName;
use raymond::language::tag;

use crate::support::Test;

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
fn readme_lists_every_command() {
    let listed =
        table(&readme(), "command").iter().map(|row| row[0].clone()).collect::<Vec<_>>().join(" ");
    let named: BTreeSet<&str> = listed
        .split('`')
        .filter_map(|code| code.strip_prefix("raymond "))
        .filter_map(|code| code.split(' ').next())
        .filter(|word| word.chars().all(char::is_lowercase))
        .collect();
    let command = Cli::command();
    let known: BTreeSet<&str> = command
        .get_subcommands()
        .map(clap::Command::get_name)
        .filter(|name| *name != "resume")
        .collect();
    assert_eq!(named, known);
}

#[test]
fn tour_command_of_the_readme_runs() {
    let text = readme();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("cargo run -- "))
        .expect("the first command of the README runs the tour");
    let place = tempfile::tempdir().expect("a temporary folder");
    let output = Command::new(env!("CARGO_BIN_EXE_raymond"))
        .args(line.split(' '))
        .env_clear()
        .env("RAYMOND_DIR", place.path())
        .env("HOME", place.path())
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("raymond starts");
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}{err}");
    assert!(out.contains("Agent main terminated with result: "), "{out}");
    assert!(err.contains("no model is called"), "{err}");
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
fn readme_has_fewer_than_150_lines() {
    assert!(readme().lines().count() < 150);
}

#[test]
fn prompt_in_the_readme_is_valid() {
    let text = readme();
    let prompt = text.split("```markdown\n").nth(1).and_then(|rest| rest.split("```").next());
    let document = raymond::language::prompt::document::parse(prompt.expect("it shows a prompt"))
        .expect("the prompt is valid");
    assert_eq!(document.frontmatter.policy.allowed.len(), 2);
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
        .file("links.txt", b"a.html\nb.html\n");
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
fn program_example_of_the_readme_runs() {
    let page = readme();
    let (_, program) = page.split_once("```lisp\n").expect("it shows a program");
    let (program, _) = program.split_once("```").expect("it ends");
    let replies = "\"essay.lisp#author\": [first, better]\n\"essay.lisp#critic\": [longer! REVISE, APPROVE]\n";
    let test =
        Test::new().file("essay.lisp", program.as_bytes()).file("replies.yaml", replies.as_bytes());
    test.raymond(&["check", "essay.lisp"]).ok();
    test.run(&["essay.lisp", "--input", "the sea", "--agent", "scripted"])
        .ok()
        .ended("main", "better");
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
        "--label",
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
