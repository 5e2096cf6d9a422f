//! The consequences that work on git and the web: the effect and the failure of each.

use serde_json::json;

use super::super::site::site;
use super::super::{git, remote};
use super::consequences::{initial, place};
use super::{ActionRow, fails, gives, play};

/// The rows about git and the web.
fn remote_rows(url: &str, sha: &str, site: &str) -> Vec<ActionRow> {
    let page = format!("{site}/page");
    let clone = |dest: &str| json!({"type": "clone_repo", "url": url, "dest": dest});
    let fetch =
        |url: &str, store: &str| json!({"type": "web_fetch", "url": url, "store_as": store});
    let allow = |url: &str, store: &str| {
        let mut fetch = fetch(url, store);
        fetch["allow_failure"] = json!(true);
        fetch
    };
    let readme = json!({"type": "read_file", "path": "clones/a/README.md", "store_as": "read"});
    vec![
        gives(
            "clone_repo",
            json!([clone("clones/a"), readme]),
            "${computed.read}",
            json!("# Docs\n"),
        ),
        gives(
            "clone_repo of the same origin again",
            json!([clone("clones/a")]),
            "same",
            json!("same"),
        ),
        fails("clone_repo over other files", clone("docs"), "docs"),
        fails(
            "clone_repo of nothing",
            json!({"type": "clone_repo", "url": "file:///nowhere", "dest": "d"}),
            "clone_repo: ",
        ),
        fails(
            "clone_repo of a missing branch",
            json!({"type": "clone_repo", "url": url, "dest": "d", "branch": "gone"}),
            "gone",
        ),
        gives(
            "clone_repo of a branch with all commits",
            json!([{"type": "clone_repo", "url": url, "dest": "clones/b", "branch": "main", "depth": 0}]),
            "same",
            json!("same"),
        ),
        gives(
            "get_sha",
            json!([{"type": "get_sha", "repo_path": "clones/a", "store_as": "sha"}]),
            "${computed.sha}",
            json!(sha),
        ),
        fails(
            "get_sha of no repository",
            json!({"type": "get_sha", "repo_path": "gone", "store_as": "sha"}),
            "gone",
        ),
        gives(
            "git_fetch",
            json!([{"type": "git_fetch", "repo_path": "clones/a"}]),
            "same",
            json!("same"),
        ),
        fails(
            "git_fetch of no repository",
            json!({"type": "git_fetch", "repo_path": "gone"}),
            "gone",
        ),
        gives(
            "git_pull",
            json!([{"type": "git_pull", "repo_path": "clones/a"}]),
            "same",
            json!("same"),
        ),
        fails(
            "git_pull of no repository",
            json!({"type": "git_pull", "repo_path": "gone"}),
            "gone",
        ),
        gives(
            "web_fetch",
            json!([fetch(&page, "page")]),
            "${computed.page.status} ${computed.page.content}",
            json!("200 <h1>Docs</h1>"),
        ),
        gives(
            "web_fetch has its url",
            json!([]),
            "${computed.page.url.endsWith('/page')}",
            json!(true),
        ),
        fails("web_fetch of 404", fetch(&format!("{site}/gone"), "x"), "404"),
        gives(
            "web_fetch of 404 that is allowed",
            json!([allow(&format!("{site}/gone"), "gone")]),
            "${computed.gone.status}",
            json!(404),
        ),
        fails("web_fetch without a connection", fetch("http://127.0.0.1:1/", "x"), "web_fetch: "),
        gives(
            "web_fetch without a connection that is allowed",
            json!([allow("http://127.0.0.1:1/", "none")]),
            "${computed.none.status}",
            json!(0),
        ),
        fails("web_fetch of an empty url", fetch("${empty}", "x"), "`url` is empty"),
        gives(
            "cache_web_content",
            json!([
                {"type": "cache_web_content", "from": "computed.page", "dest": "cache/p.html", "store_path_as": "computed.at"},
                {"type": "read_file", "path": "${computed.at}", "store_as": "read"},
            ]),
            "${computed.at} ${computed.read}",
            json!("cache/p.html <h1>Docs</h1>"),
        ),
        fails(
            "cache_web_content of nothing",
            json!({"type": "cache_web_content", "from": "computed.gone_page", "dest": "x"}),
            "Unresolved variable",
        ),
        fails(
            "cache_web_content outside",
            json!({"type": "cache_web_content", "from": "computed.page", "dest": "${'..'}/x"}),
            "leads out of",
        ),
    ]
}

pub(super) fn names() -> Vec<&'static str> {
    let rows = remote_rows("", "", "").into_iter().map(|row| row.name);
    rows.chain(["git_pull is fast-forward only"]).collect()
}

#[test]
fn consequences_on_git_and_the_web_have_their_effects_and_failures() {
    let place = place();
    let url = remote(&place);
    let origin = place.root().join("remote");
    let sha = git(&origin, &["rev-parse", "HEAD"]);
    let rows = remote_rows(&url, &sha, &site());
    play(place, initial(), json!([]), &rows);
}

#[test]
fn pull_that_is_no_fast_forward_fails() {
    let place = place();
    let url = remote(&place);
    let before = json!([
        {"type": "clone_repo", "url": url, "dest": "c"},
        {"type": "bash_exec", "command": format!(
            "for r in c '{}'; do git -C $r -c user.name=a -c user.email=a@b commit -q --allow-empty -m $r; done",
            place.root().join("remote").display()
        )},
    ]);
    let row = fails(
        "git_pull is fast-forward only",
        json!({"type": "git_pull", "repo_path": "c"}),
        "git_pull: ",
    );
    play(place, initial(), before, &[row]);
}
