//! The built-in methods: their names, receivers and arguments, and the methods of texts.

use std::borrow::Cow;

use regex::Captures;
use serde_json::Value;
use strum::{EnumString, IntoStaticStr};

use super::fuel::{Error, Fuel};
use super::pattern::RegexPattern;
use super::value;
use super::value::{as_text, kind, whole};

mod list;

/// A method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumString, IntoStaticStr)]
#[strum(serialize_all = "camelCase")]
pub(super) enum BuiltinMethod {
    CharAt,
    Concat,
    EndsWith,
    Every,
    Filter,
    Find,
    FlatMap,
    Includes,
    IndexOf,
    Join,
    Map,
    Match,
    Pop,
    Reduce,
    Replace,
    ReplaceAll,
    Slice,
    Some,
    Sort,
    Split,
    StartsWith,
    Substring,
    ToLowerCase,
    ToString,
    ToUpperCase,
    Trim,
}

/// The receiver of a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MethodReceiver {
    Text,
    List,
    Both,
    /// Any value that is written as one word: texts, numbers and booleans.
    Plain,
}

/// The first parameter of a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FirstParameter {
    Value,
    /// A text, or a regular expression.
    TextOrPattern,
    Pattern,
    /// A function with `least` to `most` parameters.
    Lambda {
        least: usize,
        most: usize,
    },
}

/// A row of the table: the method, its receiver, the number of arguments, the first parameter.
type MethodSignature = (BuiltinMethod, MethodReceiver, (usize, usize), FirstParameter);

const EACH: FirstParameter = FirstParameter::Lambda { least: 1, most: 2 };
const FOLDS: FirstParameter = FirstParameter::Lambda { least: 2, most: 3 };
const COMPARES: FirstParameter = FirstParameter::Lambda { least: 2, most: 2 };

const METHODS: [MethodSignature; 26] = [
    (BuiltinMethod::CharAt, MethodReceiver::Text, (0, 1), FirstParameter::Value),
    (BuiltinMethod::Concat, MethodReceiver::Both, (0, 100), FirstParameter::Value),
    (BuiltinMethod::EndsWith, MethodReceiver::Text, (1, 1), FirstParameter::Value),
    (BuiltinMethod::Every, MethodReceiver::List, (1, 1), EACH),
    (BuiltinMethod::Filter, MethodReceiver::List, (1, 1), EACH),
    (BuiltinMethod::Find, MethodReceiver::List, (1, 1), EACH),
    (BuiltinMethod::FlatMap, MethodReceiver::List, (1, 1), EACH),
    (BuiltinMethod::Includes, MethodReceiver::Both, (1, 1), FirstParameter::Value),
    (BuiltinMethod::IndexOf, MethodReceiver::Both, (1, 1), FirstParameter::Value),
    (BuiltinMethod::Join, MethodReceiver::List, (0, 1), FirstParameter::Value),
    (BuiltinMethod::Map, MethodReceiver::List, (1, 1), EACH),
    (BuiltinMethod::Match, MethodReceiver::Text, (1, 1), FirstParameter::Pattern),
    (BuiltinMethod::Pop, MethodReceiver::List, (0, 0), FirstParameter::Value),
    (BuiltinMethod::Reduce, MethodReceiver::List, (1, 2), FOLDS),
    (BuiltinMethod::Replace, MethodReceiver::Text, (2, 2), FirstParameter::TextOrPattern),
    (BuiltinMethod::ReplaceAll, MethodReceiver::Text, (2, 2), FirstParameter::TextOrPattern),
    (BuiltinMethod::Slice, MethodReceiver::Both, (0, 2), FirstParameter::Value),
    (BuiltinMethod::Some, MethodReceiver::List, (1, 1), EACH),
    (BuiltinMethod::Sort, MethodReceiver::List, (0, 1), COMPARES),
    (BuiltinMethod::Split, MethodReceiver::Text, (1, 2), FirstParameter::TextOrPattern),
    (BuiltinMethod::StartsWith, MethodReceiver::Text, (1, 1), FirstParameter::Value),
    (BuiltinMethod::Substring, MethodReceiver::Text, (1, 2), FirstParameter::Value),
    (BuiltinMethod::ToLowerCase, MethodReceiver::Text, (0, 0), FirstParameter::Value),
    (BuiltinMethod::ToString, MethodReceiver::Plain, (0, 0), FirstParameter::Value),
    (BuiltinMethod::ToUpperCase, MethodReceiver::Text, (0, 0), FirstParameter::Value),
    (BuiltinMethod::Trim, MethodReceiver::Text, (0, 0), FirstParameter::Value),
];

