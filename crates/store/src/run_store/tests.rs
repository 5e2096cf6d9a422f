//! Recovery from the possible states of a directory after a crash, and the refusal of all others.

use super::*;
use crate::snapshot;
use raymond_model::apply::apply;
use raymond_model::event::{Event, RunStarted};
use raymond_model::id::{SessionId, StateName};
use raymond_model::run::SNAPSHOT_VERSION;
use raymond_model::run::{PauseReason, RunStatus};
use raymond_model::settings::Settings;
use raymond_model::time::Timestamp;
use raymond_model::transition::Variables;

fn id() -> RunId {
    RunId::parse("r").expect("an id")
}

fn first() -> Record {
    let started = RunStarted {
        workflow_id: id(),
        scope_dir: "w".into(),
        folder: None,
        entry: StateName::parse("A.md").expect("a state"),
        session: SessionId::new("s"),
        definition: None,
        variables: Variables::new(),
        options: raymond_model::agent::AgentOptions::default(),
        settings: Settings::default(),
    };
    Record {
        kept_session: None,
        seq: 1,
        at: Timestamp(1),
        folder: None,
        snapshot: None,
        placed: Vec::new(),
        event: Event::RunStarted(Box::new(started)),
    }
}

fn pause(seq: u64) -> Record {
    let pause = PauseReason::Unavailable { message: format!("record {seq}") };
    Record {
        kept_session: None,
        seq,
        at: Timestamp(seq),
        folder: None,
        snapshot: None,
        placed: Vec::new(),
        event: Event::RunPaused { pause },
    }
}

/// Returns a run of `records` records on disk, and its root.
fn stored(records: u64) -> (tempfile::TempDir, RunsRoot) {
    let place = tempfile::tempdir().expect("a directory");
    let root = RunsRoot::new(place.path());
    let (mut store, mut run) =
        LockedRun::create(&root, &first(), NewRun::default()).expect("created");
    store.start_writer(|_| {}).expect("started");
    for seq in 2..=records {
        apply(&mut run, &pause(seq)).expect("applied");
        store.append(&[pause(seq)], &run).expect("appended");
    }
    store.finish().expect("written");
    (place, root)
}

/// Removes the note of the acknowledged bytes, which is not synced: a machine that dies may lose it.
fn lose_note(root: &RunsRoot) {
    let _ = std::fs::remove_file(log::acknowledged_end(&root.run(&id()).journal()));
}

/// Opens the run. A child that another test starts has the lock too, until it has become its program.
fn patiently(root: &RunsRoot) -> Result<(LockedRun, RecoveredRun), Error> {
    let start = std::time::Instant::now();
    loop {
        match LockedRun::open(root, &id()) {
            Err(Error::Held { .. }) if start.elapsed().as_secs() < 60 => std::thread::yield_now(),
            opened => return opened,
        }
    }
}

fn opened(root: &RunsRoot) -> (LockedRun, RecoveredRun) {
    patiently(root).expect("opened")
}

fn message(root: &RunsRoot) -> String {
    patiently(root).expect_err("refused").to_string()
}

/// Cuts a journal whose last two records are of one moment at every byte of these two.
#[test]
fn records_of_one_batch_are_recovered_all_or_none() {
    let (_place, root) = stored(3);
    let journal = root.run(&id()).journal();
    let before = std::fs::read(&journal).expect("there");
    let (mut store, recovered) = opened(&root);
    let mut run = recovered.run;
    store.start_writer(|_| {}).expect("started");
    for seq in [4, 5] {
        apply(&mut run, &pause(seq)).expect("applied");
    }
    store.append(&[pause(4), pause(5)], &run).expect("appended");
    store.finish().expect("written");
    drop(store);
    let whole = std::fs::read(&journal).expect("there");
    let added = String::from_utf8_lossy(&whole[before.len()..]).into_owned();
    let more: Vec<bool> = added.lines().map(|line| line.contains(",\"more\":true,")).collect();
    assert_eq!(more, [true, false], "{added}");
    for cut in before.len()..=whole.len() {
        lose_note(&root);
        std::fs::write(&journal, &whole[..cut]).expect("written");
        let (_store, recovered) = opened(&root);
        let expected = if cut == whole.len() { 5 } else { 3 };
        assert_eq!(recovered.run.seq, expected, "cut at {cut} of {}", whole.len());
        let kept = std::fs::read(&journal).expect("there");
        assert_eq!(kept, if cut == whole.len() { whole.clone() } else { before.clone() });
    }
}

#[test]
fn stored_run_is_recovered_unchanged() {
    let (_place, root) = stored(3);
    let (_store, recovered) = opened(&root);
    assert_eq!((recovered.run.seq, recovered.run.status), (3, RunStatus::Paused));
    assert!(recovered.warnings.is_empty());
}

