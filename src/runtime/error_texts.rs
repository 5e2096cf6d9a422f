//! The longer texts of errors: missing inputs, and folders that are not trusted. Pure.

use crate::language::interface::FolderInput;
use crate::store::trust::FolderTrust;

/// Returns the message that a workflow's inputs are missing, and the options that give them.
pub(super) fn of_inputs(missing: &[FolderInput]) -> String {
    let meaning = |input: &FolderInput| match input.description.as_str() {
        "" => format!("`{}`", input.name),
        text => format!("`{}` ({text})", input.name),
    };
    let option = |input: &FolderInput| match input.name.as_str() {
        "input" => "--input TEXT".to_owned(),
        name => format!("--var {name}=TEXT"),
    };
    let names: Vec<String> = missing.iter().map(meaning).collect();
    let options: Vec<String> = missing.iter().map(option).collect();
    let (inputs, them) = if missing.len() == 1 { ("input", "it") } else { ("inputs", "them") };
    format!(
        "the workflow needs the {inputs} {}; give {them}: {}",
        names.join(", "),
        options.join(" ")
    )
}

/// Returns the reason why a folder is not trusted.
pub(super) fn doubt(trust: &FolderTrust) -> String {
    match trust {
        FolderTrust::Lost(changes) if !changes.is_empty() => {
            format!("it has changed since you trusted it ({})", changes.join(", "))
        }
        FolderTrust::Lost(_) | FolderTrust::Trusted => {
            "it has changed since you trusted it".to_owned()
        }
        FolderTrust::Reworded(files) => {
            format!(
                "texts in it have changed since you trusted it ({}), which is accepted only from you at a terminal",
                files.join(", ")
            )
        }
        FolderTrust::OtherKey => "you trusted it with another key".to_owned(),
        FolderTrust::Never => "you have not trusted it".to_owned(),
    }
}
