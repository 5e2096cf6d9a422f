//! `output` in frontmatter, and `when` in an entry of a policy: the form of a state's answer, and the transitions.
//!
//! An object contains no tags, so the policy has to give the parts of a tag: the forked agents, or the question. If
//! the object decides, an evaluator has nothing to decide.

use serde_json::Value;

use super::{Frontmatter, FrontmatterPlaces};
use crate::output::{FieldTest, OrderedJson, OutputKey, OutputRule, SchemaOrigin, schema_file};
use crate::prompt::evaluator::RawEvaluator;
use crate::prompt::policy_entry::EntryPlace;
use crate::yaml::{Error, PlacedValue, YamlErrors};
use raymond_model::policy::TransitionPolicy;
use raymond_model::transition::{ANY_LIST, Transition};

/// Reads `output`, and the `when` of each entry of the policy.
pub(super) fn read(
    output: Option<PlacedValue<OrderedJson>>,
    whens: &[Option<PlacedValue<OrderedJson>>],
    evaluator: Option<&PlacedValue<RawEvaluator>>,
    frontmatter: &mut Frontmatter,
    places: &mut FrontmatterPlaces,
    errors: &mut YamlErrors,
) {
    let Some(output) = output else {
        if let Some(when) = whens.iter().flatten().next() {
            let message = "`when` decides by the fields of an `output`; give the state one, such as `output: verdict.schema.json`";
            errors.keep::<()>(Err(Error::at(when.at, message.to_owned())));
        }
        return;
    };
    if let Some(evaluator) = evaluator {
        let message = "the fields of an `output` decide what follows; leave the evaluator out";
        errors.keep::<()>(Err(Error::at(evaluator.at, message.to_owned())));
    }
    if frontmatter.policy.is_open() && errors.is_empty() {
        frontmatter.policy = TransitionPolicy::result();
        places.entries = vec![EntryPlace::whole(output.at)];
        places.whens = vec![None];
    }
    let place = output.at;
    let schema = match output.value {
        OrderedJson::Text(name) => schema_file(&name).map(SchemaOrigin::File),
        written @ OrderedJson::Object(_) => Ok(SchemaOrigin::Inline(written)),
        _ => Err("an output is a JSON schema: a file such as verdict.schema.json, or a mapping with `type: object`".to_owned()),
    };
    let Some(schema) = errors.keep(schema.map_err(|why| Error::at(place, why))) else { return };
    let mut rules = Vec::new();
    for (index, transition) in frontmatter.policy.allowed.iter().enumerate() {
        let at = places.entries.get(index).map_or(place, |place| place.entry);
        let unsaid = says_all(transition).map_err(|why| Error::at(at, why.to_owned()));
        errors.keep(unsaid);
        let when = whens.get(index).and_then(Option::as_ref);
        let when = when.map(tests).transpose().map(Option::unwrap_or_default);
        let transition = transition.clone();
        rules.extend(errors.keep(when).map(|when| OutputRule { when, transition }));
    }
    frontmatter.output = Some(OutputKey { schema, place, rules });
}

fn tests(when: &PlacedValue<OrderedJson>) -> Result<Vec<FieldTest>, Error> {
    let value = serde_json::to_value(&when.value).unwrap_or(Value::Null);
    OutputRule::tests(&value).map_err(|why| Error::at(when.at, why))
}

/// Checks that an entry leaves nothing to the words of a tag.
fn says_all(transition: &Transition) -> Result<(), &'static str> {
    match transition {
        Transition::Ask { .. } => Err("an `output` cannot say what to ask; goto a state that asks"),
        Transition::Fork { each: Some(each), .. } if each.list == ANY_LIST => {
            Err("an `output` cannot name the list; name it here, such as each: items.json")
        }
        Transition::Result { payload, .. } if !payload.is_empty() => {
            Err("the answer itself is the text of the result; leave `payload` out")
        }
        Transition::Goto { .. }
        | Transition::Reset { .. }
        | Transition::Call { .. }
        | Transition::Function { .. }
        | Transition::Fork { .. }
        | Transition::Result { .. } => Ok(()),
    }
}
