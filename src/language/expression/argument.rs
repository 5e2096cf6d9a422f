//! Checks the arguments of methods, as far as that is possible before their values are known.

use super::ast::{ArgumentNode, Lambda};
use super::method::{BuiltinMethod, FirstParameter};

/// Returns why an argument of a method is wrong for any receiver, or `None` if it may be right.
pub(super) fn refusal(
    method: BuiltinMethod,
    place: usize,
    argument: &ArgumentNode,
) -> Option<String> {
    let name = method.name();
    let first = if place == 0 { method.first_parameter() } else { FirstParameter::Value };
    match (first, argument) {
        (
            FirstParameter::Lambda { least, most },
            ArgumentNode::Lambda(Lambda { parameters, .. }),
        ) => {
            let given = parameters.len();
            let shape = if least == 2 { "(sum, x) => sum + x" } else { "x => x.id" };
            (!(least..=most).contains(&given)).then(|| {
                format!("the function of {name} has {least} or {most} parameters, as in `{shape}`")
            })
        }
        (FirstParameter::Lambda { least: 2, .. }, _) => {
            Some(format!("{name} takes a function, as in `{name}((sum, x) => sum + x, 0)`"))
        }
        (FirstParameter::Lambda { .. }, _) => {
            Some(format!("{name} takes a function, as in `{name}(x => x.id)`"))
        }
        (_, ArgumentNode::Lambda(_)) => Some(format!("{name} takes no function here")),
        (FirstParameter::Value, ArgumentNode::Pattern(_)) => {
            Some(format!("{name} takes no regular expression here"))
        }
        (FirstParameter::Pattern, ArgumentNode::Value(_)) => {
            Some(format!("{name} takes a regular expression, as in `{name}(/[0-9]+/)`"))
        }
        (FirstParameter::Value | FirstParameter::TextOrPattern, ArgumentNode::Value(_))
        | (FirstParameter::Pattern | FirstParameter::TextOrPattern, ArgumentNode::Pattern(_)) => {
            None
        }
    }
}
