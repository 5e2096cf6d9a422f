//! `raymond rules`: the rules that were given with answers to approvals of a run.

use serde_json::json;

use super::args::OneRunArgs;
use super::exit::{CliExitCode, Error};
use super::{output, run_choice};
use crate::domain::approval::{GrantedRule, PendingApproval, RuleScope};
use crate::domain::printable::one_line;
use crate::domain::views::ApprovalRuleRow;
use crate::store::view::load_view;

/// Runs `raymond rules`.
///
/// # Errors
/// [`Error::Store`] if there is no such run.
pub fn rules(args: &OneRunArgs) -> Result<CliExitCode, Error> {
    let root = args.dir.root();
    let id = run_choice::chosen(&args.named, &root)?;
    let run = load_view(&root, &id)?.run;
    if args.json {
        let rules: Vec<_> = run.approval_rules.iter().map(ApprovalRuleRow::from).collect();
        return output::print_json(&json!({ "run": run.workflow_id, "rules": rules }));
    }
    if run.approval_rules.is_empty() {
        output::tell(&format!(
            "no rule was given in {id}; allow-always, as an answer to a tool call that needs approval, gives one"
        ));
        return Ok(CliExitCode::Success);
    }
    let head = ["rule", "in", "given with", "by"].map(str::to_owned).to_vec();
    let rows: Vec<Vec<String>> =
        std::iter::once(head).chain(run.approval_rules.iter().map(as_row)).collect();
    output::print(&output::table(&rows))
}

fn as_row(granted: &GrantedRule) -> Vec<String> {
    let place = match &granted.scope {
        RuleScope::State(state) => state.to_string(),
        RuleScope::Run => "the run".to_owned(),
    };
    vec![
        one_line(&granted.rule.to_string()),
        place,
        PendingApproval::name_of(granted.approval),
        granted.by.clone().unwrap_or_else(|| "a person".to_owned()),
    ]
}
