//! The starts of the windows of data-driven queries: sessions, windows that a flag closes, and
//! windows from a flag on.
//!
//! Entries are numbered from 1 as they are passed on. A session is closed when no entry can
//! arrive within its gap; none is closed before `open_until`. Flags are announced before their
//! entries are inserted, and close windows with them.

use std::collections::VecDeque;

use super::plan::{Query, Unit};
use crate::snapshot::{Codec, Reader, Result, Writer, damaged};

/// The flags of an entry are a set in one word.
pub const MAX_FLAGS: u32 = 64;

#[derive(Clone, Debug)]
pub struct DataDriven {
    /// Per query of sessions its number, its gap, and the number of the first entry of the open
    /// session, 0 if none is open.
    sessions: Vec<(usize, i64, i64)>,
    /// Per query with a flag its number, its flag, and whether the flag begins windows.
    flagging: Vec<(usize, u32, bool)>,
    /// Per flag the number of the last entry with it, 0 if there was none.
    flagged: Vec<i64>,
    /// The numbers and flags of announced entries, and the number of the first of them.
    announced: VecDeque<(i64, u64)>,
    pub next_flagged: i64,
    /// No session begins or ends at or before this time.
    pub open_until: i64,
}

impl Default for DataDriven {
    fn default() -> Self {
        Self {
            sessions: Vec::new(),
            flagging: Vec::new(),
            flagged: Vec::new(),
            announced: VecDeque::new(),
            next_flagged: i64::MAX,
            open_until: i64::MAX,
        }
    }
}

impl DataDriven {
    /// Replaces the queries; those that stay keep their windows.
    pub fn plan(&mut self, queries: &[Option<Query>]) {
        let before = std::mem::take(&mut self.sessions);
        self.flagging.clear();
        for (number, query) in queries.iter().enumerate() {
            let Some(query) = query else {
                continue;
            };
            if query.unit == Unit::Session {
                let kept = before.iter().find(|session| session.0 == number);
                let begin = kept.map_or(0, |session| session.2);
                self.sessions.push((number, query.range, begin));
            }
            if let Some(flag) = query.unit.flag() {
                let begins = !matches!(query.unit, Unit::Until(_));
                self.flagging.push((number, flag, begins));
                let flags = self.flagged.len().max(flag as usize + 1);
                self.flagged.resize(flags, 0);
            }
        }
        if self.sessions.is_empty() {
            self.open_until = i64::MAX;
        }
    }

    #[inline]
    pub fn has_sessions(&self) -> bool {
        !self.sessions.is_empty()
    }

    /// Records entries that were passed on: the time of the last, and the number of the first.
    pub fn pass(&mut self, time: i64, first: i64) {
        for session in &mut self.sessions {
            if session.2 == 0 {
                session.2 = first;
            }
        }
        self.find_open_until(time);
    }

    /// Computes `open_until` from the time of the last entry.
    pub fn find_open_until(&mut self, last: i64) {
        let until = self.sessions.iter().map(|(_, gap, begin)| match begin {
            0 => last,
            _ => last.saturating_add(*gap),
        });
        self.open_until = until.min().unwrap_or(i64::MAX);
    }

    /// The queries whose sessions are closed if no more entries arrive at or before a limit.
    pub fn over(&self, last: i64, limit: i64) -> Vec<usize> {
        let over =
            |(_, gap, begin): &&(usize, i64, i64)| *begin > 0 && last.saturating_add(*gap) <= limit;
        let over = self.sessions.iter().filter(over);
        over.map(|session| session.0).collect()
    }

    /// Ends the sessions of some queries.
    pub fn end_sessions(&mut self, numbers: &[usize], last: i64) {
        for session in &mut self.sessions {
            if numbers.contains(&session.0) {
                session.2 = 0;
            }
        }
        self.find_open_until(last);
    }

    /// Opens the session of a query; 0 leaves that to the next entry.
    pub fn begin_session(&mut self, number: usize, first: i64, last: i64) {
        for session in &mut self.sessions {
            if session.0 == number {
                session.2 = first;
            }
        }
        self.find_open_until(last);
    }

    /// Announces the flags of the entries after the first `count`.
    pub fn announce(&mut self, flagged: &[(usize, u64)], count: i64) {
        let numbered = flagged
            .iter()
            .map(|(place, flags)| (count + 1 + *place as i64, *flags));
        self.announced = numbered.collect();
        self.find_flagged();
    }

    fn find_flagged(&mut self) {
        self.next_flagged = self.announced.front().map_or(i64::MAX, |next| next.0);
    }

    /// The flags of an entry; 0 if it has none.
    pub fn flags_of(&mut self, number: i64) -> u64 {
        if self.next_flagged != number {
            return 0;
        }
        let flags = self.announced.pop_front().map_or(0, |next| next.1);
        self.find_flagged();
        flags
    }

