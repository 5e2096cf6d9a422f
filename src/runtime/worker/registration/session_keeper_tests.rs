//! Sessions that are kept, and brought to another host.

use super::*;
use crate::domain::id::RunId;
use crate::engine::EngineError;
use crate::engine::connect::SharedCommand;
use crate::engine::shared_log::RunLease;

/// An engine that keeps contents in memory, until it has no room.
#[derive(Default)]
struct MemorySpace {
    contents: Mutex<HashMap<String, Vec<u8>>>,
    room: Option<usize>,
}

impl MemorySpace {
    fn bytes(&self) -> usize {
        self.contents.lock().expect("not poisoned").values().map(Vec::len).sum()
    }
}

impl RunSpace for MemorySpace {
    fn leave_command(&self, _: &RunId, _: &SharedCommand) -> Result<(), EngineError> {
        Ok(())
    }

    fn commands(&self, _: &RunId) -> Result<Vec<SharedCommand>, EngineError> {
        Ok(Vec::new())
    }

    fn remove_command(&self, _: &RunLease, _: &str) -> Result<(), EngineError> {
        Ok(())
    }

    fn put_blob(&self, sha256: &str, content: &[u8]) -> Result<(), EngineError> {
        if self.room.is_some_and(|room| self.bytes() + content.len() > room) {
            let (engine, why) = ("memory".to_owned(), "it is full".to_owned());
            return Err(EngineError::Refused { engine, why });
        }
        self.contents.lock().expect("not poisoned").insert(sha256.to_owned(), content.to_owned());
        Ok(())
    }

    fn blob(&self, sha256: &str, _most: u64) -> Result<Option<Vec<u8>>, EngineError> {
        Ok(self.contents.lock().expect("not poisoned").get(sha256).cloned())
    }
}

/// A host: its keeper, its places, and the folder that ends with it.
struct TestHost {
    keeper: SessionKeeper,
    places: ClaudePlaces,
    _folder: tempfile::TempDir,
}

fn id() -> SessionId {
    SessionId::new("5e55")
}

impl TestHost {
    fn new(space: &Arc<MemorySpace>) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let places =
            ClaudePlaces { config_dir: folder.path().join("c"), cwd: folder.path().join("w") };
        Self { keeper: SessionKeeper::new(Arc::clone(space) as _), places, _folder: folder }
    }

    fn path(&self) -> PathBuf {
        session_path(&self.places.config_dir, &self.places.cwd, &id()).expect("a path")
    }

    fn write(&self, content: &str) {
        std::fs::create_dir_all(self.path().parent().expect("a folder")).expect("made");
        std::fs::write(self.path(), content).expect("written");
    }

    fn read(&self) -> String {
        std::fs::read_to_string(self.path()).expect("a session")
    }

    #[track_caller]
    fn keep(&self, before: Option<&KeptSession>) -> KeptSession {
        let before = before.map(|kept| &*kept.manifest);
        self.keeper.keep(&self.places, &id(), before).expect("kept")
    }

    fn bring(&self, kept: &KeptSession) -> Result<(), String> {
        self.keeper.bring(&self.places, &id(), &kept.manifest)
    }
}

#[test]
fn session_goes_on_at_another_host_and_only_new_bytes_are_put() {
    let space = Arc::<MemorySpace>::default();
    let (here, other) = (TestHost::new(&space), TestHost::new(&space));
    let long = "x".repeat(100_000);
    here.write(&long);
    let first = here.keep(None);
    let put = space.bytes();
    here.write(&format!("{long}more\n"));
    let second = here.keep(Some(&first));
    assert!(space.bytes() < put + 1_000, "{} bytes after {put}", space.bytes());
    assert_eq!(here.keep(Some(&second)), second, "nothing is new");

    other.bring(&second).expect("brought");
    assert_eq!(other.read(), format!("{long}more\n"));
    let put = space.bytes();
    other.write(&format!("{long}more\nand more\n"));
    let third = other.keep(Some(&second));
    assert!(space.bytes() < put + 1_000);
    let last = TestHost::new(&space);
    last.bring(&third).expect("brought");
    assert_eq!(last.read(), other.read());
    here.bring(&third).expect("brought");
    assert_eq!(here.read(), other.read(), "what it had before is not enough");
}

#[test]
fn changed_session_is_put_whole() {
    let space = Arc::<MemorySpace>::default();
    let (here, other) = (TestHost::new(&space), TestHost::new(&space));
    here.write("a first turn\n");
    let first = here.keep(None);
    here.write("b other one\nsecond\n");
    let second = here.keep(Some(&first));
    other.bring(&second).expect("brought");
    assert_eq!(other.read(), "b other one\nsecond\n");
}

#[test]
fn session_with_more_stays_and_another_session_is_set_aside() {
    let space = Arc::<MemorySpace>::default();
    let here = TestHost::new(&space);
    here.write("one\n");
    let kept = here.keep(None);
    let more = TestHost::new(&space);
    more.write("one\ntwo\n");
    more.bring(&kept).expect("it is there");
    assert_eq!(more.read(), "one\ntwo\n");
    let other = TestHost::new(&space);
    other.write("cut off");
    other.bring(&kept).expect("brought");
    assert_eq!(other.read(), "one\n");
    let aside = other.path().with_extension("jsonl.1.before");
    assert_eq!(std::fs::read_to_string(aside).expect("it is kept"), "cut off");
}

#[test]
fn session_that_cannot_be_kept_says_why() {
    let full = Arc::new(MemorySpace { room: Some(10), ..MemorySpace::default() });
    let host = TestHost::new(&full);
    let why = |host: &TestHost| host.keeper.keep(&host.places, &id(), None).expect_err("not kept");
    assert!(why(&host).contains("has left no file of it"), "{}", why(&host));
    host.write("a longer text than there is room for");
    assert!(why(&host).ends_with("it is full"), "{}", why(&host));
    let large = TestHost::new(&Arc::default());
    large.write("");
    let file = File::options().write(true).open(large.path()).expect("opened");
    file.set_len(MAX_KEPT_SESSION_BYTES + 1).expect("made long");
    assert!(why(&large).ends_with("at most 64 MiB are kept"), "{}", why(&large));
}

#[test]
fn contents_that_are_not_those_of_the_session_are_refused() {
    let space = Arc::<MemorySpace>::default();
    let here = TestHost::new(&space);
    here.write("one\n");
    let kept = here.keep(None);
    let other = TestHost::new(&space);
    let wrong = KeptSession { manifest: checksum("one\n").into(), ..kept.clone() };
    assert!(other.bring(&wrong).expect_err("no manifest").contains("is not a manifest of"));
    let name = checksum("one\n").replace("sha256:", "");
    space.contents.lock().expect("not poisoned").insert(name.clone(), b"two\n".to_vec());
    assert!(other.bring(&kept).expect_err("changed").contains("holds another content"));
    space.contents.lock().expect("not poisoned").remove(&name);
    assert!(other.bring(&kept).expect_err("gone").contains("has no content"));
    assert!(!other.path().exists(), "no part of it is left");
}
