//! The samples with many slots: on several machines they take the same steps as on one.

use super::runs::samples::{ADD_SOURCE, RELEASE, Sample, THREE_REVIEWERS, compare_steps, sample};

fn takes_the_same_steps(sample: &Sample) {
    compare_steps(sample, 16, &[]);
}

each_sample!(takes_the_same_steps);
