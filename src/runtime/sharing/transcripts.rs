//! The texts of turns that ran at other hosts: the hosts are asked for them.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use uuid::Uuid;

use crate::domain::host::{HostName, HostStanding};
use crate::domain::host_work::{HostAnswer, HostWork, WIRE_VERSION};
use crate::domain::id::RunId;
use crate::domain::turn::TurnId;
use crate::domain::turn::TurnTexts;
use crate::engine::shared_log::{HostRequest, MailReceiver, QUESTION, RegisteredHost};
use crate::engine::{Engine, EngineError};
use crate::runtime::sharing::publish::fetch_mail;

/// The most bytes that are asked for at once.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// The longest time to wait for a host.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(15);

/// The longest wait between two looks for an answer.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);

/// A turn, and the host where it ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnPlace {
    /// The agent, its step, and the turn within that step.
    pub turn: TurnId,
    /// The host that ran the turn, and is asked for its texts.
    pub host: HostName,
}

/// Asks hosts for the texts of turns of a run. Of a turn whose host does not give them, it is said why.
///
/// # Errors
/// [`EngineError`] if the engine cannot be asked.
pub fn transcripts(
    engine: &dyn Engine,
    run: &RunId,
    turns: Vec<TurnPlace>,
) -> Result<BTreeMap<TurnId, Result<TurnTexts, String>>, EngineError> {
    let mut by_host: BTreeMap<HostName, Vec<TurnId>> = BTreeMap::new();
    for TurnPlace { turn, host } in turns {
        by_host.entry(host).or_default().push(turn);
    }
    let mut found = BTreeMap::new();
    if by_host.is_empty() {
        return Ok(found);
    }
    let hosts = engine.hosts()?;
    for (host, turns) in by_host {
        let known = hosts.iter().find(|known| known.host == host);
        let Some(known) = known else {
            let why = "is not known to the engine any more";
            found.extend(turns.into_iter().map(|turn| (turn, missing(&host, why))));
            continue;
        };
        let mut rest = turns.into_iter();
        while rest.len() > 0 {
            let asked = match obstacle(known) {
                Some(why) => Err(why),
                None => ask(engine, run, known, rest.as_slice())?,
            };
            match asked {
                Ok(texts) => {
                    let turns: Vec<TurnId> = rest.by_ref().take(texts.len()).collect();
                    found.extend(turns.into_iter().zip(texts.into_iter().map(Ok)));
                }
                Err(why) => found.extend(rest.by_ref().map(|turn| (turn, missing(&host, &why)))),
            }
        }
    }
    Ok(found)
}

fn missing(host: &HostName, why: &str) -> Result<TurnTexts, String> {
    Err(format!("its texts are on the host {host}, which {why}"))
}

/// Returns why a host is not asked.
fn obstacle(host: &RegisteredHost) -> Option<String> {
    if host.standing == HostStanding::Lost {
        return Some("was declared lost".to_owned());
    }
    if host.report.wire != WIRE_VERSION {
        return Some(format!("runs raymond {}, which is asked otherwise", host.report.raymond));
    }
    let silent = host.silent_for;
    (!host.is_alive()).then(|| format!("has been silent for {} seconds", silent.as_secs()))
}

/// Asks a host for the texts of turns; the inner error says why it did not give them.
fn ask(
    engine: &dyn Engine,
    run: &RunId,
    host: &RegisteredHost,
    turns: &[TurnId],
) -> Result<Result<Vec<TurnTexts>, String>, EngineError> {
    let work = HostWork::Transcript { turns: turns.to_vec(), max_bytes: MAX_BYTES };
    let body = match serde_json::to_string(&work) {
        Ok(body) => body,
        Err(error) => return Ok(Err(format!("cannot be asked: {error}"))),
    };
    let key = format!("{QUESTION}{run}/{}", Uuid::new_v4().simple());
    let question = HostRequest {
        key: key.clone(),
        run: run.clone(),
        host: host.host.clone(),
        host_epoch: host.epoch,
        body,
    };
    engine.ask(&question)?;
    let replied = await_reply(engine, run, &key);
    engine.end_question(&key)?;
    let Some(body) = replied? else {
        let waited = ANSWER_TIMEOUT.as_secs();
        return Ok(Err(format!("has not answered within {waited} seconds")));
    };
    read(engine, &body)
}

fn await_reply(engine: &dyn Engine, run: &RunId, key: &str) -> Result<Option<String>, EngineError> {
    let start = Instant::now();
    loop {
        let replied = engine.question_reply(key)?;
        if replied.is_some() || start.elapsed() > ANSWER_TIMEOUT {
            return Ok(replied);
        }
        engine.wait_for_mail(MailReceiver::Run(run), LOOK_INTERVAL)?;
    }
}

fn read(engine: &dyn Engine, body: &str) -> Result<Result<Vec<TurnTexts>, String>, EngineError> {
    let mut answer = serde_json::from_str::<HostAnswer>(body);
    if let Ok(HostAnswer::Stored { mail }) = &answer {
        match fetch_mail(engine, mail)? {
            Ok(body) => answer = serde_json::from_str(&body),
            Err(why) => return Ok(Err(format!("gave an answer that cannot be fetched: {why}"))),
        }
    }
    Ok(match answer {
        Ok(HostAnswer::Transcript { found }) if !found.is_empty() => Ok(found),
        Ok(HostAnswer::Refused { why }) => Err(format!("does not give them: {why}")),
        Ok(_) => Err("gave an answer of another kind".to_owned()),
        Err(error) => Err(format!("gave an answer that cannot be read: {error}")),
    })
}
