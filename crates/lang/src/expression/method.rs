//! The built-in methods: their names, receivers, and arguments.

use std::borrow::Cow;

use serde_json::Value;

use super::flaw::Error;
use super::fuel::Fuel;
use super::token::RegexPattern;
use super::value::{self, as_text, kind, whole};

mod list;
mod text;

/// A method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

/// A row of the table: the name, the method, its receiver, the number of arguments, the first parameter.
type MethodSignature =
    (&'static str, BuiltinMethod, MethodReceiver, (usize, usize), FirstParameter);

const EACH: FirstParameter = FirstParameter::Lambda { least: 1, most: 2 };

const METHODS: [MethodSignature; 26] = [
    ("charAt", BuiltinMethod::CharAt, MethodReceiver::Text, (0, 1), FirstParameter::Value),
    ("concat", BuiltinMethod::Concat, MethodReceiver::Both, (0, 100), FirstParameter::Value),
    ("endsWith", BuiltinMethod::EndsWith, MethodReceiver::Text, (1, 1), FirstParameter::Value),
    ("every", BuiltinMethod::Every, MethodReceiver::List, (1, 1), EACH),
    ("filter", BuiltinMethod::Filter, MethodReceiver::List, (1, 1), EACH),
    ("find", BuiltinMethod::Find, MethodReceiver::List, (1, 1), EACH),
    ("flatMap", BuiltinMethod::FlatMap, MethodReceiver::List, (1, 1), EACH),
    ("includes", BuiltinMethod::Includes, MethodReceiver::Both, (1, 1), FirstParameter::Value),
    ("indexOf", BuiltinMethod::IndexOf, MethodReceiver::Both, (1, 1), FirstParameter::Value),
    ("join", BuiltinMethod::Join, MethodReceiver::List, (0, 1), FirstParameter::Value),
    ("map", BuiltinMethod::Map, MethodReceiver::List, (1, 1), EACH),
    ("match", BuiltinMethod::Match, MethodReceiver::Text, (1, 1), FirstParameter::Pattern),
    ("pop", BuiltinMethod::Pop, MethodReceiver::List, (0, 0), FirstParameter::Value),
    (
        "reduce",
        BuiltinMethod::Reduce,
        MethodReceiver::List,
        (1, 2),
        FirstParameter::Lambda { least: 2, most: 3 },
    ),
    (
        "replace",
        BuiltinMethod::Replace,
        MethodReceiver::Text,
        (2, 2),
        FirstParameter::TextOrPattern,
    ),
    (
        "replaceAll",
        BuiltinMethod::ReplaceAll,
        MethodReceiver::Text,
        (2, 2),
        FirstParameter::TextOrPattern,
    ),
    ("slice", BuiltinMethod::Slice, MethodReceiver::Both, (0, 2), FirstParameter::Value),
    ("some", BuiltinMethod::Some, MethodReceiver::List, (1, 1), EACH),
    (
        "sort",
        BuiltinMethod::Sort,
        MethodReceiver::List,
        (0, 1),
        FirstParameter::Lambda { least: 2, most: 2 },
    ),
    ("split", BuiltinMethod::Split, MethodReceiver::Text, (1, 2), FirstParameter::TextOrPattern),
    ("startsWith", BuiltinMethod::StartsWith, MethodReceiver::Text, (1, 1), FirstParameter::Value),
    ("substring", BuiltinMethod::Substring, MethodReceiver::Text, (1, 2), FirstParameter::Value),
    (
        "toLowerCase",
        BuiltinMethod::ToLowerCase,
        MethodReceiver::Text,
        (0, 0),
        FirstParameter::Value,
    ),
    ("toString", BuiltinMethod::ToString, MethodReceiver::Plain, (0, 0), FirstParameter::Value),
    (
        "toUpperCase",
        BuiltinMethod::ToUpperCase,
        MethodReceiver::Text,
        (0, 0),
        FirstParameter::Value,
    ),
    ("trim", BuiltinMethod::Trim, MethodReceiver::Text, (0, 0), FirstParameter::Value),
];

/// An evaluated argument that is no function.
#[derive(Debug)]
pub(super) enum EvaluatedArgument<'value> {
    Value(Cow<'value, Value>),
    Pattern(&'value RegexPattern),
}

/// Returns the names of all methods.
pub fn method_names() -> impl Iterator<Item = &'static str> {
    METHODS.iter().map(|row| row.0)
}

impl BuiltinMethod {
    pub(super) fn from_name(name: &str) -> Option<Self> {
        METHODS.iter().find(|row| row.0 == name).map(|row| row.1)
    }

    pub(super) fn name(self) -> &'static str {
        self.row().map_or("", |row| row.0)
    }

    fn row(self) -> Option<&'static MethodSignature> {
        METHODS.iter().find(|row| row.1 == self)
    }

    /// Returns the smallest and the largest number of its arguments.
    pub(super) fn arity(self) -> (usize, usize) {
        self.row().map_or((0, 0), |row| row.3)
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
        self.row().map_or(FirstParameter::Value, |row| row.4)
    }

    /// Checks that it can be applied to this value.
    pub(super) fn is_of(self, value: &Value) -> Result<(), Error> {
        let is_text = as_text(value).is_some();
        let (right, of) = match self.row().map(|row| row.2) {
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
                Some(text) => text::apply(self, text, arguments, fuel),
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
