//! The limits of operations: the addresses that may be fetched, the locks of paths, and the protected paths.

use core::net::{IpAddr, SocketAddr};
use std::collections::{BTreeSet, HashMap};
use std::error::Error;
use std::fmt;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use raymond_model::allowed_address::{AllowedAddress, special_address};
use raymond_model::graph_types::FileAccess;
use raymond_model::operation::Operation;
use raymond_model::privilege::obeyed_name;
use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::sync::{Mutex as Turn, OwnedMutexGuard};

use crate::glob::resolve;

// Decides which addresses graphs may fetch pages from: the public internet, and addresses that the person has allowed.
//
// An address in a URL is checked before anything is sent. A name is checked by its addresses when it is looked up for
// the connection, so the connection uses the checked address. A proxy looks up names by itself. So the addresses that
// this machine finds for a name are checked before the request goes to the proxy.

/// The addresses of a name, or an error.
type AddressLookup = Pin<Box<dyn Future<Output = std::io::Result<Vec<IpAddr>>> + Send>>;

/// The function that looks names up.
#[derive(Clone)]
pub struct NameLookup(Arc<dyn Fn(String) -> AddressLookup + Send + Sync>);

impl NameLookup {
    /// Looks names up with `look`.
    pub fn by(look: impl Fn(String) -> AddressLookup + Send + Sync + 'static) -> Self {
        Self(Arc::new(look))
    }
}

impl Default for NameLookup {
    /// Looks names up with the system.
    fn default() -> Self {
        Self::by(|name| {
            Box::pin(async move {
                let found = tokio::net::lookup_host((name, 0)).await?;
                Ok(found.map(|address| address.ip()).collect())
            })
        })
    }
}

impl fmt::Debug for NameLookup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NameLookup")
    }
}

/// An address that is not fetched from. Its message says how to allow it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RefusedAddress {
    /// The requested host.
    host: String,
    /// Its address, if it is a name.
    address: IpAddr,
    kind: &'static str,
    /// The refused port, if the host is allowed at another port.
    port: Option<u16>,
}

impl fmt::Display for RefusedAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, address, kind, port } = self;
        let allow = port.map_or(host.clone(), |port| format!("{host}:{port}"));
        if *host == address.to_string() {
            write!(f, "{address} is {kind}")?;
        } else {
            write!(f, "{host} leads to {address}, {kind}")?;
        }
        write!(
            f,
            ", and only public addresses may be fetched; to allow it: --allow-address {allow}"
        )
    }
}

impl Error for RefusedAddress {}

/// The addresses that are let through.
#[derive(Debug, Clone)]
pub(super) struct AddressGate {
    allowed: Arc<[AllowedAddress]>,
    lookup: NameLookup,
    /// The hosts of the environment's proxies: they are the person's own, so they may have any address.
    proxies: Arc<BTreeSet<String>>,
}

impl AddressGate {
    /// Lets the public internet through, and the allowed addresses.
    pub(super) fn new(
        allowed: &[AllowedAddress],
        lookup: NameLookup,
        proxies: BTreeSet<String>,
    ) -> Self {
        Self { allowed: allowed.into(), lookup, proxies: Arc::new(proxies) }
    }

    /// Judges a URL before it is requested. With `ahead` names are looked up.
    pub(super) async fn check(&self, url: &Url, ahead: bool) -> Result<(), RefusedAddress> {
        let Some(host) = url.host_str() else { return Ok(()) };
        let port = url.port_or_known_default();
        let unbracketed = host.trim_start_matches('[').trim_end_matches(']');
        if let Ok(address) = unbracketed.parse::<IpAddr>() {
            return self.judge(unbracketed, address, port);
        }
        let named: Vec<_> = self.allowed.iter().filter(|allowed| allowed.names(host)).collect();
        if named.iter().any(|allowed| allowed.is_for_port(port)) {
            return Ok(());
        }
        if !named.is_empty() || ahead || self.proxies.contains(host) {
            // Only the proxy may know a name that is not found here.
            for address in (self.lookup.0)(host.to_owned()).await.unwrap_or_default() {
                let judged = self.judge(host, address, port);
                judged.map_err(|refused| RefusedAddress {
                    port: port.filter(|_| !named.is_empty()),
                    ..refused
                })?;
            }
        }
        Ok(())
    }

