//! Splits a form into its values in order, and its keywords with their values.

use granit_parser::ScalarStyle;

use super::reader::ProgramReader;
use crate::diagnostic::quoted;
use crate::output::{OutputSchema, schema_of};
use crate::position::SourcePlace;
use crate::program::parse::{Form, FormContent};
use crate::turn_options::{DASHED_KEYS, KEYS, WrittenOptions, embed_files};
use crate::yaml::{YamlContent, YamlEntry, YamlScalar, YamlValue};

/// The values and keywords of a form.
pub(super) struct FormFields<'f> {
    pub(super) name: &'f str,
    pub(super) at: SourcePlace,
    /// The values before and between the keywords.
    pub(super) values: Vec<&'f Form>,
    keys: Vec<(&'f str, Option<&'f Form>)>,
    /// True if something in it could not be read; missing parts are not reported then.
    broken: bool,
    /// True if it has an unknown keyword, which may be meant as a missing one.
    strange: bool,
    /// The values of misspelled keywords, by the keywords that were meant.
    slips: Vec<(&'f str, Option<&'f Form>)>,
}

impl<'f> FormFields<'f> {
    /// Returns the value of a keyword.
    pub(super) fn get(&self, key: &str) -> Option<&'f Form> {
        self.keys.iter().find(|(own, _)| *own == key)?.1
    }
}

impl ProgramReader<'_> {
    /// Reads a form that may have these keywords.
    pub(super) fn fields<'f>(
        &mut self,
        at: SourcePlace,
        (name, rest): (&'f str, &'f [Form]),
        known: &[&'static str],
    ) -> FormFields<'f> {
        let mut fields = FormFields {
            name,
            at,
            values: Vec::new(),
            keys: Vec::new(),
            broken: false,
            strange: false,
            slips: Vec::new(),
        };
        let mut forms = rest.iter().peekable();
        while let Some(form) = forms.next() {
            match &form.content {
                FormContent::Keyword(key) => {
                    let value =
                        forms.next_if(|next| !matches!(next.content, FormContent::Keyword(_)));
                    self.keyword(&mut fields, (key, form.at), value, known);
                }
                FormContent::Wrong => fields.broken = true,
                _ => fields.values.push(form),
            }
        }
        for (key, value) in std::mem::take(&mut fields.slips) {
            if !fields.keys.iter().any(|(own, _)| *own == key) {
                fields.keys.push((key, value));
            }
        }
        fields
    }

    fn keyword<'f>(
        &mut self,
        fields: &mut FormFields<'f>,
        (key, at): (&'f str, SourcePlace),
        value: Option<&'f Form>,
        known: &[&'static str],
    ) {
        let (name, shown) = (quoted(fields.name), quoted(&format!(":{key}")));
        if !known.contains(&key) {
            let otherwise = || match known {
                [] => "; it takes none".to_owned(),
                known => format!("; it takes :{}", known.join(", :")),
            };
            let meant = self.report.hint(key, known.iter().copied(), otherwise);
            let meant = meant.replace("mean `", "mean `:");
            let slip = self.report.slip(key, known.iter().copied());
            self.report.error(at, "SX203", format!("{name} has no keyword {shown}{meant}"));
            fields.strange |= slip.is_none();
            fields.slips.extend(slip.map(|meant| (meant, value)));
        } else if fields.keys.iter().any(|(own, _)| *own == key) {
            let why = format!("{shown} is given twice in this {name}; remove one of them");
            self.report.error(at, "SX204", why);
        } else {
            if value.is_none() {
                self.report.error(at, "SX205", format!("{shown} has no value; write one after it"));
            }
            fields.broken |= value.is_some_and(Form::is_wrong);
            fields.keys.push((key, value));
        }
    }

    /// Returns the value of a keyword, and reports an error if it is missing.
    pub(super) fn need<'f>(&mut self, fields: &FormFields<'f>, key: &str) -> Option<&'f Form> {
        let given = fields.keys.iter().find(|(own, _)| *own == key);
        if given.is_none() && !fields.broken && !fields.strange {
            let why = format!("{} needs `:{key}`", quoted(fields.name));
            self.report.error(fields.at, "SX205", why);
        }
        given?.1
    }

    /// Returns the values of a form that has to have exactly `N` of them.
    pub(super) fn exactly<'f, const N: usize>(
        &mut self,
        fields: &FormFields<'f>,
        wanted: [&str; N],
    ) -> Option<[&'f Form; N]> {
        let found = fields.values.len();
        if let Some(more) = fields.values.get(N) {
            let name = quoted(fields.name);
            let takes = match N {
                0 => "no value without a keyword".to_owned(),
                1 => "one value".to_owned(),
                _ => format!("{N} values"),
            };
            if !fields.broken {
                let why = format!("{name} takes {takes}; {} is too many", more.described());
                self.report.error(more.at, "SX206", why);
            }
        } else if let Some(missing) =
            wanted.get(found).filter(|_| !fields.broken && !fields.strange)
        {
            let why = format!("{} needs {missing}", quoted(fields.name));
            self.report.error(fields.at, "SX205", why);
        }
        fields.values.get(..N)?.try_into().ok()
    }

    /// Reads the state of an optional keyword; the outer option is `None` if it is wrong.
    #[expect(clippy::option_option, reason = "no state and a wrong one are different")]
    pub(super) fn optional_state(
        &mut self,
        fields: &FormFields<'_>,
        key: &str,
    ) -> Option<Option<usize>> {
        fields.get(key).map_or(Some(None), |form| self.state(form).map(Some))
    }
}

