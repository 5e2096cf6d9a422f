//! `release`: a repository gets a changelog and a tag, or is unchanged.

use super::workspace::GraphWorkspace;

/// Creates a repository with a release and a commit after it.
fn repository() -> GraphWorkspace {
    let place = GraphWorkspace::new("release");
    place.git("", &["init", "--quiet", "--initial-branch=main"]);
    place.write("lamp.txt", "off\n");
    commit(&place, "Build the lamp");
    place.git("", &["tag", "--annotate", "--message=One", "v0.1.0"]);
    place.write("lamp.txt", "on\n");
    commit(&place, "Turn the lamp on");
    place
}

fn commit(place: &GraphWorkspace, message: &str) {
    place.git("", &["add", "."]);
    place.git("", &["commit", "--quiet", "--message", message]);
}

#[test]
fn scripted_answers_make_a_release_with_changelog_and_tag() {
    let place = repository();
    place.write("CHANGELOG.md", "# Changelog\n\n## 0.1.0\n\n- There is a lamp.\n");
    commit(&place, "Begin a changelog");
    let end = place.as_written().succeeded();
    assert_eq!(end["message"], "Released 0.2.0; publish it with: git push --follow-tags");
    assert_eq!(end["summary"]["commits"], 2);
    let expected = "# Changelog\n\n## 0.2.0\n\n- The lamp turns the right way round.\n\n## 0.1.0\n\n- There is a lamp.\n";
    assert_eq!(place.read("CHANGELOG.md"), expected, "the entry that was corrected");
    let tagged = place.git("", &["rev-parse", "v0.2.0^{commit}"]);
    assert_eq!(end["summary"]["sha"].as_str(), Some(tagged.as_str()));
    assert_eq!(place.git("", &["status", "--porcelain"]), "");
    assert_eq!(place.git("", &["log", "-1", "--format=%s"]), "Release 0.2.0");
}

#[test]
fn custom_version_must_be_valid_and_new() {
    let place = repository();
    let answers =
        ["ask_version=$(id)", "ask_version=0.1.0", "ask_version=v1.0.0-rc.1", "review=yes"];
    let ended = place.answered(&answers, &[]);
    assert_eq!(ended.succeeded()["summary"]["tag"], "v1.0.0-rc.1");
    assert!(ended.shown().contains("`$(id)` is no version such as 1.2.3"), "{}", ended.told);
    assert!(ended.shown().contains("there is a tag v0.1.0 already"), "{}", ended.told);
}

#[test]
fn changelog_entry_can_be_redrafted_and_the_release_cancelled() {
    let place = repository();
    let before = place.git("", &["rev-parse", "HEAD"]);
    let answers = ["ask_version=patch", "review=afresh", "review=cancel"];
    let ended = place.answered(&answers, &[]);
    assert_eq!(ended.failed("cancelled"), "Cancelled; nothing was released");
    assert_eq!(ended.visits("draft"), 2);
    assert_eq!(place.git("", &["rev-parse", "HEAD"]), before);
    assert!(!place.has("CHANGELOG.md"));
}

#[test]
fn all_reasons_against_a_release_are_reported_at_once() {
    let place = repository();
    place.git("", &["switch", "--quiet", "--create", "side", "v0.1.0"]);
    place.write("lamp.txt", "broken\n");
    let why = place.answered(&[], &[]).failed("error_not_ready");
    for part in [
        "It cannot be released yet\n",
        "there are changes that are not committed:\n M lamp.txt",
        "releases are made from main, and this is side",
        "nothing was committed since v0.1.0",
        "Try running: /release",
    ] {
        assert!(why.contains(part), "{part}: {why}");
    }
}

#[test]
fn failing_checks_end_the_release_before_any_question() {
    let place = repository();
    let ended = place.answered(&[], &["--var", "checks=echo the lamp is out >&2; exit 3"]);
    let why = ended.failed("error_checks_failed");
    assert!(why.contains("the lamp is out"), "{why}");
}

#[test]
fn failed_tag_rolls_back_the_release() {
    let place = repository();
    let before = place.git("", &["rev-parse", "HEAD"]);
    // Git keeps tags as files, so there cannot be a tag v1.0.0 beside v1.0.0/x.
    place.git("", &["tag", "v1.0.0/x", "v0.1.0"]);
    let why = place.answered(&["ask_version=1.0.0", "review=yes"], &[]).failed("error_undone");
    assert!(
        why.starts_with("1.0.0 could not be committed and tagged; the repository is as it was")
    );
    assert!(why.contains("v1.0.0"), "{why}");
    assert_eq!(place.git("", &["rev-parse", "HEAD"]), before);
    assert!(!place.has("CHANGELOG.md"));
    assert_eq!(place.git("", &["status", "--porcelain"]), "");
}

#[test]
fn missing_repository_is_reported() {
    let why = GraphWorkspace::new("release").answered(&[], &[]).failed("error_no_repository");
    assert!(why.starts_with("This is no git repository with a commit\nget_sha: "), "{why}");
}
