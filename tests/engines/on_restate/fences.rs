//! Fences of hosts that the object of a run keeps.

use raymond::engine::EngineError;
use raymond::engine::shared_log::HostReply;

use crate::on_restate::two_machines;
use crate::support::{key, later, reply, request, served_host, started_run};

#[test]
fn supervisor_that_ends_the_epochs_of_a_host_ends_them_for_its_run_alone() {
    let (one, other, _server) = two_machines();
    let (lease, second, claim) = (started_run(&*one), started_run(&*one), served_host(&*other));
    for lease in [&lease, &second] {
        one.send(lease, &[request(lease, &claim, "a")]).expect("sent");
    }
    one.end_epochs(&lease, &claim.host, later(&claim).epoch).expect("they are over");
    let fenced = EngineError::HostFenced { host: claim.host.clone() };
    assert_eq!(other.begin(&claim, &[key(&lease, "a")]), Err(fenced.clone()));
    let late: HostReply = reply(&lease, "a");
    assert_eq!(other.reply(&claim, &[late]), Err(fenced));
    assert_eq!(one.replies(&lease, &[], 10), Ok(Vec::new()));
    let own = key(&second, "a");
    assert_eq!(other.begin(&claim, std::slice::from_ref(&own)), Ok([own].into()));
}
