//! Reads the preconditions of a graph.

use serde_json::Value;

use super::checked_graph::{ConditionTest, GraphCondition, NumberComparison, OperationTemplate};
use super::reader::{GivenParameters, GraphReader};
use super::vocabulary::TypeRole;
use crate::diagnostic::quoted;
use crate::expression::ValueTemplate;
use crate::yaml::{YamlContent, YamlValue};
use raymond_model::json_mistake::ValuePath;

/// The operators of a `state_check`.
const OPERATORS: [&str; 8] =
    ["equals", "not_equals", "null", "is_null", "not_null", "true", "false", "not_true"];

impl GraphReader<'_> {
    /// Reads several preconditions; `None` if one is wrong.
    pub(super) fn conditions(&mut self, list: &[YamlValue]) -> Option<Vec<GraphCondition>> {
        let read: Vec<_> = list.iter().map(|node| self.condition(node)).collect();
        read.into_iter().collect()
    }

    /// Reads a precondition.
    pub(super) fn condition(&mut self, node: &YamlValue) -> Option<GraphCondition> {
        let message = self.error_message(node);
        let mut parameters = self.parameters(TypeRole::Precondition, node, &["error_message"])?;
        let test = self.test(&mut parameters)?;
        Some(GraphCondition { kind: parameters.kind.to_owned(), test, error_message: message? })
    }

    /// Reads `error_message`. The outer option is `None` if it is wrong, the inner one if there is none.
    #[expect(clippy::option_option, reason = "no message and a wrong one are different")]
    fn error_message(&mut self, node: &YamlValue) -> Option<Option<ValueTemplate>> {
        let YamlContent::Map(entries) = &node.value else { return Some(None) };
        match entries.iter().find(|entry| &*entry.key == "error_message") {
            Some(entry) => self.words(entry).map(Some),
            None => Some(None),
        }
    }

    fn test(&mut self, given: &mut GivenParameters<'_>) -> Option<ConditionTest> {
        let kind = given.kind;
        self.check_paths(given)?;
        self.reads_of(given);
        Some(match kind {
            "flag_set" | "flag_not_set" => {
                ConditionTest::Flag { flag: given.template("flag")?, set: kind == "flag_set" }
            }
            "state_equals" => ConditionTest::Equals {
                field: given.template("field")?,
                value: given.template("value")?,
            },
            "state_is_null" | "state_not_null" => ConditionTest::Null {
                field: given.template("field")?,
                null: kind == "state_is_null",
            },
            "count_equals" => count(given, NumberComparison::Equal, "count")?,
            "count_above" => count(given, NumberComparison::Above, "min")?,
            "count_below" => count(given, NumberComparison::Below, "max")?,
            "fetch_succeeded" => ConditionTest::FetchSucceeded { from: self.origin(given)? },
            "fetch_returned_content" => {
                ConditionTest::FetchReturnedContent { from: self.origin(given)? }
            }
            "all_of" => ConditionTest::All(given.conditions()?),
            "any_of" => ConditionTest::Any(given.conditions()?),
            "none_of" => ConditionTest::None(given.conditions()?),
            "evaluate_expression" => ConditionTest::Expression(given.expression("expression")?),
            "state_check" => self.state_check(given)?,
            "path_check" => self.path_check(given)?,
            "tool_check" => self.tool_check(given)?,
            _ => ConditionTest::World(work(given, kind, &[])?),
        })
    }

    /// Notes the path that a condition reads. What may be missing is a flag, and a field that is compared with null.
    fn reads_of(&mut self, given: &GivenParameters<'_>) {
        match given.kind {
            "flag_set" | "flag_not_set" => {
                let flag = given.written("flag").trim().trim_start_matches('.');
                let flag = flag.strip_prefix("flags.").unwrap_or(flag);
                self.reads_path(given, "flag", format!("flags.{flag}"), true);
            }
            "state_is_null" | "state_not_null" => self.reads_field(given, true),
            "state_equals" | "state_check" => {
                let is_null = ["null", "is_null", "not_null"].contains(&given.written("operator"))
                    || ["operator", "value"].iter().any(|name| given.is_null(name));
                self.reads_field(given, is_null);
            }
            "count_equals" | "count_above" | "count_below" => self.reads_field(given, false),
            _ => {}
        }
    }

    fn reads_field(&mut self, given: &GivenParameters<'_>, may_be_missing: bool) {
        let field = given.written("field").trim().trim_start_matches('.').to_owned();
        let may_be_missing = may_be_missing || field.starts_with("flags.");
        self.reads_path(given, "field", field, may_be_missing);
    }

    /// Notes that a parameter names a path that is read; a path with a `${…}` in it is known only at run time.
    pub(super) fn reads_path(
        &mut self,
        given: &GivenParameters<'_>,
        parameter: &str,
        path: String,
        may_be_missing: bool,
    ) {
        let Some(node) = given.node(parameter) else { return };
        if let Some(text) = node.text().filter(|_| !path.contains("${")) {
            let at = self.beginning(node.at, text);
            self.variables.read(at, path, may_be_missing);
        }
    }

    /// Reads the path of a value. A path inside `${…}` means the same path.
    pub(super) fn origin(&mut self, given: &GivenParameters<'_>) -> Option<ValueTemplate> {
        let path = self.origin_path(given)?;
        ValueTemplate::parse(&Value::String(path)).ok()
    }

    /// Reads the path of a value as text.
    pub(super) fn origin_path(&mut self, given: &GivenParameters<'_>) -> Option<String> {
        let written = given.written("from").trim();
        let inner = written.strip_prefix("${").and_then(|inner| inner.strip_suffix('}'));
        let path = inner.unwrap_or(written).trim();
        let at = given.node("from").map_or(given.at, |node| node.at);
        if path.contains(['$', '{', '}']) {
            let message = format!("`from` of `{}` is the path of one value", given.kind);
            self.report.error(at, "WF303", message);
            return None;
        }
        match ValuePath::parse(path) {
            Ok(read) => {
                if inner.is_none() {
                    let path = path.trim_start_matches('.').to_owned();
                    self.reads_path(given, "from", path, false);
                }
                Some(read.to_string())
            }
            Err(error) => {
                self.report.error(at, "WF303", format!("`from` of `{}`: {error}", given.kind));
                None
            }
        }
    }

    /// Reports a word that the parameter does not accept.
    pub(super) fn no_such_word(
        &mut self,
        given: &GivenParameters<'_>,
        parameter: &str,
        word: &str,
        known: &[&str],
    ) {
        let at = given.node(parameter).map_or(given.at, |node| node.at);
        let hint = self.report.hint(word, known.iter().copied(), String::new);
        let (kind, word, known) = (given.kind, quoted(word), known.join(", "));
        let message =
            format!("`{parameter}` of `{kind}` cannot be {word}; use one of {known}{hint}");
        self.report.error(at, "WF303", message);
    }

    /// Reads `state_check`, the name of `state_equals` and its like in later graphs.
    fn state_check(&mut self, given: &mut GivenParameters<'_>) -> Option<ConditionTest> {
        let operator = given.word("operator")?;
        let field = given.template("field")?;
        let inner = match operator.as_str() {
            "equals" | "not_equals" => {
                let Some(value) = given.template("value") else {
                    let message = format!("`state_check` needs `value` to see what it {operator}");
                    self.report.error(given.at, "WF303", message);
                    return None;
                };
                ConditionTest::Equals { field, value }
            }
            "null" | "is_null" => ConditionTest::Null { field, null: true },
            "not_null" => ConditionTest::Null { field, null: false },
            "true" | "not_true" | "false" => {
                let value = Value::Bool(operator != "false");
                ConditionTest::Equals { field, value: ValueTemplate::parse(&value).ok()? }
            }
            other => {
                self.no_such_word(given, "operator", other, &OPERATORS);
                return None;
            }
        };
        let negated = ["not_equals", "not_true"].contains(&operator.as_str());
        Some(if negated { ConditionTest::None(vec![plain("state_equals", inner)]) } else { inner })
    }

    /// Reads `path_check`, the name of `file_exists` and `directory_exists` in later graphs.
    fn path_check(&mut self, given: &mut GivenParameters<'_>) -> Option<ConditionTest> {
        let check = given.word("check").unwrap_or_else(|| "exists".to_owned());
        let world = |given: &GivenParameters<'_>, kind| {
            work(given, kind, &["check"]).map(ConditionTest::World)
        };
        match check.as_str() {
            "is_file" => world(given, "file_exists"),
            "is_directory" => world(given, "directory_exists"),
            "exists" => {
                let either = ["file_exists", "directory_exists"];
                let either = either.map(|kind| Some(plain(kind, world(given, kind)?)));
                either.into_iter().collect::<Option<_>>().map(ConditionTest::Any)
            }
            other => {
                self.no_such_word(given, "check", other, &["exists", "is_file", "is_directory"]);
                None
            }
        }
    }

    /// Reads `tool_check`, the name of `tool_available` in later graphs.
    fn tool_check(&mut self, given: &mut GivenParameters<'_>) -> Option<ConditionTest> {
        match given.word("capability").as_deref() {
            None | Some("available") => {
                work(given, "tool_available", &["capability"]).map(ConditionTest::World)
            }
            Some(other) => {
                self.no_such_word(given, "capability", other, &["available"]);
                None
            }
        }
    }
}

/// Returns the operation of a type, without the parameters in `left_out`.
pub(super) fn work(
    given: &GivenParameters<'_>,
    kind: &str,
    left_out: &[&str],
) -> Option<OperationTemplate> {
    Some(work_with(given, kind, given.all_but(left_out)?))
}

/// Returns the operation of a type with these parameters.
pub(super) fn work_with(
    given: &GivenParameters<'_>,
    kind: &str,
    parameters: ValueTemplate,
) -> OperationTemplate {
    OperationTemplate {
        kind: kind.to_owned(),
        custom_class: given.custom_class,
        parameters,
        at: given.at,
        subject: given.subject(),
        path: given.path(),
    }
}

fn count(
    given: &mut GivenParameters<'_>,
    compare: NumberComparison,
    number: &str,
) -> Option<ConditionTest> {
    Some(ConditionTest::Count {
        field: given.template("field")?,
        compare,
        number: given.template(number)?,
    })
}

fn plain(kind: &str, test: ConditionTest) -> GraphCondition {
    GraphCondition { kind: kind.to_owned(), test, error_message: None }
}
