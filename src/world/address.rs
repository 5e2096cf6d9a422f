//! Addresses of pages and repositories: checks and display. Pure.

/// Returns a text without the names and passwords in its addresses.
pub(super) fn masked(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        shown.push_str(before);
        let end = after.find(|c: char| c.is_whitespace() || "/?#'\"`".contains(c));
        let host = &after[..end.unwrap_or(after.len())];
        rest = after;
        if let Some(at) = host.rfind('@') {
            shown.push_str("***");
            rest = &after[at..];
        }
    }
    shown.push_str(rest);
    shown
}

/// Refuses a URL that git would take for an option, or for a program to run.
pub(super) fn check_remote(url: &str) -> Result<(), String> {
    let shown = masked(url);
    if url.trim().is_empty() {
        return Err("the url is empty: name a repository".to_owned());
    }
    if url.starts_with('-') || url.contains(char::is_control) {
        return Err(format!("the url {shown:?} is none of a repository"));
    }
    // An address such as `ext::sh -c …` names a program that acts as the remote.
    if let Some((helper, _)) = url.split_once("::")
        && helper.chars().all(|c| c.is_ascii_alphanumeric() || "+.-_".contains(c))
    {
        return Err(format!(
            "the url `{shown}` names the helper `{helper}`, which raymond does not run: give a url \
             that begins with https:// or ssh://"
        ));
    }
    Ok(())
}

/// Refuses a branch that git would take for an option.
pub(super) fn check_branch(branch: &str) -> Result<(), String> {
    if branch.trim().is_empty() || branch.starts_with('-') || branch.contains(char::is_control) {
        return Err(format!("{branch:?} is not a branch name"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_in_addresses_are_masked() {
        assert_eq!(masked("https://me:secret@x.org/r?a=b@c"), "https://***@x.org/r?a=b@c");
        assert_eq!(
            masked("fatal: 'https://t0ken@x/y' and ssh://git@h:22/z, http://plain/@v"),
            "fatal: 'https://***@x/y' and ssh://***@h:22/z, http://plain/@v"
        );
        assert_eq!(masked("git@github.com:a/b.git"), "git@github.com:a/b.git");
        assert_eq!(masked("http://a@b@c"), "http://***@c");
    }

    #[test]
    fn invalid_remote_or_branch_is_refused() {
        for good in ["https://x/y.git", "git@h:a/b", "/srv/git/x", "file:///x", "http://[::1]/x"] {
            assert_eq!(check_remote(good), Ok(()), "{good}");
        }
        for bad in ["", " ", "--upload-pack=x", "ext::sh -c x", "fd::3", "https://x/\ny"] {
            assert!(check_remote(bad).is_err(), "{bad}");
        }
        assert!(check_branch("--x").is_err() && check_branch("").is_err());
        assert_eq!(check_branch("release/1.0"), Ok(()));
    }
}