/// An evaluated argument that is not a function.
#[derive(Debug)]
pub(super) enum EvaluatedArgument<'value> {
    Value(Cow<'value, Value>),
    Pattern(&'value RegexPattern),
}

/// Returns the names of all methods.
pub fn method_names() -> impl Iterator<Item = &'static str> {
    METHODS.iter().map(|row| row.0.name())
}

impl BuiltinMethod {
    pub(super) fn from_name(name: &str) -> Option<Self> {
        name.parse().ok()
    }

    pub(super) fn name(self) -> &'static str {
        self.into()
    }

    fn row(self) -> Option<&'static MethodSignature> {
        METHODS.iter().find(|row| row.0 == self)
    }

    /// Returns the smallest and the largest number of its arguments.
    pub(super) fn arity(self) -> (usize, usize) {
        self.row().map_or((0, 0), |row| row.2)
    }

    /// Checks the number of arguments, where `...` was among them.
    pub(super) fn takes(self, given: usize) -> Result<(), Error> {
        let (least, most) = self.arity();
        if (least..=most).contains(&given) {
            return Ok(());
        }
        Err(Error::Evaluation(wrong_number(self.name(), least, most, given)))
    }

    /// Returns the kind of its first argument.
    pub(super) fn first_parameter(self) -> FirstParameter {
        self.row().map_or(FirstParameter::Value, |row| row.3)
    }

    /// Checks that it can be applied to this value.
    pub(super) fn is_of(self, value: &Value) -> Result<(), Error> {
        let is_text = as_text(value).is_some();
        let (right, of) = match self.row().map(|row| row.1) {
            Some(MethodReceiver::Text) => (is_text, "a text"),
            Some(MethodReceiver::List) => (value.is_array(), "a list"),
            Some(MethodReceiver::Both) => (is_text || value.is_array(), "a text or a list"),
            _ => (
                is_text || value.is_number() || value.is_boolean(),
                "a text, a number or a boolean",
            ),
        };
        let name = self.name();
        match (right, value) {
            (true, _) => Ok(()),
            (false, Value::Null) => Err(Error::Evaluation(format!(
                "{name} is a method of {of}, but got null; where it may be null, write `?.{name}`"
            ))),
            (false, value) => Err(Error::Evaluation(format!(
                "{name} is a method of {of}, but got {}",
                kind(value)
            ))),
        }
    }

    /// Applies it to a value that it [is of](Self::is_of), with as many arguments as it takes. Methods that
    /// take a function are in [`evaluate`](super::evaluate).
    pub(super) fn apply(
        self,
        of: &Value,
        given: &[EvaluatedArgument<'_>],
        fuel: &mut Fuel,
    ) -> Result<Value, Error> {
        let arguments = MethodArguments { method: self, given };
        match of {
            _ if self == Self::ToString => {
                let text = value::text(of);
                fuel.text(text.len())?;
                Ok(Value::String(text.into_owned()))
            }
            Value::Array(list) => list::apply(self, list, arguments, fuel),
            _ => match as_text(of) {
                Some(text) => apply(self, text, arguments, fuel),
                None => self.is_of(of).map(|()| Value::Null),
            },
        }
    }
}

/// Returns the message for a wrong number of arguments.
pub(super) fn wrong_number(name: &str, least: usize, most: usize, given: usize) -> String {
    let plural = |arguments: usize| match arguments {
        1 => "one argument".to_owned(),
        more => format!("{more} arguments"),
    };
    let takes = match (least, most) {
        (0, 0) => "nothing".to_owned(),
        (least, most) if least == most => plural(least),
        (0, most) => format!("at most {}", plural(most)),
        (least, usize::MAX) => format!("at least {}", plural(least)),
        (least, most) => format!("{least} to {}", plural(most)),
    };
    format!("{name} takes {takes}, but got {given}")
}

/// The arguments of a method.
#[derive(Clone, Copy)]
struct MethodArguments<'given> {
    method: BuiltinMethod,
    given: &'given [EvaluatedArgument<'given>],
}