// Reads the options of a role's turns: `:effort low :tools ("Read" "Grep") :env (("RUST_LOG" "debug"))`.

impl ProgramReader<'_> {
    /// Reads the options among the keywords of a role; their mistakes are reported.
    pub(super) fn turn_options(&mut self, fields: &FormFields<'_>) -> WrittenOptions {
        let given = KEYS.into_iter().zip(DASHED_KEYS).filter_map(|(key, dashed)| {
            let form = fields.get(dashed).filter(|form| !form.is_wrong())?;
            Some(YamlEntry { key: key.into(), at: form.at, value: node(form) })
        });
        let entries: Vec<YamlEntry> = given.collect();
        let mut written = WrittenOptions::read(&entries);
        written.faults.extend(embed_files(&mut written.options, &written.places, self.source));
        for fault in std::mem::take(&mut written.faults) {
            self.report.error(fault.at, "SX220", fault.message);
        }
        written
    }

    /// Reads the schema of a role's answers.
    pub(super) fn output(&mut self, form: &Form) -> Option<OutputSchema> {
        let read = schema_of(&node(form), self.source);
        read.map_err(|why| self.report.error(form.at, "SX220", why)).ok()
    }
}

/// Returns a form as a tree. A list of lists is a mapping: `(("NAME" "value"))`.
fn node(form: &Form) -> YamlValue {
    let value = match (&form.content, form.text()) {
        (FormContent::Boolean(value), _) => YamlContent::Bool(*value),
        (FormContent::List(forms), _)
            if !forms.is_empty() && forms.iter().all(|one| pair(one).is_some()) =>
        {
            let pairs = forms.iter().filter_map(pair);
            let entry = |(key, value): (&Form, &Form)| YamlEntry {
                key: key.text().unwrap_or_default().into(),
                at: key.at,
                value: node(value),
            };
            YamlContent::Map(pairs.map(entry).collect::<Vec<_>>().into())
        }
        (FormContent::List(forms), _) => {
            YamlContent::List(forms.iter().map(node).collect::<Vec<_>>().into())
        }
        (_, Some(text)) => YamlContent::Text(YamlScalar {
            text: text.into(),
            style: ScalarStyle::Plain,
            range: 0..0,
        }),
        (_, None) => YamlContent::Null,
    };
    YamlValue { at: form.at, value, written: form.text().map(Into::into) }
}

fn pair(form: &Form) -> Option<(&Form, &Form)> {
    match &form.content {
        FormContent::List(forms) => match forms.as_slice() {
            [name, value] if name.text().is_some() => Some((name, value)),
            _ => None,
        },
        _ => None,
    }
}
