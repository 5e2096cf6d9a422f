//! Tests of the configurations of git.

use super::*;

fn setting(key: &str, value: &str) -> GitSetting {
    GitSetting { key: key.into(), value: Some(value.into()) }
}

#[test]
fn list_of_git_is_read_with_values_of_several_lines_and_names_alone() {
    let list = b"core.bare\0core.ignorecase\nfalse\0filter.A b\"=.c.clean\na\nb\0x.y\n\0";
    let expected = [
        GitSetting { key: "core.bare".into(), value: None },
        setting("core.ignorecase", "false"),
        setting("filter.A b\"=.c.clean", "a\nb"),
        setting("x.y", ""),
    ];
    assert_eq!(read_git_config(list), expected);
}

#[test]
fn settings_that_name_programs_are_taken_back() {
    let programs = [
        "filter.e.clean",
        "filter.e.smudge",
        "filter.a=b.c.process",
        "diff.external",
        "diff.x.command",
        "diff.x.textconv",
        "merge.x.driver",
        "core.editor",
        "core.pager",
        "core.askpass",
        "core.gitproxy",
        "core.alternaterefscommand",
        "credential.helper",
        "credential.https://x.y.helper",
        "gpg.program",
        "gpg.ssh.program",
        "gpg.ssh.defaultkeycommand",
        "gc.recentobjectshook",
        "hook.x.command",
        "hook.x.event",
        "remote.o.vcs",
        "trailer.x.cmd",
        "interactive.difffilter",
        "lfs.customtransfer.x.path",
        "uploadpack.packobjectshook",
        "sequence.editor",
        "tar.x.command",
    ];
    for key in programs {
        assert_eq!(setting(key, "id > pwned").neutral(), Some(""), "{key}");
        assert!(!setting(key, "id > pwned").is_plain(), "{key}");
    }
    assert_eq!(setting("remote.o.uploadpack", "id").neutral(), Some("git-upload-pack"));
    assert_eq!(setting("remote.o.receivepack", "id").neutral(), Some("git-receive-pack"));
    let empty = setting("remote.o.uploadpack", "").neutral();
    assert_eq!(empty, Some("git-upload-pack"), "else the address would be the program");
    assert_eq!(setting("core.sshcommand", "id").neutral(), Some("ssh"));
    assert_eq!(setting("submodule.x.update", "!id").neutral(), Some("checkout"));
    assert_eq!(setting("submodule.x.update", "merge").neutral(), None);
    assert_eq!(setting("alias.status", "!id").neutral(), Some(""));
}

#[test]
fn usual_settings_are_plain() {
    let usual = [
        ("core.repositoryformatversion", "0"),
        ("core.filemode", "true"),
        ("core.autocrlf", "input"),
        ("core.worktree", "../../../x"),
        ("remote.origin.url", "git@x:y.git"),
        ("remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*"),
        ("branch.main.merge", "refs/heads/main"),
        ("user.email", "a@b"),
        ("extensions.objectformat", "sha256"),
        ("core.fsmonitorhookversion", "2"),
        ("pull.rebase", "merges"),
        ("lfs.repositoryformatversion", "0"),
        ("commit.gpgsign", "false"),
        ("filter.lfs.required", "true"),
        ("submodule.x.url", "https://x/y"),
    ];
    for (key, value) in usual {
        assert!(setting(key, value).is_plain(), "{key}");
    }
    for key in [
        "core.hookspath",
        "core.attributesfile",
        "http.proxy",
        "include.path",
        "includeif.onbranch:x.path",
        "url.ext::id.insteadof",
        "remote.o.promisor",
    ] {
        assert!(!setting(key, "x").is_plain(), "{key}");
    }
    assert_eq!(setting("includeif.onbranch:x.path", "y").included(), Some(&b"y"[..]));
}
