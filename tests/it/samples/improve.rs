//! `improve`, which improves a text until a budget is used up.

use super::{IMPROVE, SampleDirectories, code, count, lines, records, told, transitions};

#[test]
fn improve_pauses_at_its_budget_and_resumes_with_a_larger_one() {
    let place = SampleDirectories::new();
    let short = place.run(&IMPROVE, "it", &["--json", "--budget", "0.10"]);
    assert_eq!(code(&short), 75, "{}", told(&short));
    let before = records(&short);
    assert_eq!(count(&before, "run_paused"), 1);
    let all = &IMPROVE.transitions()["main"];
    assert_eq!(transitions(&before)["main"], all[..4]);
    place.expect_spent("it", 0.12);

    // A scripted run stays a scripted one: a resume must not begin to cost money.
    let long = place.raymond(&["run", "it", "--json", "--budget", "1.00"]);
    assert_eq!(code(&long), 0, "{}", told(&long));
    let last = before.iter().filter_map(|record| record["seq"].as_u64()).max();
    let mut after = records(&long);
    after.retain(|record| record["seq"].as_u64() > last);
    assert_eq!(transitions(&after)["main"], all[4..], "{}", told(&long));
    place.expect_spent("it", IMPROVE.cost_usd);
}

#[test]
fn improve_succeeds_within_a_larger_budget() {
    let place = SampleDirectories::new();
    let out = place.run(&IMPROVE, "it", &["--budget", "1.00"]);
    assert_eq!(code(&out), 0, "{}", told(&out));
    assert_eq!(lines(&out), IMPROVE.final_lines());
}
