//! Tests of the pool: the process that is taken, kept or retired, with processes that have ended already.

use super::*;
use crate::transcript::ProcessFiles;
use crate::worker::{ProcessCounts, WorkerProcess};

/// A process that has ended already, in the place of one that waits.
fn worker(pool: &WorkerPool, name: &str) -> Worker {
    let files = ProcessFiles::named(std::path::Path::new("nowhere"), name);
    let worker = Worker::new(WorkerProcess::Gone, files, SessionId::new("s"), 0);
    Worker { slot: pool.free_slot(), ..worker.expect("no stream is no error") }
}

fn agent(number: u32) -> AgentId {
    AgentId::main().child(number)
}

fn session(id: &str, checkpoint: &str) -> Session {
    Session::resumed(SessionId::new(id), Some(MessageId::new(checkpoint)))
}

fn name(worker: Option<Worker>) -> Option<String> {
    worker.map(|worker| worker.files.name.clone())
}

#[test]
fn worker_is_reused_only_at_its_session_position() {
    let pool = WorkerPool::new(4);
    pool.keep(worker(&pool, "a"), &agent(1), &session("s", "m1")).expect("kept");
    assert!(pool.take_for(&session("s", "m0")).is_none(), "another message was the last");
    assert!(pool.take_for(&session("t", "m1")).is_none(), "another session");
    assert!(pool.take_for(&session("s", "m1").branch(SessionId::new("s"))).is_none());
    assert_eq!(name(pool.take_for(&session("s", "m1"))), Some("a".to_owned()));
    assert!(pool.take_for(&session("s", "m1")).is_none(), "it was taken");
}

#[test]
fn unpromised_prestarted_worker_is_taken_before_oldest_worker() {
    let pool = WorkerPool::new(4);
    for (number, name) in (1..).zip(["a", "b"]) {
        pool.keep(worker(&pool, name), &agent(number), &session(name, "m")).expect("kept");
    }
    for name in ["ahead", "promised"] {
        pool.keep_ahead(worker(&pool, name), SessionId::new(name));
    }
    pool.promise(&SessionId::new("promised"));
    assert_eq!((pool.prestarted_count(), pool.offer()), (1, Some(SessionId::new("ahead"))));
    let order: Vec<String> = std::iter::from_fn(|| name(pool.take_oldest())).collect();
    assert_eq!(order, ["ahead", "a", "b", "promised"]);
}

#[test]
fn unwanted_worker_of_agent_is_returned() {
    let pool = WorkerPool::new(4);
    for (number, name) in [(1, "a"), (1, "b"), (2, "c")] {
        pool.keep(worker(&pool, name), &agent(number), &session(name, "m")).expect("kept");
    }
    let gone = pool.take_unwanted(&agent(1), |session| session.as_str() == "b");
    assert_eq!(gone.len(), 1);
    assert_eq!(gone[0].files.name, "a");
    assert_eq!(pool.drain().len(), 2);
}

#[test]
fn only_worker_that_is_taken_for_a_turn_is_at_work() {
    let (pool, counts) = (WorkerPool::new(8), ProcessCounts::default());
    let is_idle = |worker: Worker| worker.life.is_none_or(|life| life.idle.get());
    for (number, name) in (1..).zip(["turn", "oldest", "expired", "unwanted", "drained"]) {
        let worker = Worker { life: Some(counts.add()), ..worker(&pool, name) };
        pool.keep(worker, &agent(number), &session(name, "m")).expect("kept");
    }
    let taken = pool.take_for(&session("turn", "m")).expect("it is there");
    assert!(!is_idle(taken), "it has a turn");
    let retired = [pool.take_oldest(), pool.take_expired(3)].into_iter().flatten();
    let retired = retired.chain(pool.take_unwanted(&agent(4), |_| false)).chain(pool.drain());
    let retired: Vec<_> =
        retired.map(|worker| (worker.files.name.clone(), is_idle(worker))).collect();
    let expected = ["oldest", "expired", "unwanted", "drained"].map(|name| (name.to_owned(), true));
    assert_eq!(retired, expected);
}

#[tokio::test]
async fn slot_request_retires_idle_worker_and_rejects_new_idle_worker() {
    let pool = WorkerPool::new(2);
    let first = worker(&pool, "first");
    pool.keep(worker(&pool, "idle"), &agent(1), &session("s", "m")).expect("kept");
    let (retire, retired) = tokio::sync::oneshot::channel();
    let asked = pool.slot(move |worker| drop(retire.send(worker)));
    tokio::pin!(asked);
    assert!(futures_are_pending(&mut asked).await);
    let worker = retired.await.expect("one is retired");
    assert_eq!(worker.files.name, "idle");
    let kept = pool.keep(first, &agent(2), &session("t", "m"));
    assert!(kept.is_err(), "someone waits for its slot");
    drop(worker);
    assert!(asked.await.is_some());
    drop(kept);
    pool.empty().await;
}

#[tokio::test]
async fn idle_process_is_kept_while_another_that_ends_frees_its_slot() {
    let pool = WorkerPool::new(2);
    let mut ending = worker(&pool, "ending");
    pool.keep(worker(&pool, "idle"), &agent(1), &session("s", "m")).expect("kept");
    ending.note_ending();
    let asked = pool.slot(|_| panic!("the slot of the process that ends is enough"));
    tokio::pin!(asked);
    assert!(futures_are_pending(&mut asked).await);
    let idle = pool.take_for(&session("s", "m")).expect("idle");
    pool.keep(idle, &agent(1), &session("s", "n")).expect("nobody needs its slot");
    drop(ending);
    assert!(asked.await.is_some());
    assert_eq!(pool.idle_agents(), [agent(1)]);
}

async fn futures_are_pending<F: Future>(future: &mut std::pin::Pin<&mut F>) -> bool {
    std::future::poll_fn(|context| {
        std::task::Poll::Ready(future.as_mut().poll(context).is_pending())
    })
    .await
}
