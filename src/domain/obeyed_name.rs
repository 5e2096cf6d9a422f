//! The names of files that programs execute or obey by themselves. Pure.
//!
//! Nobody can list all hidden files that some program reads, so each hidden name counts, but for the directories that
//! operations of graphs keep their own data in. Of visible names the usual ones are listed.

use std::ffi::OsStr;
use std::path::Path;

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

/// The endings of visible names that programs obey, whatever stands before them.
const ENDINGS: &str = "\
    .code-workspace .config.cjs .config.js .config.mjs .config.mts .config.ts .csproj .desktop \
    .dockerfile .fsproj .gemspec .gradle .mk .podspec .pth .service .socket .sln .targets .timer";

/// The beginnings of visible names that programs obey, whatever stands after a dot.
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

#[cfg(test)]
mod tests {
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
