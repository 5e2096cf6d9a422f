//! Tests of the registry: whose a process is, which entries are swept, which programs are not launched.

use std::os::unix::fs::PermissionsExt;

use super::*;

/// A process that is not there.
const GONE: u32 = 4_194_300;

fn key() -> ProofKey {
    ProofKey::new("k".repeat(64))
}

fn registry(place: &Path, key: Option<ProofKey>) -> ProcessRegistry {
    let registry = ProcessRegistry::new(place, key);
    DirBuilder::new().recursive(true).create(&registry.dir).expect("made");
    registry
}

fn entry(kind: EntryKind, agent: &str) -> ProcessEntry {
    ProcessEntry {
        pid: GONE,
        start: 7,
        group: GONE,
        kind,
        run: "r".to_owned(),
        agent: agent.to_owned(),
        turn: "t".to_owned(),
        namespace: String::new(),
        proof: String::new(),
    }
}

fn named(agent: &str) -> ActingAgent {
    ActingAgent::new("r", agent)
}

#[test]
fn only_proven_entry_is_a_persons() {
    let place = tempfile::tempdir().expect("a directory");
    let registry = registry(place.path(), Some(key()));
    let found = |key| ProcessRegistry { key, ..registry.clone() }.find(GONE, 7).expect("an entry");
    assert_eq!(registry.find(GONE, 7), None);
    registry.enter(entry(EntryKind::Beside, "")).expect("entered");
    assert!(found(Some(key())).is_persons && found(Some(key())).agent.is_none());
    assert!(!found(None).is_persons && !found(Some(ProofKey::new("other"))).is_persons);
    assert_eq!(registry.find(GONE, 8), None, "another process of that number");
    let copied = registry.path(GONE, 8);
    std::fs::copy(registry.path(GONE, 7), copied).expect("copied");
    assert!(!registry.find(GONE, 8).expect("an entry").is_persons, "a proof of another process");
    ProcessRegistry { key: None, ..registry.clone() }
        .enter(entry(EntryKind::Beside, ""))
        .expect("entered");
    assert!(!found(Some(key())).is_persons, "without a proof");
}

#[test]
fn what_an_entry_proves_keeps_its_form() {
    for (kind, name) in [
        (EntryKind::Turn, "Turn"),
        (EntryKind::Beside, "Beside"),
        (EntryKind::Supervisor, "Supervisor"),
    ] {
        let proven = ProcessEntry { namespace: "n".to_owned(), ..entry(kind, "a") }.proven();
        let expected = format!("{GONE} 7 {GONE} {name} r/a t n");
        assert_eq!(String::from_utf8(proven), Ok(expected));
    }
}

#[test]
fn entry_of_other_namespace_proves_nothing() {
    let place = tempfile::tempdir().expect("a directory");
    let here = registry(place.path(), Some(key()));
    let there = ProcessRegistry { namespace: "pid:[1]".to_owned(), ..here.clone() };
    for kind in [EntryKind::Beside, EntryKind::Supervisor] {
        there.enter(entry(kind, "")).expect("entered");
        assert!(there.find(GONE, 7).expect("an entry").is_persons);
        let found = here.find(GONE, 7).expect("an entry");
        assert!(!found.is_persons && found.supervises.is_none(), "{found:?}");
    }
}

#[test]
fn supervisor_is_hidden_unless_a_persons_is_entered_in_this_namespace() {
    let place = tempfile::tempdir().expect("a directory");
    let registry = registry(place.path(), Some(key()));
    let own = std::process::id();
    let Some(stat) = read_stat(own) else { return };
    std::fs::write(&registry.key_file, "key").expect("written");
    assert!(!registry.has_hidden_supervisor(), "none lives");
    let lock = File::open(&registry.key_file).expect("opened");
    flock(&lock, FlockOperation::LockShared).expect("locked");
    assert!(registry.has_hidden_supervisor(), "none is entered");
    let supervisor = || ProcessEntry::of(own, stat, EntryKind::Supervisor);
    let agents = supervisor().by(Some(&named("main")));
    let elsewhere = ProcessRegistry { namespace: "pid:[1]".to_owned(), ..registry.clone() };
    let unproven = ProcessRegistry { key: None, ..registry.clone() };
    for (entered, entry, is_hidden) in [
        (&registry, agents, true),
        (&elsewhere, supervisor(), true),
        (&unproven, supervisor(), true),
        (&registry, ProcessEntry::of(own, stat, EntryKind::Beside), true),
        (&registry, supervisor(), false),
    ] {
        entered.enter(entry.clone()).expect("entered");
        assert_eq!(registry.has_hidden_supervisor(), is_hidden, "{entry:?}");
    }
}