impl<'given> MethodArguments<'given> {
    fn get(self, place: usize) -> Option<&'given Value> {
        match self.given.get(place) {
            Some(EvaluatedArgument::Value(value)) => Some(value),
            _ => None,
        }
    }

    fn pattern(self) -> Option<&'given RegexPattern> {
        match self.given.first() {
            Some(EvaluatedArgument::Pattern(pattern)) => Some(pattern),
            _ => None,
        }
    }

    fn text(self, place: usize) -> Result<&'given str, Error> {
        let given = self.get(place);
        given.and_then(as_text).ok_or_else(|| self.refuse("a text", given))
    }

    /// Returns a whole number, or `missing` if it is not given.
    fn whole(self, place: usize, missing: i128) -> Result<i128, Error> {
        match self.get(place) {
            None => Ok(missing),
            Some(Value::Number(number)) => {
                whole(number).ok_or_else(|| self.refuse("a whole number", self.get(place)))
            }
            other => Err(self.refuse("a whole number", other)),
        }
    }

    /// Returns the range of the arguments in a value of this length. Negative numbers count from the end.
    fn range(self, length: usize) -> Result<(usize, usize), Error> {
        let length = length as i128;
        let place = |index: i128| if index < 0 { index + length } else { index }.clamp(0, length);
        let start = place(self.whole(0, 0)?);
        let end = place(self.whole(1, length)?).max(start);
        Ok((usize::try_from(start).unwrap_or(0), usize::try_from(end).unwrap_or(0)))
    }

    fn refuse(self, takes: &str, given: Option<&Value>) -> Error {
        let given = given.map_or("nothing", kind);
        Error::Evaluation(format!("{} takes {takes}, but got {given}", self.method.name()))
    }
}

// The methods of texts. Lengths and indices are in characters.

fn apply(
    method: BuiltinMethod,
    text: &str,
    arguments: MethodArguments<'_>,
    fuel: &mut Fuel,
) -> Result<Value, Error> {
    fuel.read(text.len())?;
    let made = match method {
        BuiltinMethod::EndsWith => return Ok(Value::Bool(text.ends_with(arguments.text(0)?))),
        BuiltinMethod::Includes => return Ok(Value::Bool(text.contains(arguments.text(0)?))),
        BuiltinMethod::StartsWith => return Ok(Value::Bool(text.starts_with(arguments.text(0)?))),
        BuiltinMethod::IndexOf => {
            let place = text.find(arguments.text(0)?).map(|at| text[..at].chars().count());
            return Ok(place.map_or(Value::from(-1), value::count));
        }
        BuiltinMethod::Match => {
            return arguments
                .pattern()
                .map_or(Ok(Value::Null), |pattern| found(text, pattern, fuel));
        }
        BuiltinMethod::Split => return split(text, arguments, fuel),
        BuiltinMethod::CharAt => {
            let at = usize::try_from(arguments.whole(0, 0)?).ok();
            at.and_then(|at| text.chars().nth(at)).map(String::from).unwrap_or_default()
        }
        BuiltinMethod::Concat => concat(text, arguments, fuel)?,
        BuiltinMethod::Replace | BuiltinMethod::ReplaceAll => {
            replace(text, arguments, method == BuiltinMethod::ReplaceAll, fuel)?
        }
        BuiltinMethod::Slice => {
            let (start, end) = arguments.range(text.chars().count())?;
            part(text, start, end).to_owned()
        }
        BuiltinMethod::Substring => substring(text, arguments)?.to_owned(),
        BuiltinMethod::ToLowerCase => text.to_lowercase(),
        BuiltinMethod::ToUpperCase => text.to_uppercase(),
        BuiltinMethod::Trim => text.trim().to_owned(),
        _ => return Err(arguments.refuse("a function", None)),
    };
    fuel.text(made.len())?;
    Ok(Value::String(made))
}

/// Returns the part from one character to before another.
fn part(text: &str, start: usize, end: usize) -> &str {
    let mut places = text.char_indices().map(|(at, _)| at).chain([text.len()]);
    let from = places.nth(start).unwrap_or(text.len());
    let to = if end > start { places.nth(end - start - 1) } else { Some(from) };
    &text[from..to.unwrap_or(text.len())]
}

/// Returns a part like `slice`, but a negative index is 0, and indices in the wrong order are swapped.
fn substring<'text>(text: &'text str, arguments: MethodArguments<'_>) -> Result<&'text str, Error> {
    let length = text.chars().count();
    let place = |at: i128| usize::try_from(at.clamp(0, length as i128)).unwrap_or(0);
    let (from, to) = (arguments.whole(0, 0)?, arguments.whole(1, length as i128)?);
    let (from, to) = (place(from), place(to));
    Ok(part(text, from.min(to), from.max(to)))
}

fn concat(text: &str, arguments: MethodArguments<'_>, fuel: &mut Fuel) -> Result<String, Error> {
    let mut joined = text.to_owned();
    for place in 0..arguments.given.len() {
        if let Some(more) = arguments.get(place) {
            joined.push_str(&value::text(more));
            fuel.fits(joined.len())?;
        }
    }
    Ok(joined)
}

