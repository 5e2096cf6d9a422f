//! What graphs ask of the world: files, git, the web, programs; confined to the workspace.
