//! Attacks: what an agent, the author of a workflow, or whoever can write into a directory tries, and what
//! comes of it. The names of the tests are the list.

mod inbox;
mod terms;
mod trust;
mod workflow;
