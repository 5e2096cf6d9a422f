//! The tables: made once, checked, and refused in another version.

use std::sync::{Arc, Barrier};
use std::thread;

use raymond::engine::{Engine, EngineError};

use crate::postgres::database::{Database, PASSWORD, connected};
use crate::postgres::server::Server;
use crate::suite::{hosts, leases, log, mail, replies, space};
use crate::support::{LONG, lines, new_run, reply, request, served_host, started_run};

#[test]
fn ten_machines_make_the_tables_at_once() {
    let database = Database::new();
    let start = Barrier::new(10);
    thread::scope(|scope| {
        for _ in 0..10 {
            scope.spawn(|| {
                start.wait();
                let engine = database.engine();
                let lease = engine.create_run(&new_run(&["a"]), "here", LONG).expect("a new run");
                engine.append(&lease, &lines(2, &["b"])).expect("a line");
            });
        }
    });
    assert_eq!(database.engine().runs().expect("runs").len(), 10);
}

#[test]
fn tables_of_another_version_are_refused() {
    let database = Database::new();
    let engine = database.engine();
    let lease = started_run(&*engine);
    database.session().run("UPDATE raymond.version SET version = 7");
    let error = connected(&database.url()).expect_err("another version");
    let EngineError::Version { found, known, .. } = &error else { panic!("{error}") };
    assert_eq!((*found, *known), (7, 3));
    let error = error.to_string();
    assert!(error.contains("version 7") && error.contains("uses version 3"), "{error}");
    database.session().run("UPDATE raymond.version SET version = 3");
    engine.append(&lease, &lines(2, &["b"])).expect("the tables are as they were");
}

#[test]
fn damaged_tables_are_named() {
    let database = Database::new();
    let engine = database.engine();
    let lease = started_run(&*engine);
    let mut session = database.session();
    engine.append(&lease, &lines(2, &["b", "c"])).expect("lines");
    session.run("DELETE FROM raymond.log WHERE seq = 2");
    let error = engine.read(&lease.run, 0, 10).expect_err("a gap");
    assert!(matches!(error, EngineError::Damaged { .. }), "{error}");
    assert!(error.to_string().contains("record 2 is missing"), "{error}");
    session.run("DROP TABLE raymond.log");
    let error = engine.read(&lease.run, 0, 10).expect_err("no table");
    assert!(matches!(error, EngineError::Damaged { .. }), "{error}");
    session.run("DELETE FROM raymond.version");
    let error = connected(&database.url()).expect_err("no version");
    assert!(error.to_string().contains("it has no version"), "{error}");
}

#[test]
fn users_without_rights_learn_what_to_grant() {
    let database = Database::new();
    let refused = |url: &str| {
        let error = connected(url).expect_err("no rights");
        assert!(matches!(error, EngineError::Refused { .. }), "{error}");
        let error = error.to_string();
        assert!(!error.contains(PASSWORD) && !error.contains('\n'), "{error}");
        error
    };
    let error = refused(&database.url_of("nothing"));
    assert!(error.contains("GRANT CREATE ON DATABASE"), "{error}");

    database.engine();
    let error = refused(&database.url_of("nothing"));
    assert!(error.contains("GRANT USAGE ON SCHEMA raymond"), "{error}");

    let mut session = database.session();
    session.run("GRANT USAGE ON SCHEMA raymond TO nothing");
    session.run("GRANT SELECT ON raymond.version TO nothing");
    let engine = connected(&database.url_of("nothing")).expect("it may look");
    let error = engine.create_run(&new_run(&["a"]), "here", LONG).expect_err("it may not write");
    let error = error.to_string();
    let page = include_str!("../../../docs/distributed.md");
    let grants = page.lines().filter(|line| line.starts_with("GRANT ")).map(|line| {
        let line = line.trim_end_matches(';');
        line.replace(" TO ray", " TO …")
    });
    for grant in grants {
        assert!(error.contains(&grant), "{grant} in {error}");
        session.run(&grant.replace('…', "nothing"));
    }
    started_run(&*engine);
}

/// Changes the tables of version 3 into those of version 2.
const INTO_VERSION_2: &str = "DROP FUNCTION raymond.replies; DROP INDEX raymond.request_of_run; \
    ALTER TABLE raymond.request DROP COLUMN answered_in; \
    CREATE INDEX request_of_run ON raymond.request (run, state) WHERE state <> 'forgotten'; \
    CREATE FUNCTION raymond.replies(text, int8, text[], int8) RETURNS SETOF record LANGUAGE sql AS 'SELECT 1'; \
    UPDATE raymond.run SET lease_until = NULL; UPDATE raymond.host SET seen = 'epoch'; \
    UPDATE raymond.version SET version = 2;";

/// Changes the tables of version 2 into those of version 1.
const INTO_VERSION_1: &str = "DROP FUNCTION raymond.append; DROP FUNCTION raymond.send; DROP FUNCTION raymond.requests; \
    DROP FUNCTION raymond.begin_requests; DROP FUNCTION raymond.reply; DROP FUNCTION raymond.replies; \
    DROP FUNCTION raymond.forget; DROP INDEX raymond.request_of_run; \
    CREATE INDEX request_of_run ON raymond.request (run, state); \
    ALTER TABLE raymond.request ADD COLUMN received bool NOT NULL DEFAULT false; \
    ALTER TABLE raymond.request RENAME COLUMN withdrawn_by TO read_by; \
    UPDATE raymond.version SET version = 1;";

