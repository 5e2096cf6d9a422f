//! The pack of hiivmind-corpus: the configuration, the sources and the index of a corpus, its logs and its intents.
//!
//! `discover_installed_corpora` is `discover_plugins` with a pattern; `update_source_metadata` is `update_source`.

use super::{
    CONSEQUENCE, CONVERGES, ChangedPath, FileAccess, GUARDED, GraphType, INNER, OperationFacts,
    PRECONDITION, ParameterKind, Privilege, READ, TypePack, may, need,
};

pub(super) static PACK: TypePack = TypePack {
    types: TYPES,
    parameters: PARAMETERS,
    filled: &["marketplace_path", "plugin_name"],
    paths: &["marketplace_path"],
    skill_prefix: Some("hiivmind-corpus-"),
};

/// An entry in the list of a marketplace starts nothing, and the operation writes nothing else.
const LISTS: OperationFacts = OperationFacts {
    changes: Some(ChangedPath {
        parameter: "marketplace_path",
        access: FileAccess::Write,
        harmless: Some(".claude-plugin/marketplace.json"),
    }),
    ..CONVERGES
};

const TYPES: &[GraphType] = graph_types! {
    PRECONDITION "corpus" {
        config_exists() "Holds if the corpus has a configuration." = READ;
        index_exists() "Holds if the corpus has an index." = READ;
        index_is_placeholder() "Holds if the index is the placeholder that a new corpus begins with." = READ;
        source_exists(need id: Filled) "Holds if the configuration has such a source." = READ;
        source_cloned(need id: Filled) "Holds if the source has a clone." = READ;
        source_has_updates(need id: Filled)
            "Holds if the source's remote has commits that its clone has not." = READ.needs(Privilege::Network);
    }
    CONSEQUENCE "state" {
        parse_intent_flags(need input: Any, need flag_definitions: Map, need store_as: Path)
            "Stores for each flag whether its keywords are in a text: T, F or U.";
        match_3vl_rules(need flags: Map, need rules: List, need store_as: Path)
            "Stores the rules that fit such flags best.";
    }
    CONSEQUENCE "log" {
        log_source_status(
            need source_id: Filled, need status: Filled, may source_type: Any, may indexed_sha: Any,
            may upstream_sha: Any, may indexed_hash: Any, may current_hash: Any, may commits_behind: Any,
            may action: Any
        ) "Logs the status of a source.";
        log_source_changes(need source_id: Filled, need changes: Any) "Logs the changed files of a source.";
        log_index_update(
            need files: List, may entries_added: Any, may entries_removed: Any, may keywords_preserved: Any
        ) "Logs the changes of the index.";
        log_session_snapshot(need description: Text, may node: Filled) "Logs a point that matters.";
        apply_log_retention(need strategy: Filled, may days: Any, may count: Any, may location: Filled)
            "Removes old log files." = CONVERGES.works_in("location");
        output_ci_summary(need format: Filled) "Shows a summary of the log for a build server.";
    }
    CONSEQUENCE "corpus" {
        read_config(need store_as: Path) "Stores the configuration of the corpus." = READ;
        write_config(may config: Map)
            "Replaces the configuration, or checks that it can be read." = CONVERGES;
        write_config_entry(need path: Path, need value: Any)
            "Sets an entry of the configuration." = CONVERGES;
        add_source(need spec: Map) "Adds a source to the configuration." = GUARDED;
        update_source(need id: Filled, need fields: Map)
            "Changes fields of a source in the configuration." = CONVERGES;
        update_source_metadata(need id: Filled, need fields: Map)
            "Changes fields of a source in the configuration.";
        update_config_index_metadata(may last_updated_at: Any, may format: Any, may fields: Map)
            "Sets fields of the entry `index` of the configuration." = CONVERGES;
        update_marketplace_json(
            need marketplace_path: Filled, need plugin_name: Filled, need plugin_path: Filled
        ) "Enters a plug-in into the list of a marketplace." = LISTS;
        discover_plugins(need pattern: Filled, need store_as: Path, may user: Boolean)
            "Stores the plug-ins whose directories have a name of a pattern." = READ;
        discover_installed_corpora(need store_as: Path, may user: Boolean)
            "Stores the corpora that are there: `discover_plugins` with their pattern.";
    }
    INNER "operations" {
        discover_user_plugins(need pattern: Text, need home: Text, may user: Boolean) "" = READ.needs(Privilege::Outside);
    }
};

const PARAMETERS: &[(&str, &str)] = parameter_docs! {
    fields "The fields and their new values.";
    id "The id of the source.";
    spec "The source: its `id` and its other fields.";
    changes "The files, by `added`, `modified` and `deleted`.";
    commits_behind "The number of commits that are missing.";
    config "The new configuration; without it the present one is only checked.";
    current_hash "The present checksum.";
    days "The number of days that log files are kept.";
    description "The text.";
    entries_added "The number of new entries.";
    entries_removed "The number of removed entries.";
    files "The files.";
    flag_definitions "The flags, each with `keywords` and `negative_keywords`.";
    flags "The flags, each T, F or U.";
    indexed_hash "The checksum that was indexed.";
    indexed_sha "The commit that was indexed.";
    keywords_preserved "True if the keywords were kept.";
    last_updated_at "The time of the index.";
    marketplace_path "The path of the list.";
    plugin_path "The path of the plug-in.";
    rules "The rules, each with `conditions`, and perhaps a `priority`.";
    source_id "The id of the source.";
    source_type "The type of the source.";
    status "The status of the source.";
    strategy "The strategy: `none`, `days` or `count`.";
    upstream_sha "The commit of the remote.";
    user "True if what is installed below the home directory counts, too.";
};
