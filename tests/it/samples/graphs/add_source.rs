//! `add-source`: a corpus gets a source of each sort, and is unchanged after a failure.

use serde_json::{Value, json};

use super::workspace::{GraphWorkspace, site};

/// Creates a corpus without sources, and with some files.
fn corpus() -> GraphWorkspace {
    let corpus = GraphWorkspace::new("add-source");
    corpus.write("data/config.yaml", "# Ours.\nname: sea\nsources: []\n");
    corpus.write("data/index.md", "# Index\n\nRun hiivmind-corpus-build to fill it.\n");
    corpus.write("docs/lamp.md", "# The lamp\n");
    corpus.write("docs/more/cat.md", "# The cat\n");
    corpus
}

/// Creates a repository that can be cloned; returns its address.
fn upstream(corpus: &GraphWorkspace) -> String {
    corpus.write("up/handbook/docs/lamp.md", "# The lamp\n");
    corpus.write("up/handbook/README.md", "# Handbook\n");
    corpus.git("up/handbook", &["init", "--quiet", "--initial-branch=main"]);
    corpus.git("up/handbook", &["add", "."]);
    corpus.git("up/handbook", &["commit", "--quiet", "--message=One"]);
    corpus.path().join("up/handbook").display().to_string()
}

fn source(corpus: &GraphWorkspace) -> Value {
    let config = corpus.config();
    assert_eq!(config["sources"].as_array().map(Vec::len), Some(1), "{config}");
    config["sources"][0].clone()
}

#[test]
fn scripted_answers_add_the_local_files() {
    let corpus = corpus();
    let end = corpus.as_written().succeeded();
    assert_eq!(end["message"], "Source 'handbook' added to corpus");
    let summary =
        json!({"source_id": "handbook", "source_type": "local", "files_count": 2, "first": true});
    assert_eq!(end["summary"], summary);
    let source = source(&corpus);
    assert_eq!(source["title"], "The lighthouse handbook");
    let hash = source["content_hash"].as_str().expect("a checksum");
    assert!(hash.starts_with("sha256:") && hash.len() == 71, "{hash}");
    assert!(corpus.read("data/config.yaml").starts_with("# Ours.\nname: sea\n"));
    let index = corpus.read("data/index.md");
    assert!(index.starts_with("# Index\n\n## The lighthouse handbook\n\nHow to keep"), "{index}");
}

#[test]
fn repository_is_cloned_and_its_documents_counted() {
    let corpus = corpus();
    let url = upstream(&corpus);
    let address = format!("collect_git_url={url}");
    let git = ["ask_source_type=git", &address, "confirm_id=keep"];
    let end = corpus.answered(&git, &[]).succeeded();
    assert_eq!(end["summary"]["files_count"], 1, "only what is in docs/: {end}");
    let source = source(&corpus);
    let head = corpus.git("up/handbook", &["rev-parse", "HEAD"]);
    assert_eq!(source["last_commit_sha"].as_str(), Some(head.as_str()));
    assert_eq!((source["url"].as_str(), source["docs_root"].as_str()), (Some(&*url), Some("docs")));
    assert!(corpus.has(".source/handbook/docs/lamp.md"));

    // The id exists now; another one is asked for, and the index grows.
    let again = [&git[..], &["confirm_id=Hand Book", "confirm_id=second"]].concat();
    let ended = corpus.answered(&again, &[]);
    ended.succeeded();
    assert!(ended.shown().contains("there is a source `handbook` already"), "{}", ended.told);
    assert!(ended.shown().contains("`Hand Book` is not an id"), "{}", ended.told);
    assert_eq!(corpus.config()["sources"][1]["id"], "second");
    assert_eq!(corpus.read("data/index.md").matches("## The lighthouse").count(), 2);
}

