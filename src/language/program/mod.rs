//! Programs of several agents in conversation, as S-expressions: [`read`] makes a [`definition`] of a
//! file's text, or says everything that is wrong with it.

pub mod definition;
pub mod machine;
pub mod read;
