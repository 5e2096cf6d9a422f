//! Files and the configuration.

use serde_json::json;

use super::*;

#[tokio::test]
async fn read_operations_return_existing_files_and_config() {
    let ground = Ground::new();
    ground.put("data/config.yaml", "sources: [{id: a}]\n");
    ground.put("docs/a.md", "text");
    for (operation, expected) in [
        (json!({"type": "config_exists"}), json!(true)),
        (json!({"type": "index_exists"}), json!(false)),
        (json!({"type": "index_is_placeholder"}), json!(false)),
        (json!({"type": "file_exists", "path": "docs/a.md"}), json!(true)),
        (json!({"type": "file_exists", "path": "docs"}), json!(false)),
        (json!({"type": "directory_exists", "path": "docs"}), json!(true)),
        (json!({"type": "source_exists", "id": "a"}), json!(true)),
        (json!({"type": "source_cloned", "id": "a"}), json!(false)),
        (json!({"type": "read_config"}), json!({"sources": [{"id": "a"}]})),
        (json!({"type": "read_file", "path": "docs/a.md"}), json!("text")),
        (json!({"type": "glob_files", "pattern": "**/*.md"}), json!(["docs/a.md"])),
        (json!({"type": "glob_count", "pattern": "**/*.*"}), json!(2)),
    ] {
        assert_eq!(ground.value(operation.clone()).await, expected, "{operation}");
    }
    let large = "x".repeat(100_000);
    ground.put("large", &large);
    assert_eq!(ground.value(json!({"type": "read_file", "path": "large"})).await, json!(large));
}

#[tokio::test]
async fn operations_outside_workspace_are_refused() {
    let ground = Ground::new();
    std::fs::write(ground.base().join("secret"), "x").expect("written");
    for operation in [
        json!({"type": "file_exists", "path": "../secret"}),
        json!({"type": "directory_exists", "path": ".."}),
        json!({"type": "read_file", "path": "../secret"}),
        json!({"type": "glob_files", "pattern": "../*"}),
        json!({"type": "write_file", "path": "../secret", "content": "y"}),
        json!({"type": "append_to_file", "path": "../secret", "content": "y"}),
        json!({"type": "cache_web_content", "dest": "../secret", "content": "y"}),
        json!({"type": "create_directory", "path": "../new"}),
        json!({"type": "delete_file", "path": "../secret"}),
        json!({"type": "get_sha", "repo_path": ".."}),
        json!({"type": "git_pull", "repo_path": ".."}),
        json!({"type": "clone_repo", "url": "https://127.0.0.1:9/x", "dest": "../new"}),
    ] {
        let why = ground.why(operation.clone()).await;
        assert!(why.contains("leads out of the workspace"), "{operation}: {why}");
    }
    assert_eq!(std::fs::read_to_string(ground.base().join("secret")).expect("there"), "x");
}

#[tokio::test]
async fn draft_of_another_run_with_same_step_is_untouched() {
    let ground = Ground::new();
    let other = ground.root().join(".raymond-main-2-0.draft");
    std::fs::write(&other, "of the step main-2-0 elsewhere").expect("written");
    let write = json!({"type": "write_file", "path": "a", "content": "mine"});
    let performed = ground.perform("main-2-0", write, false).await;
    assert!(performed.is_ok(), "{performed:?}");
    assert_eq!(std::fs::read_to_string(ground.root().join("a")).expect("written"), "mine");
    assert!(other.exists(), "nobody else's draft is taken away");
}

#[tokio::test]
async fn repeated_converging_operations_give_same_result() {
    let mut ground = Ground::new();
    ground.put("data/config.yaml", "sources: [{id: a}] # ours\n");
    ground.put("old", "x");
    let steps = [
        json!({"type": "write_file", "path": "a/b", "content": "new"}),
        json!({"type": "create_directory", "path": "c/d"}),
        json!({"type": "delete_file", "path": "old"}),
        json!({"type": "cache_web_content", "content": "page", "dest": "e"}),
        json!({"type": "write_config_entry", "path": "name", "value": "us"}),
        json!({"type": "update_source", "id": "a", "fields": {"url": "u"}}),
        json!({"type": "add_source", "spec": {"id": "b", "type": "web"}}),
    ];
    for again in [false, true] {
        for (number, operation) in steps.iter().enumerate() {
            let stem = format!("main.{number}");
            let performed = ground.perform(&stem, operation.clone(), again).await;
            assert!(performed.is_ok(), "{operation}: {performed:?}");
        }
        ground.restart();
    }
    assert_eq!((ground.text("a/b"), ground.text("e")), ("new".to_owned(), "page".to_owned()));
    let config =
        json!({"name": "us", "sources": [{"id": "a", "url": "u"}, {"id": "b", "type": "web"}]});
    assert_eq!(ground.value(json!({"type": "read_config"})).await, config);
    assert!(ground.root().join("c/d").is_dir() && !ground.root().join("old").exists());
}

#[tokio::test]
async fn repeated_append_step_adds_its_line_once() {
    let mut ground = Ground::new();
    let add = json!({"type": "append_to_file", "path": "log/lines", "content": "one\n"});
    for again in [false, true, true] {
        let performed = ground.perform("main.1", add.clone(), again).await;
        assert_eq!(performed, Ok(Value::Null));
        ground.restart();
    }
    let _ = ground.perform("main.2", add, true).await;
    assert_eq!(ground.text("log/lines"), "one\none\n");
}

#[tokio::test]
async fn concurrent_config_edits_are_all_applied() {
    let ground = Ground::new();
    ground.put("data/config.yaml", "sources: []\n");
    let add = |id: usize| {
        let operation = json!({"type": "add_source", "spec": {"id": format!("s{id}")}});
        let operation: Operation = serde_json::from_value(operation).expect("an operation");
        let ground = &ground;
        async move { ground.world.perform(&format!("main.{id}"), &operation, false).await }
    };
    let (a, b, c, d) = tokio::join!(add(0), add(1), add(2), add(3));
    for performed in [a, b, c, d] {
        assert_eq!(performed, Ok(Value::Null));
    }
    let config = ground.value(json!({"type": "read_config"})).await;
    assert_eq!(config["sources"].as_array().map(Vec::len), Some(4));
}

#[tokio::test]
async fn stopped_world_performs_no_operation() {
    let ground = Ground::new();
    ground.world.stop();
    for operation in [
        json!({"type": "config_exists"}),
        json!({"type": "write_file", "path": "a", "content": ""}),
        json!({"type": "bash_exec", "command": "true"}),
    ] {
        assert_eq!(
            ground.perform("main.1", operation, false).await,
            Err(OperationError::Interrupted)
        );
    }
    assert!(!ground.root().join("a").exists());
}