#[test]
fn existing_id_or_locked_run_is_refused() {
    let (_place, root) = stored(1);
    let taken =
        LockedRun::create(&root, &first(), NewRun::default()).expect_err("taken").to_string();
    assert!(taken.contains("a run r already exists"), "{taken}");
    let _held = opened(&root);
    let held = LockedRun::open(&root, &id()).expect_err("held").to_string();
    let holder = format!("locked by another raymond (process {})", std::process::id());
    assert!(held.contains(&holder), "{held}");
}

#[test]
fn journal_cut_at_any_byte_recovers_complete_records() {
    let (_place, root) = stored(12);
    let journal = root.run(&id()).journal();
    let whole = std::fs::read(&journal).expect("read");
    let first_end = whole.iter().position(|&byte| byte == b'\n').expect("a line") + 1;
    for cut in first_end..=whole.len() {
        lose_note(&root);
        std::fs::write(&journal, &whole[..cut]).expect("written");
        let (_store, recovered) = opened(&root);
        let complete = (whole[..cut].split(|&byte| byte == b'\n').count() - 1) as u64;
        assert_eq!(recovered.run.seq, complete, "cut at {cut}");
        assert_eq!(recovered.warnings.len(), usize::from(whole[cut - 1] != b'\n'), "cut at {cut}");
        let left = std::fs::read(&journal).expect("read");
        assert!(left.last() == Some(&b'\n') && whole.starts_with(&left));
    }
}

#[test]
fn damaged_record_in_the_middle_is_named() {
    let (_place, root) = stored(5);
    let journal = root.run(&id()).journal();
    let text = std::fs::read_to_string(&journal).expect("read");
    std::fs::write(&journal, text.replace("record 3", "record 8")).expect("written");
    let message = message(&root);
    assert!(
        message.contains("journal.jsonl:3: record 3 is damaged: its checksum is wrong"),
        "{message}"
    );
}

#[test]
fn missing_record_is_reported_as_damage() {
    let (_place, root) = stored(5);
    let journal = root.run(&id()).journal();
    let text = std::fs::read_to_string(&journal).expect("read");
    let without: Vec<&str> = text.lines().filter(|line| !line.contains("\"seq\":3,")).collect();
    std::fs::write(&journal, without.join("\n") + "\n").expect("written");
    assert!(message(&root).contains("record 3 is damaged: it has the number 4"));
}

#[test]
fn unreadable_snapshot_is_rebuilt_and_newer_version_refused() {
    let (_place, root) = stored(4);
    let state = root.run(&id()).state();
    std::fs::write(&state, "{ not json").expect("written");
    let (store, recovered) = opened(&root);
    assert_eq!((recovered.run.seq, recovered.warnings.len()), (4, 1));
    drop(store);
    std::fs::write(&state, "{\"version\": 99}").expect("written");
    assert!(message(&root).contains("state.json: version 99 is newer"));
}

#[test]
fn snapshot_of_earlier_version_is_rebuilt_without_warning() {
    let (_place, root) = stored(4);
    let (store, recovered) = opened(&root);
    store.save_last_snapshot(&recovered.run).expect("a snapshot");
    let state = root.run(&id()).state();
    let now = std::fs::read_to_string(&state).expect("a snapshot");
    let (body, _) = now.rsplit_once(",\n  \"checksum\"").expect("a checksum");
    let [this, earlier] = [SNAPSHOT_VERSION, SNAPSHOT_VERSION - 1];
    let [this, earlier] = [this, earlier].map(|version| format!("\"version\": {version}"));
    let before = body.replacen(&this, &earlier, 1);
    assert_ne!(before, body);
    for json in [before.clone() + "\n}", format!("{before},\n  \"unknown\": {{}}\n}}")] {
        let value: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        let mut checked = Vec::new();
        snapshot::write(&value, &mut checked).expect("written");
        for stored in [json.into_bytes(), checked] {
            std::fs::write(&state, stored).expect("written");
            assert_eq!(read(&root).expect("the journal is whole"), (recovered.run.clone(), vec![]));
        }
    }
    store.save_last_snapshot(&recovered.run).expect("a snapshot");
    assert_eq!(std::fs::read_to_string(&state).expect("a snapshot"), now);
}

#[test]
fn snapshot_ahead_of_journal_is_an_error() {
    let (_place, root) = stored(4);
    let (mut store, recovered) = opened(&root);
    store.start_writer(|_| {}).expect("started");
    store.snapshot(&recovered.run);
    store.finish().expect("written");
    drop(store);
    let journal = root.run(&id()).journal();
    let text = std::fs::read_to_string(&journal).expect("read");
    let two: Vec<&str> = text.lines().take(2).collect();
    lose_note(&root);
    std::fs::write(&journal, two.join("\n") + "\n").expect("written");
    assert!(
        message(&root)
            .contains("record 3 is damaged: it is missing, and the snapshot is at record 4")
    );
}

#[test]
fn missing_run_or_empty_journal_is_reported() {
    let (_place, root) = stored(1);
    let other = RunId::parse("other").expect("an id");
    let message = LockedRun::open(&root, &other).expect_err("none").to_string();
    assert!(message.contains("no run other in"), "{message}");
    std::fs::write(root.run(&id()).journal(), "").expect("written");
    assert!(
        LockedRun::open(&root, &id())
            .expect_err("empty")
            .to_string()
            .contains("holds no record of the run")
    );
}

