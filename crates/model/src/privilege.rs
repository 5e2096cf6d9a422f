//! The privileges of workflows, the file names that programs obey, and the permissions that the starter gives a run.
//!
//! Each privilege needs the trust of the person who starts the workflow. A prompt by itself can do what the permission
//! mode lets Claude Code do. Everything that runs programs, reaches beyond the workspace or widens permissions is a
//! privilege.

use std::ffi::OsStr;
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

/// A kind of action that goes beyond a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Privilege {
    /// Runs commands of the workflow.
    Commands,
    /// Reaches other machines.
    Network,
    /// Reads files outside of the workspace.
    Outside,
    /// Starts a program beside the run.
    PlugIns,
    /// Widens what Claude Code may do.
    Permissions,
    /// Brings settings that Claude Code reads by itself.
    ClaudeSettings,
    /// Writes files that other programs obey.
    ToolFiles,
}

impl Privilege {
    /// Returns its name in JSON.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Returns what it allows, after "the workflow".
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Commands => "runs commands",
            Self::Network => "reaches other machines",
            Self::Outside => "reads files outside the workspace",
            Self::PlugIns => "starts plug-ins",
            Self::Permissions => "widens what Claude Code may do",
            Self::ToolFiles => "writes files that other programs obey",
            Self::ClaudeSettings => "brings settings of Claude Code, which may run hooks",
        }
    }
}

// The names of files that programs execute or obey by themselves.
//
// Nobody can list all hidden files that some program reads, so each hidden name counts, but for the directories that
// operations of graphs keep their own data in. Of visible names the usual ones are listed.

/// The directories of sources and cached pages, which graphs write, and no program obeys.
const DATA: [&str; 2] = [".source", ".cache/web"];

/// Names that no graph writes, with trust either: a command can.
const REFUSED: &str = "\
    .bash_login .bash_profile .bashrc .cargo .claude .config .envrc .git .gitattributes \
    .gitconfig .gitmodules .husky .idea .local .mcp.json .npmrc .profile .pypirc .ssh .vscode \
    .zlogin .zprofile .zshenv .zshrc";

/// Visible names, in lowercase, that build tools, package managers, test runners, containers, CI services, git and
/// agents obey.
const OBEYED: &str = "\
    action.yaml action.yml agents.md authorized_keys azure-pipelines.yml \
    bitbucket-pipelines.yml brewfile build.bazel build.gradle build.gradle.kts build.ninja \
    build.rs build.sbt build.xml capfile cargo.toml claude.local.md claude.md cloudbuild.yaml \
    cmakelists.txt cmakepresets.json compose.override.yaml compose.override.yml compose.yaml \
    compose.yml composer.json configure conftest.py containerfile copilot-instructions.md \
    crontab dangerfile default.nix deno.json deno.jsonc devbox.json directory.build.props \
    directory.build.targets docker-compose.override.yaml docker-compose.override.yml \
    docker-compose.yaml docker-compose.yml dockerfile dune earthfile fabfile.py fastfile \
    flake.nix gemfile gemini.md gnumakefile gradlew gruntfile.cjs gruntfile.js gruntfile.ts \
    guardfile gulpfile.cjs gulpfile.js gulpfile.mjs gulpfile.ts head jenkinsfile justfile \
    lefthook.yaml lefthook.yml makefile meson.build mise.toml mix.exs module.bazel mvnw \
    netlify.toml node_modules noxfile.py package.json pipfile pnpm-workspace.yaml podfile \
    pom.xml procfile pyproject.toml pytest.ini rakefile sconstruct settings.gradle setup.cfg \
    setup.py shell.nix site-packages sitecustomize.py skaffold.yaml skill.md snakefile \
    taskfile.yaml taskfile.yml tasks.py tiltfile tox.ini usercustomize.py vagrantfile \
    vercel.json wscript";

/// The endings of visible names that programs obey, after any beginning.
const ENDINGS: &str = "\
    .code-workspace .config.cjs .config.js .config.mjs .config.mts .config.ts .csproj .desktop \
    .dockerfile .fsproj .gemspec .gradle .mk .podspec .pth .service .socket .sln .targets .timer";

/// The beginnings of visible names that programs obey, with anything after a dot.
const BEGINNINGS: &str = "containerfile dockerfile jenkinsfile makefile";

/// Returns the first name in a path, below a workspace, that is hidden or that programs obey.
pub fn obeyed_name(path: &Path) -> Option<&OsStr> {
    let data = DATA.iter().find_map(|data| path.strip_prefix(data).ok());
    data.unwrap_or(path).iter().find(|name| {
        let lower = name.to_string_lossy().to_lowercase();
        let is_here = lower == "." || lower == "..";
        (lower.starts_with('.') && !is_here)
            || OBEYED.split(' ').any(|known| known == lower)
            || ENDINGS.split(' ').any(|ending| lower.ends_with(ending))
            || BEGINNINGS.split(' ').any(|known| lower.split('.').next() == Some(known))
    })
}

/// Returns the first name in a path that no graph writes.
pub fn refused_name(path: &Path) -> Option<&OsStr> {
    let is_refused =
        |name: &&OsStr| REFUSED.split(' ').any(|known| name.eq_ignore_ascii_case(known));
    path.iter().find(is_refused)
}

