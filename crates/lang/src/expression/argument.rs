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
            let shape = example(method);
            let takes = match (least, most) {
                (2, 2) => "two".to_owned(),
                (least, most) => format!("{least} or {most}"),
            };
            (!(least..=most).contains(&given))
                .then(|| format!("the function of {name} has {takes} parameters, as in `{shape}`"))
        }
        (FirstParameter::Lambda { .. }, _) => {
            let more = if method == BuiltinMethod::Reduce { ", 0" } else { "" };
            Some(format!("{name} takes a function, as in `{name}({}{more})`", example(method)))
        }
        (_, ArgumentNode::Lambda(_)) => Some(format!("{name} does not take a function here")),
        (FirstParameter::Value, ArgumentNode::Pattern(_)) => {
            Some(format!("{name} does not take a regular expression here"))
        }
        (FirstParameter::Pattern, ArgumentNode::Value(_) | ArgumentNode::Spread(_)) => {
            Some(format!("{name} takes a regular expression, as in `{name}(/[0-9]+/)`"))
        }
        (
            FirstParameter::Value | FirstParameter::TextOrPattern,
            ArgumentNode::Value(_) | ArgumentNode::Spread(_),
        )
        | (FirstParameter::Pattern | FirstParameter::TextOrPattern, ArgumentNode::Pattern(_)) => {
            None
        }
    }
}

/// Returns a function for a method, as an example.
fn example(method: BuiltinMethod) -> &'static str {
    match method {
        BuiltinMethod::Reduce => "(sum, x) => sum + x",
        BuiltinMethod::Sort => "(a, b) => a - b",
        _ => "x => x.id",
    }
}
