//! stub
use crate::clock::Uptime;
use crate::core::action::{AttemptId, Fence, Intent};
use crate::core::evidence::*;
use crate::core::target::*;
pub struct Destination(Target);
pub struct Claim { pub attempt: AttemptId, pub fence: Fence }
pub struct Limits { pub deadline: Uptime, pub leave_before: Uptime }
impl Destination {
    pub fn new(target: Target) -> Self { Self(target) }
    pub async fn send(&self, _o: &Operation, _i: &Intent, _c: &Claim, _l: Limits) -> Finding { Finding::new(Evidence::Accepted, None) }
}
