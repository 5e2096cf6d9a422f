//! The sample of a workflow that enters other folders, which has files in several.

use super::{SampleDirectories, SampleWorkflow, code, count, lines, records, told, transitions};

/// The samples whose files are in several folders.
pub(super) const NAMES: [&str; 1] = ["compose"];

const COMPOSE: SampleWorkflow = SampleWorkflow {
    name: "compose",
    input: Some("a library in a lighthouse"),
    steps: &[
        r#"main START.md: <call return="TITLE.md" audience="a stranger" text="A library in a lighthouse, with a cat.">START.md</call>"#,
        "main START.md: <goto>VERDICT.md</goto>",
        r#"main VERDICT.md: <result verdict="revise">It lists things.</result>"#,
        r#"main TITLE.md: <function return="DONE.md" text="Read by lighthouse light, with a cat on your knees.">START.md</function>"#,
        "main START.md: <result>Lighthouse Library</result>",
        "main DONE.md: <result>Lighthouse Library: Read by lighthouse light, with a cat on your knees.</result>",
    ],
    cost_usd: 0.007,
    reminders: 1,
};

#[test]
fn composed_sample_enters_folder_and_library_and_returns() {
    let place = SampleDirectories::new();
    let plain = place.run(&COMPOSE, "plain", &["--input", "a library in a lighthouse"]);
    assert_eq!(code(&plain), 0, "{}", told(&plain));
    assert_eq!(lines(&plain), COMPOSE.final_lines());
    let json = place.run(&COMPOSE, "json", &["--json", "--input", "a library in a lighthouse"]);
    let records = records(&json);
    assert_eq!(transitions(&records), COMPOSE.transitions());
    assert_eq!(count(&records, "turn_rejected"), COMPOSE.reminders);
    let scopes: Vec<&str> =
        records.iter().filter_map(|record| record["transition"]["scope"].as_str()).collect();
    assert_eq!(scopes, ["review", "lib:title"]);
    place.expect_spent("json", COMPOSE.cost_usd);
}