fn split(text: &str, arguments: MethodArguments<'_>, fuel: &mut Fuel) -> Result<Value, Error> {
    let limit = usize::try_from(arguments.whole(1, i128::from(u32::MAX))?).unwrap_or(usize::MAX);
    let most = limit.min(fuel.list + 1);
    let parts = match arguments.pattern() {
        Some(pattern) => {
            let mut start = 0;
            let mut parts = Vec::new();
            for found in pattern.regex.find_iter(text) {
                fuel.search(text.len() - found.start())?;
                if parts.len() == most {
                    break;
                }
                parts.push(Value::from(&text[start..found.start()]));
                start = found.end();
            }
            if parts.len() < most {
                parts.push(Value::from(&text[start..]));
            }
            parts
        }
        None if arguments.text(0)?.is_empty() => {
            let mut bytes = [0; 4];
            let chars = text.chars().take(most);
            chars.map(|char| Value::from(&*char.encode_utf8(&mut bytes))).collect()
        }
        None => text.split(arguments.text(0)?).take(most).map(Value::from).collect(),
    };
    fuel.list(parts.len())?;
    Ok(Value::Array(parts))
}

/// Returns all matches if the pattern has the flag `g`, else the first and its groups; null if there is none.
fn found(text: &str, pattern: &RegexPattern, fuel: &mut Fuel) -> Result<Value, Error> {
    let mut all = Vec::new();
    if pattern.all {
        for found in pattern.regex.find_iter(text) {
            fuel.search(text.len() - found.start())?;
            fuel.room(all.len() + 1)?;
            all.push(Value::from(found.as_str()));
        }
    } else if let Some(groups) = pattern.regex.captures(text) {
        all.extend(groups.iter().map(|group| group.map(|group| group.as_str()).into()));
    }
    fuel.list(all.len())?;
    Ok(if all.is_empty() { Value::Null } else { Value::Array(all) })
}

/// Carries out `replace` and `replaceAll`: replaces the first match in the text, or all. The replacement may have
/// JavaScript's `$1`, `$<name>`, `$&` and `$$` in it.
fn replace(
    text: &str,
    arguments: MethodArguments<'_>,
    all: bool,
    fuel: &mut Fuel,
) -> Result<String, Error> {
    let with = arguments.text(1)?;
    let mut made = String::new();
    let mut start = 0;
    if let Some(pattern) = arguments.pattern() {
        let most = if all || pattern.all { usize::MAX } else { 1 };
        for groups in pattern.regex.captures_iter(text).take(most) {
            let Some(found) = groups.get(0) else { continue };
            fuel.search(text.len() - found.start())?;
            made.push_str(&text[start..found.start()]);
            expand(with, found.as_str(), Some(&groups), &mut made, fuel)?;
            start = found.end();
        }
    } else {
        let replaced = arguments.text(0)?;
        for (at, found) in text.match_indices(replaced).take(if all { usize::MAX } else { 1 }) {
            fuel.spend(1)?;
            made.push_str(&text[start..at]);
            expand(with, found, None, &mut made, fuel)?;
            start = at + found.len();
        }
    }
    made.push_str(&text[start..]);
    Ok(made)
}

/// Adds the replacement of a match.
fn expand(
    with: &str,
    found: &str,
    groups: Option<&Captures<'_>>,
    made: &mut String,
    fuel: &Fuel,
) -> Result<(), Error> {
    let mut rest = with;
    while let Some(at) = rest.find('$') {
        made.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let length = match rest.as_bytes().first() {
            Some(b'$') => {
                made.push('$');
                1
            }
            Some(b'&') => {
                made.push_str(found);
                1
            }
            _ => groups.and_then(|groups| group(rest, groups, made)).unwrap_or_else(|| {
                made.push('$');
                0
            }),
        };
        rest = &rest[length..];
        fuel.fits(made.len())?;
    }
    made.push_str(rest);
    fuel.fits(made.len())
}

/// Adds the group that a `$` names, and returns the length of its name; `None` if there is no such group.
fn group(rest: &str, groups: &Captures<'_>, made: &mut String) -> Option<usize> {
    if let Some(name) = rest.strip_prefix('<') {
        let name = &name[..name.find('>')?];
        made.push_str(groups.name(name).map_or("", |group| group.as_str()));
        return Some(name.len() + 2);
    }
    let digits = rest.bytes().take(2).take_while(u8::is_ascii_digit).count();
    let length = (1..=digits).rev().find(|length| {
        let number: usize = rest[..*length].parse().unwrap_or(0);
        (1..groups.len()).contains(&number)
    })?;
    let number = rest[..length].parse().ok()?;
    made.push_str(groups.get(number).map_or("", |group| group.as_str()));
    Some(length)
}
