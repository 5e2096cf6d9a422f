//! What the disk asks for a new file and for a flush while rounds are measured.
//!
//! Both change by ten times and more within minutes, with what others do to the disk. ext4 without a
//! journal, for one, takes no inode again for minutes after its file was removed, and looks at each
//! of them whenever a file is made beside them: that is processor time of whoever makes the file. A
//! step makes one file and flushes once, the floor makes two files, so neither ratio is the same on a
//! disk where a build has just been cleaned up.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::time::Instant;

use crate::Fallible;
use crate::place::Place;

const FILES: u32 = 50;
const FLUSHES: u32 = 10;
/// About as long as the record of a step.
const RECORD: [u8; 300] = [b' '; 300];

/// The disk at one moment, in seconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Disk {
    /// A file is made.
    pub(crate) file: f64,
    /// A record is appended and durable.
    pub(crate) flush: f64,
}

impl Disk {
    pub(crate) fn now(place: &Place) -> Fallible<Self> {
        let folder = place.folder()?;
        let started = Instant::now();
        for number in 0..FILES {
            File::create_new(folder.join(number.to_string()))?;
        }
        let file = started.elapsed().as_secs_f64() / f64::from(FILES);
        let mut journal = OpenOptions::new().append(true).open(folder.join("0"))?;
        let started = Instant::now();
        for _ in 0..FLUSHES {
            journal.write_all(&RECORD)?;
            journal.sync_data()?;
        }
        Ok(Self { file, flush: started.elapsed().as_secs_f64() / f64::from(FLUSHES) })
    }
}