// The permissions that the person who starts a run gives it.

/// The actions that Claude Code may take without asking.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunPermission {
    /// The named permission mode of Claude Code.
    Mode(String),
    /// Everything, without any check.
    SkipAll,
}

impl Default for RunPermission {
    fn default() -> Self {
        Self::Mode("acceptEdits".to_owned())
    }
}

/// The permissions that a starter gave beyond the permission mode.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct StarterConsent {
    /// Rules that states may name among their `allowed_tools`: what `--allow-tools` meant to earlier versions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// Rules that hold in every state, as far as it can use the tool.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub every_state: Vec<String>,
    /// True if the workflow may bring rules, settings, servers and programs of its own.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub trusts_workflow: bool,
    /// The widest mode, if it is not that of the run: the run's mode is then the workflow's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub widest_mode: Option<RunPermission>,
}

impl StarterConsent {
    /// Returns the rules that states may name among their `allowed_tools`.
    pub fn rules(&self) -> impl Iterator<Item = &String> {
        self.tools.iter().chain(&self.every_state)
    }

    /// Returns whether nothing is given.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;
    use crate::graph_types::all_types;
    use crate::operation::{Operation, RecoveryClass};

    #[test]
    fn writing_a_file_that_programs_obey_requires_privilege() {
        let of = Privilege::of_written_path;
        for path in [".github/workflows/${name}.yml", "Makefile", "${dir}/.vimrc"] {
            assert_eq!(of("write_file", path), Some(Privilege::ToolFiles), "{path}");
        }
        assert_eq!((of("read_file", ".vimrc"), of("write_file", "notes.md")), (None, None));
        assert_eq!(of("write_file", "a/.git/config"), None, "it is refused in any case");
        let list = ".claude-plugin/marketplace.json";
        assert_eq!(of("update_marketplace_json", list), None, "an entry starts nothing");
    }

    #[test]
    fn command_network_and_unknown_operations_require_privilege() {
        let of = Privilege::of_operation_type;
        assert_eq!(of("bash_exec"), Some(Privilege::Commands));
        assert_eq!(of("python_module_available"), Some(Privilege::Commands));
        assert_eq!(of("not_known_yet"), Some(Privilege::Commands));
        assert_eq!((of("web_fetch"), of("write_file")), (Some(Privilege::Network), None));
        let operation = |json| serde_json::from_value::<Operation>(json).expect("an operation");
        let exec = operation(json!({"type": "bash_exec", "command": "x"}));
        assert_eq!(exec.privilege(), Some(Privilege::Commands));
        let custom =
            Operation::Own { name: "x".into(), parameters: Map::new(), class: RecoveryClass::Read };
        assert_eq!(custom.privilege(), None);
        let privileged =
            all_types().filter_map(|known| Some((known.name, known.operation?.privilege?)));
        let privileged: Vec<_> = privileged.map(|(name, privilege)| (privilege, name)).collect();
        let of = |wanted| -> Vec<&str> {
            privileged
                .iter()
                .filter(|(privilege, _)| *privilege == wanted)
                .map(|(_, name)| *name)
                .collect()
        };
        assert_eq!(
            of(Privilege::Commands),
            ["python_module_available", "bash_exec", "run_command", "bash_check", "run_script"]
        );
        assert_eq!(
            of(Privilege::Network),
            ["clone_repo", "git_fetch", "git_pull", "web_fetch", "source_has_updates"]
        );
        assert_eq!(of(Privilege::Outside), ["discover_user_plugins"]);
        assert_eq!(privileged.len(), 11, "all others stay within the workspace and run nothing");
    }
}

#[cfg(test)]
mod obeyed_name_tests {
    use super::*;

    #[test]
    fn hidden_names_and_names_that_tools_obey_are_found_anywhere_in_a_path() {
        let obeyed = [
            ".bash_aliases",
            ".vimrc",
            ".netrc",
            ".pre-commit-config.yaml",
            ".github/workflows/x.yml",
            ".devcontainer/devcontainer.json",
            ".cursor/mcp.json",
            "a/CLAUDE.md",
            ".gnupg/x",
            ".aws/config",
            ".kube/config",
            ".Git/config",
            "a/.b/c",
            "Makefile",
            "web/package.json",
            "GNUmakefile",
            "x/HEAD",
            "vite.config.ts",
            ".source/a/.git/config",
            ".cache/x",
            ".cache/web/.x",
            "node_modules/a/index.js",
            "rules.mk",
            "...",
            ".\u{200d}git",
        ];
        for path in obeyed {
            assert!(obeyed_name(Path::new(path)).is_some(), "{path}");
        }
        let plain = [
            "notes.md",
            "data/config.yaml",
            "src/head.rs",
            "docs/index.html",
            ".source/a/llms.txt",
            ".cache/web/a/index.html",
            "a/b.c",
            "./notes",
            "cargo.toml.md",
            "",
        ];
        for path in plain {
            assert_eq!(obeyed_name(Path::new(path)), None, "{path}");
        }
        assert_eq!(obeyed_name(Path::new("a/.x/Makefile")), Some(OsStr::new(".x")));
    }
}
