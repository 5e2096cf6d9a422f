//! The flags of `claude` that the stand-in understands. It refuses an unknown flag as the real program does,
//! so that a mistake in raymond's command line fails a test.

/// The flags of a command line.
#[derive(Debug, Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub(crate) struct ClaudeFlags {
    pub(crate) session_id: Option<String>,
    pub(crate) resume: Option<String>,
    pub(crate) resume_at: Option<String>,
    pub(crate) fork_session: bool,
    pub(crate) model: Option<String>,
    pub(crate) json_schema: Option<String>,
    permission_mode: Option<String>,
    skip_permissions: bool,
    print: bool,
    verbose: bool,
    output_format: Option<String>,
    input_format: Option<String>,
    pub(crate) replay_user_messages: bool,
    pub(crate) partial_messages: bool,
    /// The rules of `--allowedTools`.
    pub(crate) allowed: Vec<String>,
    permission_prompt_tool: Option<String>,
}

impl ClaudeFlags {
    pub(crate) fn parse(arguments: &[String]) -> Result<Self, String> {
        let mut flags = Self::default();
        let mut rest = arguments.iter();
        let mut is_list = false;
        while let Some(argument) = rest.next() {
            let (name, joined) = match argument.split_once('=') {
                Some((name, value)) if name.starts_with("--") => (name, Some(value.to_owned())),
                _ => (argument.as_str(), None),
            };
            let mut value = || {
                joined
                    .clone()
                    .or_else(|| rest.next().cloned())
                    .ok_or_else(|| format!("error: option '{name}' argument missing"))
            };
            is_list = is_list && !argument.starts_with('-');
            match name {
                "-p" | "--print" => flags.print = true,
                "--verbose" => flags.verbose = true,
                "--fork-session" => flags.fork_session = true,
                "--dangerously-skip-permissions" => flags.skip_permissions = true,
                "--replay-user-messages" => flags.replay_user_messages = true,
                "--input-format" => flags.input_format = Some(value()?),
                "--output-format" => flags.output_format = Some(value()?),
                "--session-id" => flags.session_id = Some(value()?),
                "--resume" | "-r" => flags.resume = Some(value()?),
                "--resume-session-at" => flags.resume_at = Some(value()?),
                "--json-schema" => flags.json_schema = Some(value()?),
                "--model" => flags.model = Some(value()?),
                "--permission-mode" => flags.permission_mode = Some(value()?),
                "--allowedTools" => {
                    flags.allowed.push(value()?);
                    is_list = true;
                }
                "--permission-prompt-tool" => flags.permission_prompt_tool = Some(value()?),
                "--disallowedTools"
                | "--max-budget-usd"
                | "--fallback-model"
                | "--effort"
                | "--append-system-prompt"
                | "--settings"
                | "--mcp-config"
                | "--add-dir" => drop(value()?),
                "--include-partial-messages" => flags.partial_messages = true,
                "--strict-mcp-config" => {}
                other if other.starts_with('-') => {
                    return Err(format!("error: unknown option '{other}'"));
                }
                // The further values of a flag that takes several.
                other if is_list => flags.allowed.push(other.to_owned()),
                _ => {}
            }
        }
        flags.check()
    }

    fn check(self) -> Result<Self, String> {
        if !self.print {
            return Err("fake-claude: only -p is played".to_owned());
        }
        if self.output_format.as_deref() != Some("stream-json") {
            return Err("fake-claude: only --output-format stream-json is played".to_owned());
        }
        if !self.verbose {
            return Err(
                "Error: When using --print, --output-format=stream-json requires --verbose"
                    .to_owned(),
            );
        }
        if let Some(other) = self.input_format.as_deref()
            && !["text", "stream-json"].contains(&other)
        {
            return Err(format!("error: option '--input-format' argument '{other}' is invalid"));
        }
        if self.replay_user_messages && !self.is_warm() {
            return Err("Error: --replay-user-messages requires both --input-format=stream-json \
                        and --output-format=stream-json."
                .to_owned());
        }
        if self.session_id.is_some() && self.resume.is_some() && !self.fork_session {
            return Err("Error: --session-id can only be used with --continue or --resume if \
                        --fork-session is also specified."
                .to_owned());
        }
        if self.resume.is_none() && (self.fork_session || self.resume_at.is_some()) {
            return Err("Error: --fork-session and --resume-session-at need --resume".to_owned());
        }
        Ok(self)
    }

    /// Returns whether the process takes a turn for each message on stdin.
    pub(crate) fn is_warm(&self) -> bool {
        self.input_format.as_deref() == Some("stream-json")
    }

    /// Returns whether the process asks on its output what it would ask a person.
    pub(crate) fn asks(&self) -> bool {
        self.permission_prompt_tool.as_deref() == Some("stdio")
    }

    pub(crate) fn permission_mode(&self) -> String {
        if self.skip_permissions {
            "bypassPermissions".to_owned()
        } else {
            self.permission_mode.clone().unwrap_or_else(|| "default".to_owned())
        }
    }
}
