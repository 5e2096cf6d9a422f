//! What each engine promises. Each function is a property, and gets two connections to the same engine, as two machines
//! have them.

pub(crate) mod facts;
pub(crate) mod hosts;
pub(crate) mod leases;
pub(crate) mod log;
pub(crate) mod mail;
pub(crate) mod questions;
pub(crate) mod races;
pub(crate) mod replies;
pub(crate) mod space;
pub(crate) mod waits;

/// Makes a test of each property. `$connected` is a function that returns two connections and what keeps their server.
macro_rules! each_property {
    ($connected:path) => {
        each_property! { $connected:
            leases {
                a_run_is_created_once
                another_run_does_not_get_the_id
                a_living_lease_keeps_others_out
                a_lease_runs_out_by_itself
                a_renewed_lease_does_not_run_out
                a_lease_that_is_given_back_is_free
                the_same_holder_fences_its_earlier_lease
                an_older_lease_can_change_nothing
                an_ended_run_is_listed_as_ended
                runs_are_listed_in_order
                runs_that_are_not_there_are_named
                terms_are_replaced
            }
            log {
                lines_are_read_as_they_were_appended
                an_append_is_made_again_without_harm
                a_started_append_is_completed
                other_lines_do_not_replace_any
                gaps_are_refused
                a_long_log_is_read_in_pages
                texts_are_kept_byte_by_byte
            }
            questions {
                a_question_reaches_its_host_and_no_supervisor
                a_question_needs_no_lease_and_a_run
                requests_of_a_run_are_not_questions
            }
            races {
                appends_at_the_same_moment_make_one_history
                an_old_lease_never_writes_after_a_new_lease
                one_of_many_claims_wins
                one_of_many_creators_wins
                a_withdrawn_request_never_starts
                a_reply_and_a_withdrawal_agree
                each_request_is_sent_once
            }
            space {
                commands_wait_in_order
                a_command_is_left_once
                a_removed_command_does_not_come_back
                commands_need_a_run
                contents_are_kept_by_their_checksums
            }
            facts {
                changes_are_read_in_their_order
                a_change_follows_only_the_last_change
                a_change_is_appended_once
                one_of_many_changes_has_each_place
                changes_are_kept_byte_by_byte
                a_reader_is_woken_by_a_change
                a_lost_lease_changes_no_fact
            }
            hosts {
                the_same_worker_keeps_its_epoch
                another_worker_fences_the_first
                another_worker_waits_until_the_first_is_silent
                the_later_start_of_a_copied_worker_serves_the_host
                a_lost_host_is_fenced_until_it_registers
                a_draining_host_learns_its_standing
                hosts_are_listed_with_their_reports
                silence_is_measured_by_the_engine
                a_removed_host_is_gone
                hosts_that_are_not_there_are_named
            }
            mail {
                requests_come_once_and_in_order
                a_new_worker_gets_all_again
                requests_come_in_parts
                started_requests_come_again_in_parts
                a_request_is_sent_once
                requests_for_an_earlier_epoch_are_not_seen
                a_withdrawn_request_is_gone
                withdrawals_tell_what_was
                a_later_supervisor_sends_what_was_withdrawn_again
                what_was_sent_is_known_to_a_later_supervisor
                a_request_withdrawn_before_it_came_does_not_start
                several_are_started_and_answered_at_once
                a_fenced_host_can_do_nothing
            }
            replies {
                replies_come_once
                another_lease_gets_all_replies_again
                the_first_reply_stays
                replies_nobody_waits_for_are_dropped
                forgotten_requests_do_not_come_back
                all_requests_of_a_run_are_forgotten
                a_lost_lease_can_do_nothing
            }
            waits {
                a_host_is_woken_by_a_request
                a_run_is_woken_by_a_reply
                a_run_is_woken_by_a_command
                waits_end_in_time
            }
        }
    };
    ($connected:path: $($module:ident { $($property:ident)+ })+) => {
        $(mod $module {
            $(#[test]
            fn $property() {
                let (one, other, _server) = $connected();
                crate::suite::$module::$property(&*one, &*other);
            })+
        })+
    };
}
