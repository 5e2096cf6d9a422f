//! Values of options that are given by their names, with the help for each.

use clap::ValueEnum;
use clap::builder::PossibleValue;
use strum::VariantArray as _;

use crate::domain::settings::{OnBudget, OnLimit};
use crate::domain::supervision::{OnExhausted, RestartPolicy};
use crate::domain::turn_options::ApprovalPolicy;
use crate::domain::turn_order::TurnOrder;
use crate::language::manifest::{ON_BUDGET, ON_LIMIT};

/// A value that is given by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamedValue<T>(pub T);

/// Makes a type's values known by the names of a list, each with its help.
macro_rules! named_values {
    ($($kind:ident in $names:expr => { $($value:ident: $help:literal,)+ })+) => {
        $(impl ValueEnum for NamedValue<$kind> {
            fn value_variants<'a>() -> &'a [Self] {
                &[$(Self($kind::$value)),+]
            }

            fn to_possible_value(&self) -> Option<PossibleValue> {
                let help = match self.0 {
                    $($kind::$value => $help,)+
                };
                let (name, _) = $names.into_iter().find(|(_, known)| *known == self.0)?;
                Some(PossibleValue::new(name).help(help))
            }
        })+
    };
}

named_values! {
    RestartPolicy in RestartPolicy::ALL => {
        Permanent: "after results and failures; it starts over in its first state",
        Transient: "after failures only",
        Temporary: "never",
    }
    OnExhausted in OnExhausted::ALL => {
        FailAgent: "the agent fails, the others continue",
        FailRun: "the whole run fails",
        Wait: "the agent waits until a person resumes the run",
    }
    ApprovalPolicy in ApprovalPolicy::VARIANTS.iter().map(|&policy| (<&'static str>::from(policy), policy)) => {
        Refuse: "it is refused",
        Ask: "a person is asked; see `raymond answer`",
    }
    TurnOrder in TurnOrder::ALL => {
        Depth: "run agents that have already started first (depth-first)",
        Breadth: "first come, first served",
    }
    OnLimit in ON_LIMIT => {
        Wait: "the run waits until the limit resets, and continues",
        Pause: "the run pauses (exit 75)",
        Fail: "the agent that reached it fails",
    }
    OnBudget in ON_BUDGET => {
        Pause: "the run pauses (exit 75), and can be resumed with more",
        End: "each agent fails before its next turn",
    }
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