#[test]
fn failed_run_creation_leaves_nothing_behind() {
    let place = tempfile::tempdir().expect("a directory");
    let root = RunsRoot::new(place.path());
    // A link that leads nowhere stands in the way; it is met only at the last moment.
    let in_the_way = root.run(&id());
    std::fs::create_dir_all(root.runs()).expect("made");
    std::os::unix::fs::symlink("nowhere", in_the_way.path()).expect("linked");
    let message =
        LockedRun::create(&root, &first(), NewRun::default()).expect_err("in the way").to_string();
    assert!(message.contains("cannot make the directory"), "{message}");
    let left: Vec<_> = std::fs::read_dir(root.runs()).expect("read").collect();
    assert_eq!(left.len(), 1, "only what was in the way: {left:?}");
}

#[test]
fn only_the_default_directory_gets_a_gitignore() {
    let place = tempfile::tempdir().expect("a directory");
    for (name, hidden) in [(".raymond", true), ("mine", false)] {
        let root = RunsRoot::new(place.path().join(name));
        LockedRun::create(&root, &first(), NewRun::default()).expect("created");
        let ignored = root.path().join(".gitignore");
        assert_eq!(std::fs::read(&ignored).ok(), hidden.then(|| b"*\n".to_vec()), "{name}");
        files::hide(root.path()).expect("it is hidden already");
        std::fs::remove_dir_all(root.runs()).expect("removed");
        if hidden {
            std::fs::write(&ignored, "debug\n").expect("written");
        }
        LockedRun::create(&root, &first(), NewRun::default()).expect("created");
        assert_eq!(std::fs::read(&ignored).ok(), hidden.then(|| b"debug\n".to_vec()), "{name}");
    }
}

/// Returns the state of the run and the warnings, or the error in it.
fn read(root: &RunsRoot) -> Result<(Run, Vec<String>), Error> {
    crate::journal::replay(&root.run(&id())).map(|replayed| (replayed.run, replayed.warnings))
}

#[test]
fn bit_flip_in_snapshot_is_detected_and_state_rebuilt() {
    let (_place, root) = stored(6);
    let (store, recovered) = opened(&root);
    store.save_last_snapshot(&recovered.run).expect("a snapshot");
    drop(store);
    let path = root.run(&id()).state();
    let good = std::fs::read(&path).expect("a snapshot");
    assert_eq!(read(&root).expect("whole"), (recovered.run.clone(), Vec::new()));
    for turn in 0..200 {
        let bit = turn * 8191 % (good.len() * 8);
        let mut flipped = good.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        std::fs::write(&path, &flipped).expect("written");
        let (run, warnings) = read(&root).expect("the journal is whole");
        assert_eq!(run, recovered.run, "bit {bit}");
        assert!(warnings[0].contains("rebuilt from the journal"), "bit {bit}: {warnings:?}");
    }
}

#[test]
fn journal_cut_inside_acknowledged_part_is_an_error() {
    let (_place, root) = stored(6);
    let path = root.run(&id()).journal();
    let whole = std::fs::read(&path).expect("a journal");
    let mut torn = whole.clone();
    torn.extend(b"{\"seq\":7,\"at\"");
    std::fs::write(&path, &torn).expect("written");
    assert_eq!(read(&root).expect("nobody was told of the seventh").0.seq, 6);
    for end in (1..whole.len()).step_by(7) {
        std::fs::write(&path, &whole[..end]).expect("written");
        assert!(
            matches!(read(&root), Err(Error::Cut { .. } | Error::Empty { .. })),
            "cut at {end}"
        );
        let mut overwritten = whole[..end].to_vec();
        overwritten.resize(whole.len() + 9, b'x');
        std::fs::write(&path, &overwritten).expect("written");
        assert!(read(&root).is_err(), "overwritten from {end}");
    }
}

#[test]
fn run_whose_name_was_taken_meanwhile_saves_no_seal() {
    let place = tempfile::tempdir().expect("a directory");
    let root = RunsRoot::new(place.path());
    let is_sealed = std::cell::Cell::new(false);
    let made = make_run(
        &root,
        &id(),
        |draft, dir| {
            files::make_draft_dir(draft.path())?;
            // Another process is faster.
            std::fs::create_dir(dir.path()).expect("made");
            Ok(())
        },
        |_| {
            is_sealed.set(true);
            Ok(())
        },
    );
    assert!(matches!(made, Err(Error::Exists { .. })) && !is_sealed.get());
    std::fs::remove_dir(root.run(&id()).path()).expect("removed");
    let held = lock::names_of_runs(&root).expect("held");
    let other = std::fs::File::open(root.runs()).expect("opened");
    assert!(other.try_lock().is_err(), "no other run gets or loses a name now");
    drop(held);
    assert!(other.try_lock().is_ok());
}