    /// Records an entry with flags that was passed on; queries may be added later that read them.
    pub fn pass_flags(&mut self, flags: u64, number: i64) {
        let known = (u64::BITS - flags.leading_zeros()) as usize;
        self.flagged.resize(self.flagged.len().max(known), 0);
        for (flag, last) in self.flagged.iter_mut().enumerate() {
            if flags & (1 << flag) != 0 {
                *last = number;
            }
        }
    }

    /// The number of entries of the open window of a query, of `count` that were passed on.
    pub fn held(&self, number: usize, count: i64) -> i64 {
        if let Some(session) = self.sessions.iter().find(|session| session.0 == number) {
            return if session.2 == 0 {
                0
            } else {
                count - session.2 + 1
            };
        }
        let found = self.flagging.iter().find(|flagging| flagging.0 == number);
        found.map_or(0, |found| self.held_since(found.1, found.2, count))
    }

    fn held_since(&self, flag: u32, begins: bool, count: i64) -> i64 {
        match self.flagged[flag as usize] {
            0 => count,
            last => count - last + i64::from(begins),
        }
    }

    /// The number of latest entries that windows may need.
    #[inline]
    pub fn longest(&self, count: i64) -> i64 {
        if self.sessions.is_empty() && self.flagging.is_empty() {
            return 0;
        }
        let sessions = self.sessions.iter().filter(|session| session.2 > 0);
        let sessions = sessions.map(|session| count - session.2 + 1);
        let flagging = self.flagging.iter();
        let flagging = flagging.map(|(_, flag, begins)| self.held_since(*flag, *begins, count));
        sessions.chain(flagging).max().unwrap_or(0)
    }

    /// Writes the starts of windows; the queries are written elsewhere.
    pub fn write(&self, out: &mut Writer) {
        for (_, _, begin) in &self.sessions {
            begin.write(out);
        }
        (self.flagged.len() as u64).write(out);
        out.all(&self.flagged);
    }

    /// Reads what [`DataDriven::write`] wrote, for the queries that are planned.
    pub fn read(&mut self, input: &mut Reader<'_>, last: Option<i64>, count: i64) -> Result<()> {
        for session in &mut self.sessions {
            session.2 = i64::read(input)?;
            if !(0..=count).contains(&session.2) {
                return damaged(format!("a session that begins with {}", session.2));
            }
        }
        let flags = input.length::<i64>()?;
        if flags < self.flagged.len() || flags > MAX_FLAGS as usize {
            return damaged(format!("{flags} flags"));
        }
        self.flagged.clear();
        for _ in 0..flags {
            let flagged = i64::read(input)?;
            if !(0..=count).contains(&flagged) {
                return damaged(format!("a flag of entry {flagged}"));
            }
            self.flagged.push(flagged);
        }
        if let Some(last) = last {
            self.find_open_until(last);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(units: &[(Unit, i64)]) -> DataDriven {
        let query = |&(unit, range)| {
            Some(Query {
                unit,
                range,
                slide: 1,
            })
        };
        let mut planned = DataDriven::default();
        planned.plan(&units.iter().map(query).collect::<Vec<_>>());
        planned
    }

    #[test]
    fn a_session_is_over_when_no_entry_can_extend_it() {
        let mut sessions = planned(&[(Unit::Session, 3), (Unit::Session, 9)]);
        sessions.pass(10, 1);
        assert_eq!(sessions.open_until, 13);
        assert_eq!(sessions.over(10, 12), []);
        assert_eq!(sessions.over(10, 13), [0]);
        sessions.end_sessions(&[0], 10);
        assert_eq!([sessions.held(0, 1), sessions.held(1, 1)], [0, 1]);
        assert_eq!(sessions.open_until, 10, "the next entry begins one");
        sessions.pass(14, 2);
        assert_eq!([sessions.held(0, 2), sessions.held(1, 2)], [1, 2]);
        assert_eq!(sessions.over(14, i64::MAX), [0, 1]);
    }

    #[test]
    fn a_flag_closes_windows_and_begins_others() {
        let mut flags = planned(&[(Unit::Until(1), 1), (Unit::LandmarkEntries(1), 1)]);
        assert_eq!(flags.longest(4), 4);
        flags.announce(&[(1, 0b10), (2, 0b01)], 4);
        assert_eq!((flags.flags_of(5), flags.flags_of(6)), (0, 0b10));
        flags.pass_flags(0b10, 6);
        assert_eq!((flags.flags_of(7), flags.next_flagged), (0b01, i64::MAX));
        assert_eq!([flags.held(0, 7), flags.held(1, 7)], [1, 2]);
        assert_eq!(flags.longest(7), 2);
    }
}
