//! Values of options that are given by their names, with the help for each.

use clap::ValueEnum;
use clap::builder::PossibleValue;

use crate::domain::settings::{OnBudget, OnLimit};
use crate::domain::supervision::{OnExhausted, RestartPolicy};
use crate::domain::turn_options::ApprovalPolicy;
use crate::domain::turn_order::TurnOrder;
use crate::language::manifest::{ON_BUDGET, ON_LIMIT};

/// A value that is given by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamedValue<T>(pub T);

/// A value with its name and its meaning.
type NamedChoice<T> = (&'static str, T, &'static str);

fn possible_value<T: PartialEq>(choices: &[NamedChoice<T>], value: &T) -> Option<PossibleValue> {
    let (name, _, help) = choices.iter().find(|(_, known, _)| known == value)?;
    Some(PossibleValue::new(*name).help(*help))
}

impl ValueEnum for NamedValue<RestartPolicy> {
    fn value_variants<'a>() -> &'a [Self] {
        &[
            Self(RestartPolicy::Permanent),
            Self(RestartPolicy::Transient),
            Self(RestartPolicy::Temporary),
        ]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let help = [
            "after results and failures; it starts over in its first state",
            "after failures only",
            "never",
        ];
        possible_value(&choices(&RestartPolicy::ALL, help), &self.0)
    }
}

impl ValueEnum for NamedValue<OnExhausted> {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self(OnExhausted::FailAgent), Self(OnExhausted::FailRun), Self(OnExhausted::Wait)]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let help = [
            "the agent fails, the others continue",
            "the whole run fails",
            "the agent waits until a person resumes the run",
        ];
        possible_value(&choices(&OnExhausted::ALL, help), &self.0)
    }
}

impl ValueEnum for NamedValue<ApprovalPolicy> {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self(ApprovalPolicy::Refuse), Self(ApprovalPolicy::Ask)]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let help = match self.0 {
            ApprovalPolicy::Refuse => "it is refused",
            ApprovalPolicy::Ask => "a person is asked; see `raymond answer`",
        };
        let name: &'static str = self.0.into();
        Some(PossibleValue::new(name).help(help))
    }
}

impl ValueEnum for NamedValue<TurnOrder> {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self(TurnOrder::Depth), Self(TurnOrder::Breadth)]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let help = [
            "run agents that have already started first (depth-first)",
            "first come, first served",
        ];
        possible_value(&choices(&TurnOrder::ALL, help), &self.0)
    }
}

impl ValueEnum for NamedValue<OnLimit> {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self(OnLimit::Wait), Self(OnLimit::Pause), Self(OnLimit::Fail)]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let help = [
            "the run waits until the limit resets, and continues",
            "the run pauses (exit 75)",
            "the agent that reached it fails",
        ];
        possible_value(&choices(&ON_LIMIT, help), &self.0)
    }
}

impl ValueEnum for NamedValue<OnBudget> {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self(OnBudget::Pause), Self(OnBudget::End)]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let help = [
            "the run pauses (exit 75), and can be resumed with more",
            "each agent fails before its next turn",
        ];
        possible_value(&choices(&ON_BUDGET, help), &self.0)
    }
}

fn choices<T: Copy, const N: usize>(
    names: &[(&'static str, T); N],
    help: [&'static str; N],
) -> Vec<NamedChoice<T>> {
    names.iter().zip(help).map(|((name, value), help)| (*name, *value, help)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_named_value_has_help() {
        fn helps<T: ValueEnum>() -> bool {
            let values = T::value_variants().iter().map(ValueEnum::to_possible_value);
            values.into_iter().all(|value| value.is_some_and(|value| value.get_help().is_some()))
        }
        assert!(helps::<NamedValue<RestartPolicy>>() && helps::<NamedValue<OnExhausted>>());
        assert!(helps::<NamedValue<OnLimit>>());
    }
}
