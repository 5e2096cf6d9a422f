//! The number of messages that are taken at a time: fewer after a call that failed, since they may have been too large for it.

use std::cell::Cell;

use crate::engine::EngineError;

/// The number of messages that are taken at a time. Each has up to 1 MiB, and a slow network has to carry a page within the
/// limit of a call.
#[derive(Debug)]
pub(in crate::runtime) struct PageSize {
    most: usize,
    next: Cell<usize>,
}

impl PageSize {
    /// Returns a size that begins with the most that are taken.
    pub(in crate::runtime) fn new(most: usize) -> Self {
        Self { most, next: Cell::new(most) }
    }

    /// Asks for a page of up to so many, and returns it with whether there may be more.
    ///
    /// # Errors
    /// That of the call.
    pub(in crate::runtime) fn ask<T>(
        &self,
        call: impl FnOnce(usize) -> Result<Vec<T>, EngineError>,
    ) -> Result<(Vec<T>, bool), EngineError> {
        let size = self.next.get();
        let asked = call(size);
        let next = if asked.is_ok() { size.saturating_mul(2) } else { size / 2 };
        self.next.set(next.clamp(1, self.most));
        asked.map(|page| {
            let is_full = page.len() >= size;
            (page, is_full)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_is_smaller_after_each_failure_and_larger_after_each_success() {
        let size = PageSize::new(10);
        let ask = |is_carried: &dyn Fn(usize) -> bool| {
            let mut asked = 0;
            let page = size.ask(|most| {
                asked = most;
                let (engine, why) = ("postgres://x".to_owned(), "no answer".to_owned());
                let error = EngineError::Unreachable { engine, why };
                if is_carried(most) { Ok(vec![(); most.min(4)]) } else { Err(error) }
            });
            (asked, page.ok().map(|(page, is_full)| (page.len(), is_full)))
        };
        assert_eq!(ask(&|_| true), (10, Some((4, false))));
        let small = |most| most < 3;
        assert_eq!([ask(&small), ask(&small)], [(10, None), (5, None)]);
        assert_eq!(ask(&small), (2, Some((2, true))));
        assert_eq!(ask(&|_| false), (4, None));
        assert_eq!([ask(&|_| false).0, ask(&|_| false).0, ask(&|_| false).0], [2, 1, 1]);
        assert_eq!([ask(&|_| true).0, ask(&|_| true).0, ask(&|_| true).0], [1, 2, 4]);
        assert_eq!([ask(&|_| true).0, ask(&|_| true).0], [8, 10]);
    }
}
