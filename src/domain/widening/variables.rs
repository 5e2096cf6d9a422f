//! Environment variables that change which program runs or what it talks to.

/// Names that are dangerous as they stand.
const NAMES: [&str; 24] = [
    "ALL_PROXY",
    "BASH_ENV",
    "BROWSER",
    "CDPATH",
    "EDITOR",
    "ENV",
    "FTP_PROXY",
    "HOME",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "IFS",
    "IS_SANDBOX",
    "JAVA_TOOL_OPTIONS",
    "MAKEFLAGS",
    "NO_PROXY",
    "PAGER",
    "PATH",
    "PROMPT_COMMAND",
    "PS4",
    "SHELL",
    "SHELLOPTS",
    "TMPDIR",
    "USER",
    "VISUAL",
];

/// Beginnings of names that are dangerous.
const BEGINNINGS: [&str; 31] = [
    "ANTHROPIC_",
    "AWS_",
    "AZURE_",
    "BUN_",
    "CARGO_",
    "CLAUDE",
    "CLOUD_",
    "CURL_",
    "DISABLE_",
    "DOCKER_",
    "DYLD_",
    "ENABLE_",
    "GCLOUD_",
    "GIT_",
    "GOOGLE_",
    "LD_",
    "MCP_",
    "NODE_",
    "NPM_",
    "OTEL_",
    "PERL",
    "PIP_",
    "PYTHON",
    "RUBY",
    "RUSTC",
    "RUSTFLAGS",
    "SSH_",
    "SSL_",
    "VERTEX_",
    "XDG_",
    "ZDOTDIR",
];

/// Returns whether setting a variable widens what a turn can do.
pub(super) fn is_dangerous(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    NAMES.contains(&name.as_str()) || BEGINNINGS.iter().any(|begin| name.starts_with(begin))
}