#[test]
fn unproven_entry_is_certain_while_its_lock_is_held_and_names_its_file() {
    let place = tempfile::tempdir().expect("a directory");
    let registry = registry(place.path(), None);
    let held = registry.enter(entry(EntryKind::Turn, "main")).expect("entered");
    let found = || registry.find(GONE, 7).expect("an entry");
    assert!(found().is_certain);
    let advice = found().agent.expect("an agent").advice.expect("advice");
    assert!(advice.contains(registry.path(GONE, 7).to_str().expect("text")), "{advice}");
    drop(held);
    // A child that another test starts in this moment holds the lock until it is executed.
    while found().is_certain {
        std::thread::yield_now();
    }
}

#[test]
fn entry_of_agent_needs_no_proof() {
    let place = tempfile::tempdir().expect("a directory");
    let registry = registry(place.path(), None);
    for (kind, agent, expected) in [
        (EntryKind::Turn, "main.1", Some(named("main.1"))),
        (EntryKind::Turn, "", Some(named(""))),
        (EntryKind::Beside, "main.1", Some(named("main.1"))),
        (EntryKind::Supervisor, "main", Some(named("main"))),
        (EntryKind::Supervisor, "", None),
    ] {
        registry.enter(entry(kind, agent)).expect("entered");
        let found = registry.find(GONE, 7).expect("an entry");
        let agent = found.agent.map(|agent| ActingAgent { advice: None, ..agent });
        assert_eq!(agent, expected, "{kind:?}");
        assert_eq!(found.supervises, None, "it is not proven");
    }
    std::fs::write(registry.path(GONE, 7), "{").expect("written");
    assert!(registry.find(GONE, 7).expect("an entry").agent.is_some(), "it cannot be read");
}

#[test]
fn entry_without_process_and_lock_is_swept() {
    let place = tempfile::tempdir().expect("a directory");
    let registry = registry(place.path(), Some(key()));
    let own = std::process::id();
    let Some(stat) = read_stat(own) else { return };
    registry.enter(ProcessEntry::of(own, stat, EntryKind::Turn)).expect("entered");
    let held = registry.enter(entry(EntryKind::Turn, "main")).expect("entered");
    let earlier = registry.dir.with_file_name("boot-earlier");
    std::fs::create_dir(&earlier).expect("made");
    std::fs::write(earlier.join(format!("{own}-{}", stat.started)), "").expect("written");
    registry.sweep();
    assert!(registry.find(own, stat.started).is_some(), "it lives");
    assert!(registry.find(GONE, 7).is_some(), "its lock is held");
    assert!(!earlier.exists(), "of an earlier boot");
    drop(held);
    // A child that another test starts in this moment holds the lock until it is executed.
    while registry.find(GONE, 7).is_some() {
        registry.sweep();
        std::thread::yield_now();
    }
}

#[test]
fn program_that_cannot_be_executed_is_refused_before_it_is_launched() {
    let place = tempfile::tempdir().expect("a directory");
    let file = |name: &str, text: &str, mode: u32| {
        let path = place.path().join(name);
        std::fs::write(&path, text).expect("written");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("set");
        path
    };
    let kind = |path: &Path| check_executable(path).err().map(|error| error.kind());
    assert_eq!(kind(Path::new("/bin/sh")), None);
    assert_eq!(kind(&file("good", "#! /bin/sh -e\ntrue\n", 0o755)), None);
    assert_eq!(kind(&place.path().join("missing")), Some(ErrorKind::NotFound));
    assert_eq!(kind(&file("plain", "#!/bin/sh\n", 0o644)), Some(ErrorKind::PermissionDenied));
    assert_eq!(kind(&file("bad", "#!/nowhere/sh\n", 0o755)), Some(ErrorKind::NotFound));
    let other = check_executable(&file("text", "text", 0o755));
    let is_refused = other.is_err_and(|error| error.raw_os_error() == Some(8));
    assert_eq!(is_refused, !Path::new(FURTHER_FORMATS).exists());
}

#[test]
fn supervisor_is_known_by_its_lock_on_the_key() {
    let place = tempfile::tempdir().expect("a directory");
    let registry = registry(place.path(), Some(key()));
    assert!(registry.key_holders().is_empty(), "there is no key");
    let file = File::create(&registry.key_file).expect("made");
    assert!(registry.key_holders().is_empty());
    flock(&file, FlockOperation::NonBlockingLockShared).expect("locked");
    if Path::new("/proc/locks").exists() {
        assert_eq!(registry.key_holders(), [std::process::id()]);
    }
}
