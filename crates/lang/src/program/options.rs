//! Reads the options of a role's turns: `:effort low :tools ("Read" "Grep") :env (("RUST_LOG" "debug"))`.

use granit_parser::ScalarStyle;

use super::fields::FormFields;
use super::reader::ProgramReader;
use crate::output::{OutputSchema, schema_of};
use crate::program::parse::{Form, FormContent};
use crate::turn_options::{DASHED_KEYS, KEYS, WrittenOptions, embed_files};
use crate::yaml::content::{YamlContent, YamlEntry, YamlScalar, YamlValue};

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
