//! Reads a parameter of a function, or the target of a declaration: a name, or names within a list or a map.

use super::RulePair;
use super::grammar::Rule;
use crate::language::expression::ast::LambdaParameter;
use crate::language::expression::flaw::SyntaxError;

/// Reads a parameter, and adds its names in the order in which they are bound.
pub(super) fn parameter(
    piece: RulePair<'_>,
    names: &mut Vec<String>,
) -> Result<LambdaParameter, SyntaxError> {
    let parameters = |piece: RulePair<'_>, names: &mut Vec<String>| {
        let is_one = |part: &RulePair<'_>| {
            matches!(part.as_rule(), Rule::name | Rule::list_parameter | Rule::map_parameter)
        };
        let parts = piece.into_inner().filter(is_one);
        parts.map(|part| parameter(part, names)).collect::<Result<Vec<_>, _>>()
    };
    match piece.as_rule() {
        Rule::list_parameter => parameters(piece, names).map(LambdaParameter::List),
        Rule::map_parameter => {
            let mut fields = Vec::new();
            for field in piece.into_inner().filter(|part| part.as_rule() == Rule::field) {
                let mut parts = field.into_inner().filter(|part| part.as_rule() != Rule::colon);
                let Some(key) = parts.next() else { continue };
                let target = parts.next().unwrap_or_else(|| key.clone());
                fields.push((key.as_str().to_owned(), parameter(target, names)?));
            }
            Ok(LambdaParameter::Map(fields))
        }
        _ => {
            let (place, name) = (piece.as_span().start(), piece.as_str());
            if names.iter().any(|known| known == name) {
                let why = format!("the function has two parameters of the name {name}");
                return Err(SyntaxError::syntax(place, why));
            }
            names.push(name.to_owned());
            Ok(LambdaParameter::Name)
        }
    }
}