    fn judge(&self, host: &str, address: IpAddr, port: Option<u16>) -> Result<(), RefusedAddress> {
        let Some(kind) = special_address(address) else { return Ok(()) };
        if self.allowed.iter().any(|allowed| allowed.covers(address, port)) {
            return Ok(());
        }
        let address = address.to_canonical();
        let is_address = host.parse::<IpAddr>().is_ok();
        let host = if is_address { address.to_string() } else { host.to_owned() };
        Err(RefusedAddress { host, address, kind, port: None })
    }

    /// Looks a name up for a connection; returns only addresses that may be connected to.
    async fn addresses(self, host: String) -> Result<Addrs, Box<dyn Error + Send + Sync>> {
        let found = (self.lookup.0)(host.clone()).await?;
        let is_allowed =
            self.proxies.contains(&host) || self.allowed.iter().any(|allowed| allowed.names(&host));
        let (mut addresses, mut refused) = (Vec::new(), None);
        for address in found {
            match self.judge(&host, address, None) {
                Err(why) if !is_allowed => refused = Some(why),
                _ => addresses.push(SocketAddr::new(address, 0)),
            }
        }
        match refused {
            Some(refused) if addresses.is_empty() => Err(refused.into()),
            _ => Ok(Box::new(addresses.into_iter())),
        }
    }
}

impl Resolve for AddressGate {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(self.clone().addresses(name.as_str().to_owned()))
    }
}

/// The locks of the paths in use: two agents of a run must not edit one file, or move one repository, at the same time.
#[derive(Debug, Default)]
pub(super) struct PathLocks(Mutex<HashMap<PathBuf, Weak<Turn<()>>>>);

impl PathLocks {
    /// Waits until no other operation of this world holds the lock of a path.
    pub(super) async fn of(&self, path: &Path) -> OwnedMutexGuard<()> {
        let turn = {
            let mut places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            places.retain(|_, turn| turn.strong_count() > 0);
            let known = places.get(path).and_then(Weak::upgrade);
            known.unwrap_or_else(|| {
                let turn = Arc::new(Turn::new(()));
                places.insert(path.to_owned(), Arc::downgrade(&turn));
                turn
            })
        };
        turn.lock_owned().await
    }
}

// Protects what no graph may change: the directories of runs and worktrees, and files that programs obey.
//
// A journal that a workflow could write into would prove nothing. A worktree is the working directory of one agent,
// and other agents must not change it. Files that programs obey need trust in the workflow.

/// The protected directories below raymond's own, and their purposes.
const PROTECTED_DIRECTORIES: [(&str, &str); 3] = [
    ("runs", "its runs in"),
    ("worktrees", "the worktrees of agents in"),
    ("dataspace", "the facts of runs in"),
];

