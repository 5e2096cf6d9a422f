//! The languages: text in, transitions out, without touching the world.
//!
//! A workflow's files are seen through a [`Source`](source::WorkflowSource). All languages are behind
//! one function, [`resume`](resume::resume): from a position and an input to what follows.

#[macro_use]
pub mod keys;

pub mod advance_fuel;
pub mod cases;
pub mod cassette;
pub mod coverage;
pub mod diagnostic;
pub mod drawing;
pub mod expression;
pub mod flow;
pub mod fork_plan;
pub mod graph;
pub mod hint;
pub mod import;
pub mod manifest;
pub mod output;
pub mod plugins;
pub mod privileges;
pub mod program;
pub mod prompt;
pub mod replies;
pub mod resume;
pub mod schema;
pub mod scrub;
pub mod shell_words;
pub mod source;
pub mod tag;
pub mod template;
pub mod text_pattern;
pub mod trusted_form;
pub mod turn_options;
pub mod yaml;
