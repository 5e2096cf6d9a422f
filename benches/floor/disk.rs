//! The time the disk takes for a new file and for a flush while rounds are measured.
//!
//! Both times vary tenfold and more within minutes, with other load of the disk. An example is ext4 without a
//! journal: for minutes after a file was removed, it does not use its inode again, and it examines each such
//! inode when a file is created beside them. Whoever creates the file pays the processor time. A step creates
//! one file and flushes once, and the floor creates two files, so the ratios change on a disk where a build
//! has just been cleaned up.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::time::Instant;

use crate::Fallible;
use crate::bench_folder::BenchFolder;

const FILES: u32 = 50;
const FLUSHES: u32 = 10;
/// A text of about the length of a step's record.
const RECORD: [u8; 300] = [b' '; 300];

/// The times of the disk at one moment, in seconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DiskTimes {
    /// The creation of a file.
    pub(crate) file: f64,
    /// The append of a record, until it is durable.
    pub(crate) flush: f64,
}

impl DiskTimes {
    pub(crate) fn now(place: &BenchFolder) -> Fallible<Self> {
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