#[test]
fn failed_clone_is_retried_and_leaves_nothing() {
    let corpus = corpus();
    let before = corpus.read("data/config.yaml");
    let url = format!("collect_git_url={}", corpus.path().join("up/none").display());
    let answers =
        ["ask_source_type=git", &url, "confirm_id=keep", "retry_fetch=retry", "retry_fetch=3"];
    let ended = corpus.answered(&answers, &[]);
    let why = ended.failed("error_not_added");
    assert!(why.starts_with("Source 'none' was not added\nclone_repo: "), "{why}");
    assert!(why.ends_with("\nTry running: /add-source"), "{why}");
    assert_eq!(ended.visits("clone"), 2);
    assert_eq!(corpus.read("data/config.yaml"), before);
    assert!(!corpus.has(".source/none"));
}

#[test]
fn llms_txt_of_a_site_is_found_and_used() {
    const TEXT: &str = "# Handbook\n\n- [Lamp](/lamp): it turns\n- [Cat](/cat)\n";
    let corpus = corpus();
    let url = site(&[("/guide/llms.txt", TEXT)]);
    let variable = format!("source_url={url}/guide/");
    let answers = ["present_manifest_option=use", "confirm_id=keep"];
    let end = corpus.answered(&answers, &["--var", &variable]).succeeded();
    assert_eq!(end["summary"]["source_type"], "llms-txt");
    assert_eq!(end["summary"]["files_count"], 2);
    assert_eq!(corpus.read(".source/guide/llms.txt"), TEXT);
    assert_eq!(source(&corpus)["url"], format!("{url}/guide"));
}

#[test]
fn html_page_at_llms_txt_is_ignored() {
    let corpus = corpus();
    let url = site(&[("/llms.txt", "<html>Welcome"), ("/lamp", "It turns."), ("/cat", "It naps.")]);
    let urls = format!("collect_web_urls={url}/lamp {url}/cat no-address");
    let answers = ["ask_source_type=web", &urls, "confirm_id=pages"];
    let variable = format!("source_url={url}");
    let end = corpus.answered(&answers, &["--var", &variable]).succeeded();
    assert_eq!(end["summary"]["files_count"], 2);
    let pages = source(&corpus)["pages"].clone();
    assert_eq!(pages[1]["url"], format!("{url}/cat"));
    assert_eq!(corpus.read(pages[0]["path"].as_str().expect("a path")), "It turns.");
}

#[test]
fn missing_page_adds_no_source() {
    let corpus = corpus();
    let url = site(&[]);
    let urls = format!("collect_web_urls={url}/gone");
    let answers = ["ask_source_type=web", &urls, "confirm_id=keep", "retry_fetch=stop"];
    let why = corpus.answered(&answers, &[]).failed("error_not_added");
    assert!(why.contains("404"), "{why}");
    assert_eq!(corpus.config()["sources"], json!([]));
}

#[test]
fn folder_without_files_is_reported_and_cancel_adds_nothing() {
    let corpus = corpus();
    let answers = ["ask_source_type=local", "collect_local_path=nowhere", "collect_local_path=2"];
    let ended = corpus.answered(&answers, &[]);
    assert_eq!(ended.failed("cancelled"), "Cancelled; nothing was added");
    assert!(ended.shown().contains("There is no markdown file in nowhere."), "{}", ended.told);
}

#[test]
fn missing_or_broken_configuration_is_reported() {
    let empty = GraphWorkspace::new("add-source");
    let ended = empty.answered(&[], &[]);
    assert_eq!(ended.code, 1, "{}", ended.told);
    assert!(ended.told.contains("WF401 Entry gate failed: there is no data/config.yaml here"));
    empty.write("data/config.yaml", "sources: [\n");
    let why = empty.answered(&[], &[]).failed("error_no_config");
    assert!(why.starts_with("data/config.yaml cannot be read\nread_config: "), "{why}");
    assert!(why.ends_with("Try running: /hiivmind-corpus-init"), "{why}");
}

#[test]
fn unanswered_question_is_shown_and_exits_with_code_2() {
    let ended = corpus().answered(&["ask_source_type=local"], &[]);
    assert_eq!(ended.code, 2, "{}", ended.told);
    assert!(ended.told.contains("In which folder are the files?"), "{}", ended.told);
}