#[test]
fn tables_of_earlier_versions_are_changed() {
    for changes in [INTO_VERSION_2.to_owned(), format!("{INTO_VERSION_2}{INTO_VERSION_1}")] {
        let database = Database::new();
        let engine = database.engine();
        let (lease, claim) = (started_run(&*engine), served_host(&*engine));
        engine.send(&lease, &[request(&lease, &claim, "before")]).expect("a request");
        engine.reply(&claim, &[reply(&lease, "before")]).expect("its reply");
        drop(engine);
        database.session().run(&changes);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| database.engine());
            }
        });
        let engine = database.engine();
        engine.append(&lease, &lines(2, &["b"])).expect("a line");
        let replies = engine.replies(&lease, &[], 10).expect("what was answered before");
        assert_eq!(replies, [reply(&lease, "before")]);
        mail::requests_come_once_and_in_order(&*engine, &*database.engine());
    }
}

#[test]
fn rights_of_the_documentation_are_enough() {
    let page = include_str!("../../../docs/distributed.md");
    let mut blocks = page.split("```sql\n").skip(1).filter_map(|rest| rest.split("```").next());
    let grants = blocks.find(|block| block.starts_with("GRANT")).expect("it shows rights");
    let properties: [fn(&dyn Engine, &dyn Engine); 9] = [
        leases::terms_are_replaced,
        leases::an_ended_run_is_listed_as_ended,
        log::a_started_append_is_completed,
        space::a_removed_command_does_not_come_back,
        space::contents_are_kept_by_their_checksums,
        hosts::a_removed_host_is_gone,
        mail::requests_come_once_and_in_order,
        mail::withdrawals_tell_what_was,
        replies::all_requests_of_a_run_are_forgotten,
    ];
    for property in properties {
        let database = Database::new();
        database.engine();
        let mut session = database.session();
        session.run(&grants.replace(" TO ray;", " TO nothing;"));
        let engine = || connected(&database.url_of("nothing")).expect("it may connect");
        property(&*engine(), &*engine());
        for table in ["raymond.log", "raymond.blob"] {
            let may_change =
                format!("SELECT has_table_privilege('nothing', '{table}', 'UPDATE, DELETE')");
            assert_eq!(session.ask(&may_change).as_deref(), Some("f"), "{table}");
        }
    }
}

#[test]
fn a_schema_that_others_made_is_used() {
    let database = Database::new();
    let mut session = database.session();
    session.run("CREATE SCHEMA raymond AUTHORIZATION nothing");
    started_run(&*connected(&database.url_of("nothing")).expect("it needs no more rights"));
}

#[test]
fn a_server_that_may_lose_what_it_acknowledged_is_refused() {
    let database = Database::new();
    // In this database alone: other tests use the role in theirs.
    let role = format!("ALTER ROLE ray IN DATABASE {}", database.name);
    database.session().run(&format!("{role} SET synchronous_commit = off"));
    let refused = connected(&database.url());
    database.session().run(&format!("{role} RESET synchronous_commit"));
    let error = refused.expect_err("it may lose something").to_string();
    assert!(error.contains("synchronous_commit is off"), "{error}");
    assert!(error.contains("ALTER ROLE"), "{error}");
}

#[test]
fn read_only_server_is_named_a_standby() {
    let server = Arc::new(Server::new(""));
    let database = Database::on(server.clone());
    let engine = database.engine();
    let lease = started_run(&*engine);
    server.kill();
    std::fs::write(server.data().join("standby.signal"), "").expect("a signal");
    server.start();
    for error in [
        engine.append(&lease, &lines(2, &["b"])).expect_err("a standby"),
        connected(&database.url()).expect_err("a standby"),
    ] {
        assert!(error.is_passing(), "{error}");
        assert!(error.to_string().contains("target_session_attrs=read-write"), "{error}");
    }
}

#[test]
fn database_that_cannot_store_all_texts_is_refused() {
    let database = Database::new();
    let mut session = database.session_in("postgres");
    let latin = format!("{}_latin", database.name);
    session.run(&format!(
        "CREATE DATABASE {latin} OWNER ray ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
    ));
    let error = connected(&database.url().replace(&database.name, &latin)).expect_err("LATIN1");
    assert!(matches!(error, EngineError::Refused { .. }), "{error}");
    assert!(error.to_string().contains("its encoding is latin1"), "{error}");
}

#[test]
fn values_that_no_column_takes_are_unstorable() {
    let database = Database::new();
    let engine = database.engine();
    let (lease, claim) = (started_run(&*engine), served_host(&*engine));
    let mut sent = request(&lease, &claim, "a");
    sent.body = "a\0b".to_owned();
    let error = engine.send(&lease, &[sent]).expect_err("a zero byte");
    assert!(matches!(error, EngineError::Unstorable { .. }) && !error.is_fixable(), "{error}");
}
