//! `config.yaml`: what a user has set for all commands on this machine.

use super::schema::shape;
use super::yaml::tree::YamlFileKind;
use super::yaml::{self, Error, PlacedValue, YamlErrors};
use crate::keys::unknown_keys;

/// The name of the file, in the directory `raymond` of the user's configuration.
pub const FILE: &str = "config.yaml";

/// What the user has set.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct UserConfig {
    /// The address of the engine that holds the runs. It may have a password in it, so it is never shown as a whole.
    pub engine: Option<String>,
}

listed_keys! {
    /// The keys as they are written.
    pub(crate) struct RawUserConfig {
        /// The engine that holds the runs, unless the command line or the environment names one.
        engine: Option<PlacedValue<String>> => shape::text,
    }
}

/// Reads the file.
///
/// # Errors
/// [`Error`] with line and column.
pub fn parse(text: &str) -> Result<UserConfig, Error> {
    let mut errors = YamlErrors::default();
    let root = yaml::parse(YamlFileKind::USER_CONFIG, text, &mut errors);
    let root = root.filter(|root| !root.is_null());
    let raw = root.as_ref().and_then(|root| yaml::examine_tree::<RawUserConfig>(root, &mut errors));
    if let Some(root) = &root {
        errors.add(unknown_keys(root, RawUserConfig::KEYS, None));
    }
    let engine = raw.and_then(|raw| raw.engine).map(|engine| engine.value);
    errors.or_else_first(UserConfig { engine })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engine_is_read_and_other_keys_are_refused() {
        let engine = |text: &str| parse(text).map(|config| config.engine);
        assert_eq!(engine(""), Ok(None));
        assert_eq!(engine("# nothing\n"), Ok(None));
        let url = "postgres://ray@db/work";
        assert_eq!(engine(&format!("engine: {url}\n")), Ok(Some(url.to_owned())));
        let wrong = engine("engin: x\n").expect_err("no such key").to_string();
        assert!(wrong.starts_with("1:1: ") && wrong.contains("engine"), "{wrong}");
        assert!(engine("engine: [a]\n").is_err());
    }
}
