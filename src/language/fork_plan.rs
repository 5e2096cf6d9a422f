//! The plan of a fork: which children it creates, in which groups, and how many there may be.
//!
//! Lists, directories and commits are looked up by the caller, tag by tag.

use std::collections::HashSet;

use super::output::placeholder;
use super::{fork_list, template};
use crate::domain::agent::AgentOptions;
use crate::domain::fork::{ChildSpec, ForkGroup, agent_count};
use crate::domain::id::{Folder, SessionId, StateName};
use crate::domain::transition::{ForkTag, Transition, Variables};

/// The children of a fork, as far as they are planned.
#[derive(Debug)]
pub struct ForkPlan {
    groups: Vec<ForkGroup>,
    max_fan_out: u32,
    /// The state that forks.
    state: StateName,
}

/// The directories of the children of one tag.
#[derive(Debug, Default)]
pub struct ForkDirectories(HashSet<Folder>);

impl ForkPlan {
    /// Returns an empty plan for a state.
    pub fn new(state: StateName, max_fan_out: u32) -> Self {
        Self { groups: Vec::new(), max_fan_out, state }
    }

    /// Returns the file that has the list of a tag, if its text is needed.
    pub fn list_file(forked: &ForkTag) -> Option<&str> {
        forked.each.as_ref().filter(|each| !each.is_inline()).map(|each| each.list.as_str())
    }

    /// Returns the variables of each child of a tag. `listed` is the text of its file, if it has one.
    ///
    /// # Errors
    /// The mistake in the list, or that there would be too many children.
    pub fn entries(
        &self,
        forked: &ForkTag,
        listed: Option<&str>,
    ) -> Result<Vec<Variables>, String> {
        let entries = match &forked.each {
            None => vec![forked.variables.clone()],
            Some(each) => {
                fork_list::entries(each, listed.unwrap_or(&each.list), &forked.variables)?
            }
        };
        let many = agent_count(&self.groups) + entries.len();
        if many > usize::try_from(self.max_fan_out).unwrap_or(usize::MAX) {
            return Err(format!(
                "{many} agents would be forked, but one reply may fork at most {} (max_fan_out, in the frontmatter of {} or in raymond.yaml)",
                self.max_fan_out, self.state
            ));
        }
        Ok(entries)
    }

    /// Checks the lists of a fork, and the number of its children. `read` returns the text of a list's file; `None` if it
    /// cannot be known yet.
    ///
    /// # Errors
    /// The mistake.
    pub fn check(
        mut self,
        fork: &Transition,
        read: &dyn Fn(&str) -> Result<Option<String>, String>,
    ) -> Result<(), String> {
        for forked in fork.forked() {
            let listed = match Self::list_file(&forked) {
                Some(file) => match read(file)? {
                    Some(text) => Some(text),
                    None => continue,
                },
                None => None,
            };
            let children = self.entries(&forked, listed.as_deref())?;
            let child = |variables| ChildSpec { session: SessionId::new(""), cwd: None, variables };
            let children = children.into_iter().map(child).collect();
            self.begin_group(&forked, (AgentOptions::default(), None), children);
        }
        Ok(())
    }

    /// Returns whether the children of a tag begin a group. Consecutive tags with the same target form one.
    pub fn begins_group(&self, forked: &ForkTag) -> bool {
        self.groups
            .last()
            .is_none_or(|last| last.state != forked.target || last.scope != forked.scope)
    }

    /// Adds the children of a tag that begins a group; `base` is the commit of their worktrees.
    pub fn begin_group(
        &mut self,
        forked: &ForkTag,
        (options, base): (AgentOptions, Option<String>),
        agents: Vec<ChildSpec>,
    ) {
        let (state, scope) = (forked.target.clone(), forked.scope.clone());
        self.groups.push(ForkGroup { state, scope, options, base, not_before: None, agents });
    }

    /// Adds the children of a tag that begins no group to the last one.
    pub fn extend_group(&mut self, agents: Vec<ChildSpec>) {
        if let Some(last) = self.groups.last_mut() {
            last.agents.extend(agents);
        }
    }

    /// Returns the children of a fork, in groups. If all its lists are empty, the first target has a group without agents.
    pub fn into_groups_of(mut self, fork: &Transition) -> Vec<ForkGroup> {
        if let (true, Some(first)) = (self.groups.is_empty(), fork.forked().first()) {
            self.begin_group(first, (AgentOptions::default(), None), Vec::new());
        }
        self.groups
    }
}

impl ForkDirectories {
    /// Returns the directory of a child with these variables, if its tag names one, and whether no child before it
    /// has that, so that it has to be looked up.
    ///
    /// # Errors
    /// Why the tag names no directory below that of the agent, and the fix.
    pub fn of_child(
        &mut self,
        forked: &ForkTag,
        variables: &Variables,
    ) -> Result<Option<(Folder, bool)>, String> {
        let Some(cwd) = &forked.cwd else { return Ok(None) };
        let directory = directory(cwd, variables)?;
        let is_new = self.0.insert(directory.clone());
        Ok(Some((directory, is_new)))
    }
}

