//! The terms of a live run of a case: the model, the money, the time, and what the person allows.

use std::ffi::OsString;
use std::time::Duration;

use super::case_options::options;
use crate::cli::args::cases::LivePermissions;
use crate::domain::budget::LivePart;
use crate::domain::model::ModelName;
use crate::domain::money::Usd;
use crate::language::cases::CaseSetting;
use crate::language::manifest::dollars;

/// The time that the turns of a live run have to end after an interrupt.
const SHUTDOWN: &str = "5s";

/// The terms of a live run.
#[derive(Debug, Clone)]
pub(super) struct LiveTerms {
    /// The model of states that name none; `None` for that of the workflow.
    pub(super) model: Option<ModelName>,
    /// The part of the money.
    pub(super) part: LivePart,
    /// The time after which the run fails.
    pub(super) limit: Duration,
    /// The permissions that the person gives.
    pub(super) permissions: LivePermissions,
}

impl LiveTerms {
    /// Returns the arguments of `raymond run`: the settings of the case, as far as they are within the terms, and the
    /// terms.
    pub(super) fn arguments(&self, settings: &[CaseSetting]) -> Vec<OsString> {
        let is_replaced = |setting: &CaseSetting| match &*setting.name {
            "model" => self.model.is_some(),
            // Money that runs out has to pause the run, so that it is known that it was cut off.
            "on_budget" => !self.is_own_budget(settings),
            "budget" | "shutdown" => true,
            _ => setting.permission().is_some(),
        };
        let kept: Vec<CaseSetting> =
            settings.iter().filter(|setting| !is_replaced(setting)).cloned().collect();
        let mut arguments = options(&kept);
        arguments.extend(self.model.iter().map(|model| format!("--model={model}").into()));
        arguments.push(format!("--budget={}", self.budget(settings).dollars()).into());
        arguments.push(format!("--shutdown={SHUTDOWN}").into());
        arguments.extend(self.permissions.arguments());
        arguments
    }

    /// Returns whether the budget of the case itself is the one that its run is held to.
    pub(super) fn is_own_budget(&self, settings: &[CaseSetting]) -> bool {
        own_budget(settings).is_some_and(|own| own <= self.part.run_budget())
    }

    fn budget(&self, settings: &[CaseSetting]) -> Usd {
        let part = self.part.run_budget();
        own_budget(settings).map_or(part, |own| own.min(part))
    }
}

fn own_budget(settings: &[CaseSetting]) -> Option<Usd> {
    let own = settings.iter().find(|setting| setting.name == "budget")?;
    dollars(own.value.as_deref()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::budget::{LiveBudget, LiveBudgetAnswer};
    use crate::language::position::SourcePlace;

    fn shown(settings: &[(&str, &str)], model: Option<&str>) -> String {
        let mut budget = LiveBudget::new(Usd::from_dollars(1.0));
        let LiveBudgetAnswer::Part(part) = budget.reserve(1, Usd::ZERO) else {
            panic!("there is money")
        };
        let model = model.map(|model| ModelName::parse(model).expect("a model"));
        let permissions = LivePermissions::default();
        let terms = LiveTerms { model, part, limit: Duration::ZERO, permissions };
        let setting = |(name, value): &(&str, &str)| CaseSetting {
            name: (*name).to_owned(),
            at: SourcePlace::START,
            value: Some((*value).to_owned()),
        };
        let settings: Vec<CaseSetting> = settings.iter().map(setting).collect();
        let words = terms.arguments(&settings);
        words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn case_spends_no_more_and_may_do_no_more_than_its_terms_say() {
        assert_eq!(shown(&[], None), "--budget=0.5 --shutdown=5s");
        assert_eq!(
            shown(&[("model", "opus"), ("max_agents", "3")], Some("haiku")),
            "--max-agents=3 --model=haiku --budget=0.5 --shutdown=5s"
        );
        assert_eq!(
            shown(&[("model", "opus"), ("budget", "0.10"), ("on_budget", "end")], None),
            "--model=opus --on-budget=end --budget=0.1 --shutdown=5s"
        );
        assert_eq!(
            shown(&[("budget", "20"), ("on_budget", "end"), ("allow_tools", "Bash")], None),
            "--budget=0.5 --shutdown=5s"
        );
    }
}
