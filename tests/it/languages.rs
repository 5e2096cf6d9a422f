//! The page about the three languages: its workflows are valid, and each comes to its end.

use std::fs;
use std::path::Path;

use crate::support::Test;

/// Returns the files of the page in one language: the names and the texts.
fn files(language: &str) -> Vec<(String, String)> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/languages.md");
    let page = fs::read_to_string(page).expect("the page");
    let fence = format!("```{language} ");
    let blocks = page.split(&fence).skip(1).filter_map(|rest| rest.split("```").next());
    let files = blocks.filter_map(|block| block.split_once('\n'));
    files.map(|(name, text)| (name.to_owned(), text.to_owned())).collect()
}

fn with(language: &str, replies: &str) -> Test {
    let files = files(language);
    assert!(!files.is_empty(), "{language}");
    let test = Test::new().file("replies.yaml", replies.as_bytes());
    files.iter().fold(test, |test, (name, text)| test.file(name, text.as_bytes()))
}

#[test]
fn review_in_each_language_is_valid_and_ends() {
    let table = [
        (
            "markdown",
            r#"
START.md: [It is made.]
REVIEW.md: ["<result>REVISE</result>", "<result>APPROVE</result>"]
VERDICT.md: ['<function return="VERDICT.md">REVIEW.md</function>', "<result>mended</result>"]
"#,
            "mended",
            5,
        ),
        (
            "yaml",
            r#"
"workflow.yaml#change": ["<result>made</result>"]
"workflow.yaml#review": ["<result>APPROVE</result>"]
"#,
            "Approved",
            2,
        ),
        (
            "lisp",
            r#"
"workflow.lisp#author": [made, mended]
"workflow.lisp#reviewer": ["mend it", "APPROVE"]
"#,
            r#""status":"completed","state":"done""#,
            4,
        ),
    ];
    // A first review sends the change back, but in the graph, each of whose agents begins with the first reply.
    for (language, replies, result, turns) in table {
        let test = with(language, replies);
        test.raymond(&["check", "."]).ok();
        let ended = test.raymond(&["run", ".", "--agent", "scripted", "--id", "r"]);
        ended.ok().stdout_has("Agent main terminated with result: ").stdout_has(result);
        let costs = test.raymond(&["costs", "r", "--json"]).ok().json();
        assert_eq!(costs["total"]["turns"], turns, "{language}");
    }
}
