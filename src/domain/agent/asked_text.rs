//! The text that the next turn of an agent is asked: a reminder, the prompt of its state, or what a person has made of them.

use super::Agent;

impl Agent {
    /// Returns the text that its next turn is asked: the reminder if there is one, else the prompt. A person may have edited
    /// that of the state, but not that of an evaluator.
    pub fn asked_text(&self, prompt: String) -> String {
        let edited = self.edited_prompt.as_ref().filter(|_| self.proposal().is_none());
        self.reminder.as_ref().or(edited).cloned().unwrap_or(prompt)
    }

    /// Puts the text of a person in the place of the one that its next turn is asked.
    pub(in crate::domain) fn edit_asked_text(&mut self, text: String) {
        match &mut self.reminder {
            Some(reminder) => *reminder = text,
            None => self.edited_prompt = Some(text),
        }
    }
}