/// Returns the directory of a child with these variables.
fn directory(cwd: &str, variables: &Variables) -> Result<Folder, String> {
    let filled = template::fill(cwd, |name| placeholder(variables, name));
    let directory = filled.text.trim().trim_start_matches("./");
    match (filled.unknown.first(), Folder::parse(directory)) {
        (Some((name, _)), _) => Err(format!(
            "nothing fills {{{{{name}}}}} in cwd=\"{cwd}\"; the list entries have no such field"
        )),
        (None, Ok(folder)) => Ok(folder),
        (None, Err(_)) => Err(format!(
            "`{directory}` is not a directory below that of the agent; name one without a leading / and without `..`"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::id::SessionId;
    use crate::domain::transition::{ForkList, TagName};

    fn tag(target: &str, list: Option<&str>, cwd: Option<&str>) -> ForkTag {
        let list = list.map(|list| ForkList { list: list.to_owned(), name: "item".to_owned() });
        ForkTag {
            target: StateName::parse(target).expect("a state"),
            scope: None,
            each: list.map(Box::new),
            cwd: cwd.map(Into::into),
            variables: Variables::new(),
        }
    }

    fn children(many: usize) -> Vec<ChildSpec> {
        let session = SessionId::new("00000000-0000-4000-8000-000000000001");
        vec![ChildSpec { session, cwd: None, variables: Variables::new() }; many]
    }

    fn plan(max_fan_out: u32) -> ForkPlan {
        ForkPlan::new(StateName::parse("A.md").expect("a state"), max_fan_out)
    }

    #[test]
    fn consecutive_tags_with_same_target_form_one_group() {
        let mut plan = plan(10);
        for forked in ["W.md", "W.md", "X.md"].map(|target| tag(target, None, None)) {
            if plan.begins_group(&forked) {
                plan.begin_group(&forked, (AgentOptions::default(), None), children(1));
            } else {
                plan.extend_group(children(2));
            }
        }
        let next = [("next".to_owned(), "N.md".to_owned())];
        let fork = Transition::from_parts(TagName::Fork, next, "W.md").expect("a fork");
        let empty = ForkPlan::new(fork.states().next().expect("a state").clone(), 1);
        let empty = empty.into_groups_of(&fork);
        assert_eq!((empty.len(), empty[0].state.as_str()), (1, "W.md"));
        assert!(empty[0].agents.is_empty());
        let groups = plan.into_groups_of(&fork);
        let sizes: Vec<_> =
            groups.iter().map(|own| (own.state.as_str(), own.agents.len())).collect();
        assert_eq!(sizes, [("W.md", 3), ("X.md", 1)]);
    }

    #[test]
    fn more_children_than_allowed_are_refused_whatever_their_tag() {
        let forked = &tag("W.md", Some("[1, 2, 3]"), None);
        assert_eq!(ForkPlan::list_file(forked), None);
        assert_eq!(plan(3).entries(forked, None).map(|all| all.len()), Ok(3));
        let mut full = plan(4);
        full.begin_group(forked, (AgentOptions::default(), None), children(2));
        let refused = full.entries(forked, None).expect_err("too many");
        assert!(refused.starts_with("5 agents would be forked, but one reply may fork at most 4"));
        let listed = &tag("W.md", Some("list.txt"), None);
        assert_eq!(ForkPlan::list_file(listed), Some("list.txt"));
        assert_eq!(plan(3).entries(listed, Some("a\nb")).map(|all| all.len()), Ok(2));
    }

    #[test]
    fn directory_of_child_is_below_that_of_agent_and_looked_up_once() {
        let variables: Variables = [("at".to_owned(), "sub".to_owned())].into();
        let named = |cwd: &str| {
            let forked = &tag("W.md", None, Some(cwd));
            let mut known = ForkDirectories::default();
            let first = known.of_child(forked, &variables);
            (
                first,
                known.of_child(forked, &variables).is_ok_and(|own| own.is_some_and(|own| own.1)),
            )
        };
        let sub = Folder::parse("sub").expect("a folder");
        assert_eq!(named("./{{at}}"), (Ok(Some((sub, true))), false));
        for (cwd, why) in [
            ("{{gone}}", "nothing fills {{gone}} in cwd=\"{{gone}}\"; the list entries"),
            ("../x", "`../x` is not a directory below that of the agent; name one"),
            ("/tmp", "`/tmp` is not a directory below"),
        ] {
            let message = named(cwd).0.expect_err(cwd);
            assert!(message.starts_with(why), "{message}");
        }
        let plain = &tag("W.md", None, None);
        assert_eq!(ForkDirectories::default().of_child(plain, &variables), Ok(None));
    }
}