/// Refuses an operation that would change something in the protected directories of `dir`, or, if the workflow is not
/// `trusted`, a file that programs obey.
pub(super) fn check_protected_paths(
    root: &Path,
    dir: &Path,
    operation: &Operation,
    is_trusted: bool,
) -> Result<(), String> {
    let Some((given, changed)) = operation.changed_path() else { return Ok(()) };
    let wanted = changed.access;
    let path = resolve(root, given, wanted)?;
    let is_harmless = changed.harmless.is_some_and(|end| path.ends_with(end));
    let below = path.strip_prefix(root).unwrap_or(&path);
    if let Some(name) = obeyed_name(below).filter(|_| !is_trusted && !is_harmless) {
        return Err(format!(
            "the path `{given}` has the name {}, and programs obey hidden files and those with such names: write elsewhere, or trust the workflow's folder with --trust",
            name.display()
        ));
    }
    for (name, what) in PROTECTED_DIRECTORIES {
        let kept = dir.join(name);
        let kept = kept.canonicalize().unwrap_or(kept);
        let inside = path.starts_with(&kept) && !root.starts_with(&kept);
        if inside || (wanted != FileAccess::Read && kept.starts_with(&path)) {
            return Err(format!(
                "the path `{given}` is in {}, which raymond keeps {what}: write elsewhere",
                kept.display()
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod protected_paths_tests {
    use serde_json::json;

    use super::*;

    fn write(path: &str) -> Operation {
        Operation::WriteFile { path: path.to_owned(), content: String::new() }
    }

    #[test]
    fn write_into_runs_dir_is_refused() {
        let kept = tempfile::tempdir().expect("a directory");
        let root = kept.path().canonicalize().expect("it is there");
        let mine = root.join("mine");
        std::fs::create_dir_all(mine.join("runs/z")).expect("made");
        let write = |path: &str| check_protected_paths(&root, &mine, &write(path), false);
        let refused = write("mine/runs/z/journal.jsonl").expect_err("refused");
        assert!(refused.ends_with("which raymond keeps its runs in: write elsewhere"), "{refused}");
        assert_eq!(write("minerals/x"), Ok(()));
        let delete = Operation::DeleteFile { path: "mine/runs/z/state.json".into() };
        assert!(check_protected_paths(&root, &mine, &delete, false).is_err());
        assert_eq!(
            check_protected_paths(
                &root,
                &mine,
                &Operation::FileExists { path: "mine/runs".into() },
                false
            ),
            Ok(())
        );
    }

    #[test]
    fn files_that_programs_obey_need_trust_also_behind_a_link() {
        let kept = tempfile::tempdir().expect("a directory");
        let root = kept.path().canonicalize().expect("it is there");
        std::fs::create_dir(root.join(".github")).expect("made");
        std::os::unix::fs::symlink(".github", root.join("ci")).expect("linked");
        let check = |path: &str, is_trusted| {
            check_protected_paths(&root, &root.join("mine"), &write(path), is_trusted)
        };
        for path in [".vimrc", "ci/x.yml", "a/../Makefile", "web/.env", "CLAUDE.md"] {
            let why = check(path, false).expect_err("refused");
            assert!(why.contains("programs obey") && why.contains("--trust"), "{why}");
            assert_eq!(check(path, true), Ok(()), "{path}");
        }
        assert!(check(".git/config", true).is_err(), "only a command may");
        assert_eq!(check("notes/a.md", false), Ok(()));
        let list = |path: &str| {
            let plugin = json!({
                "type": "update_marketplace_json", "marketplace_path": path,
                "plugin_name": "a", "plugin_path": "./a",
            });
            let operation = serde_json::from_value(plugin).expect("an operation");
            check_protected_paths(&root, &root.join("mine"), &operation, false)
        };
        assert_eq!(list(".claude-plugin/marketplace.json"), Ok(()));
        assert!(list(".vimrc").is_err(), "only that list needs no trust");
    }

    #[test]
    fn worktree_is_writable_only_by_its_agent() {
        let kept = tempfile::tempdir().expect("a directory");
        let root = kept.path().canonicalize().expect("it is there");
        let mine = root.join("mine");
        let tree = mine.join("worktrees/z/main.1");
        std::fs::create_dir_all(&tree).expect("made");
        for path in ["mine/worktrees/z/main.1/x", "mine/worktrees/z/main.1.json"] {
            let refused =
                check_protected_paths(&root, &mine, &write(path), false).expect_err("refused");
            assert!(refused.contains("keeps the worktrees of agents in"), "{refused}");
        }
        assert_eq!(check_protected_paths(&tree, &mine, &write("x"), false), Ok(()));
        for path in ["../main.1.json", "../main.2/x"] {
            assert!(
                check_protected_paths(&tree, &mine, &write(path), false).is_err(),
                "{path} was taken"
            );
        }
    }
}
