//! Serial queues as the destinations have seen them (R27). What is compared is what is promised, and no more: the next
//! action leaves after the end of the one before has been recorded. What left before that end may still arrive later, as
//! long as the network keeps it; and where the contract promises no second effect, it does nothing any more.

use std::collections::{BTreeMap, HashMap};
use std::time::SystemTime;

use serde::Serialize;
use uuid::Uuid;

use super::kinds::Repeats;
use super::promise::{Promise, Violation};
use super::records::{Attempt, Entry, Request, What, World};
use super::referee::STILL_ARRIVES;
use crate::core::action::State;
use crate::core::reason::Reason;

/// How long an action stood at the head of its queue, as its destination has seen it: from its first request to the end
/// that the ledger has recorded. One that is proved not to have happened may have to let another go first, and an
/// operator may try one again: those stand there more than once.
struct Stay<'a> {
    entry: &'a Entry,
    /// The first of its requests.
    from: SystemTime,
    /// Its end; `None` = it has not come.
    until: Option<SystemTime>,
    requests: Vec<&'a Request>,
}

/// An action of a queue.
struct Member<'a> {
    entry: &'a Entry,
    /// In the order of time; none where it was never sent.
    stays: Vec<Stay<'a>>,
    /// Its enqueue began then, or later.
    tried: Option<SystemTime>,
    /// Its transaction was committed by then.
    committed: Option<SystemTime>,
    /// It may have left its queue without an end of its own.
    cancelled: bool,
}

/// What was looked at.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct QueueFigures {
    /// Queues.
    pub queues: usize,
    /// Actions in them.
    pub actions: usize,
    /// The longest.
    pub longest: usize,
    /// Pairs of one queue of which the order is promised, both sent.
    pub pairs: usize,
    /// Actions that were sent after one whose outcome had been unknown.
    pub behind_unknown: usize,
    /// Failures that held their queue for a person.
    pub held: usize,
    /// Requests that arrived after the end of their action, having left before.
    pub late: usize,
}

/// Everything that is not as R27 has it.
pub fn judge(world: &World) -> Vec<Violation> {
    let mut found = Vec::new();
    for members in queues(world).values() {
        let broken = |entry: &Entry, what: String| Violation::of(world, entry, Promise::QueueOrder, what);
        found.extend(overlaps(members).into_iter().map(|(entry, what)| broken(entry, what)));
        found.extend(overtaken(members).into_iter().map(|(entry, what)| broken(entry, what)));
        found.extend(passed_over(members).into_iter().map(|(entry, what)| broken(entry, what)));
        found.extend(unheld(members).into_iter().map(|(entry, what)| broken(entry, what)));
        found.extend(too_late(members).into_iter().map(|(entry, what)| broken(entry, what)));
    }
    found
}

type Told<'a> = Vec<(&'a Entry, String)>;

/// One at a time: nobody begins before whoever began earlier has ended.
fn overlaps<'a>(members: &[Member<'a>]) -> Told<'a> {
    let mut stays: Vec<&Stay> = members.iter().flat_map(|member| &member.stays).collect();
    stays.sort_by_key(|stay| stay.from);
    let overlaps = stays.iter().enumerate().filter_map(|(place, stay)| {
        let others = stays[..place].iter().filter(|other| other.entry.action != stay.entry.action);
        let open = others.rev().find(|other| other.until.is_none_or(|until| until >= stay.from))?;
        let (order, other) = (stay.entry.order, open.entry.order);
        Some((
            stay.entry,
            format!("order {order} was sent while order {other}, of the same queue, had begun and was not at its end"),
        ))
    });
    overlaps.collect()
}

/// What was committed before another was asked for goes first.
fn overtaken<'a>(members: &[Member<'a>]) -> Told<'a> {
    let mut found = Vec::new();
    for (first, then) in pairs(members) {
        let Some(began) = then.stays.first().map(|stay| stay.from) else { continue };
        let sent_later = first.stays.first().is_some_and(|stay| stay.from > began);
        let waited = match first_end(first.entry) {
            End::At(end) => end > began,
            End::None => true,
            End::Unknown => false,
        };
        // That is said already.
        let overlaps = first.stays.iter().any(|stay| stay.from < began && stay.until.is_none_or(|end| end >= began));
        // What is cancelled while it waits leaves at once, and is closed later.
        if sent_later || (waited && !overlaps && !first.cancelled) {
            let (order, other) = (then.entry.order, first.entry.order);
            found.push((then.entry, format!("order {order} went before order {other}, which was committed before it")));
        }
    }
    found
}

/// What is tried again goes before all that has not begun; one may have had the turn by then.
fn passed_over<'a>(members: &[Member<'a>]) -> Told<'a> {
    let mut found = Vec::new();
    for (again, retry) in members.iter().flat_map(|m| m.entry.decisions().map(move |decision| (m, decision))) {
        let lines = again.entry.attempts.iter().skip_while(|line| line.attempt != retry.attempt).skip(1);
        let end = lines.into_iter().find(|line| is_end(line)).map(|line| line.finished_at).or(again.entry.closed_at);
        let began = |then: &Member| then.stays.first().map(|stay| stay.from);
        let behind = pairs(members).filter(|(first, _)| first.entry.action == again.entry.action);
        let passed = behind.filter(|(_, then)| {
            began(then).is_some_and(|from| from > retry.finished_at && end.is_none_or(|end| from < end))
        });
        if is_retry(retry) && passed.count() > 1 {
            let order = again.entry.order;
            found.push((again.entry, format!("order {order} was tried again, and several began that come after it")));
        }
    }
    found
}

/// A failure of an operation that says so holds its queue until a person lets go or tries it again.
fn unheld<'a>(members: &[Member<'a>]) -> Told<'a> {
    let mut found = Vec::new();
    for (member, failed) in members.iter().flat_map(|member| failures(member).map(move |at| (member, at))) {
        let freed = member.entry.decisions().find(|decision| decision.finished_at > failed);
        let others = members.iter().filter(|other| other.entry.action != member.entry.action);
        let went = others
            .flat_map(|other| &other.stays)
            .find(|stay| stay.from > failed && freed.is_none_or(|freed| stay.from < freed.finished_at));
        if let Some(stay) = went {
            let (order, other) = (stay.entry.order, member.entry.order);
            found.push((
                stay.entry,
                format!("order {order} was sent while the failure of order {other} held its queue"),
            ));
        }
    }
    found
}

/// What left before the end arrives soon after it or never, and does nothing that is not allowed.
fn too_late<'a>(members: &[Member<'a>]) -> Told<'a> {
    let mut found = Vec::new();
    for stay in members.iter().flat_map(|member| &member.stays) {
        let Some(until) = stay.until else { continue };
        let order = stay.entry.order;
        let acts = stay.entry.kind.repeats() == Repeats::Never;
        if stay.requests.iter().any(|request| request.at > until + STILL_ARRIVES) {
            found.push((stay.entry, format!("a request of order {order} came long after the order's end")));
        }
        if acts && stay.requests.iter().any(|request| request.took_effect && request.at > until) {
            found.push((stay.entry, format!("order {order} took effect after its end, when the next could go")));
        }
    }
    found
}

/// Pairs of which the order is promised.
fn pairs<'a, 'b>(members: &'b [Member<'a>]) -> impl Iterator<Item = (&'b Member<'a>, &'b Member<'a>)> {
    let promised = |(first, then): &(&Member, &Member)| {
        first.committed.zip(then.tried).is_some_and(|(committed, tried)| committed < tried)
    };
    members.iter().flat_map(|first| members.iter().map(move |then| (first, then))).filter(promised)
}

/// When an action was closed for the first time.
enum End {
    At(SystemTime),
    /// It is open.
    None,
    /// It was closed without a line in the history, and tried again since.
    Unknown,
}

fn first_end(entry: &Entry) -> End {
    let closes = |line: &&Attempt| is_end(line) && line.verdict != State::Pending.as_str();
    let first = entry.attempts.iter().find(|line| closes(line) || is_retry(line));
    match (first, entry.closed_at) {
        (Some(line), _) if is_retry(line) => End::Unknown,
        (Some(line), _) => End::At(line.finished_at),
        (None, Some(closed)) => End::At(closed),
        (None, None) => End::None,
    }
}

/// When an action failed in such a way that it holds its queue.
fn failures(member: &Member<'_>) -> impl Iterator<Item = SystemTime> {
    let entry = member.entry;
    // What was cancelled was looked at already, and where nothing was to be compensated nothing has failed.
    let holds = entry.kind.holds() && !member.cancelled && entry.compensates.is_none();
    let failed = |line: &&Attempt| line.verdict == State::TerminalFailure.as_str() && line.evidence != "release";
    let told = entry.attempts.iter().filter(failed).map(|line| line.finished_at);
    // It was stopped before a send, which has no line.
    let stopped =
        [Reason::Deadline, Reason::AuthorityRevoked].iter().any(|r| entry.reason.as_deref() == Some(r.code()));
    let is_told = entry.attempts.last().is_some_and(|line| failed(&line));
    let untold = entry.closed_at.filter(|_| stopped && !is_told && entry.state == State::TerminalFailure);
    told.chain(untold).filter(move |_| holds)
}

/// Whether nothing of it is under way any more: closed, or proved not to have happened.
fn is_end(line: &Attempt) -> bool {
    [State::Pending, State::Succeeded, State::TerminalFailure].iter().any(|state| line.verdict == state.as_str())
}

fn is_retry(line: &Attempt) -> bool {
    line.kind == "decision" && line.evidence == "retry"
}

/// The stays of an action. A request belongs to the first end that comes after its claim: fences only grow.
fn stays<'a>(entry: &'a Entry, sends: &[&'a Request]) -> Vec<Stay<'a>> {
    let (mut ends, mut fence, mut before) = (Vec::new(), 0, None);
    for line in &entry.attempts {
        fence = fence.max(line.fence);
        if is_end(line) {
            // Closed without a line before it was tried again: at some time since the line before.
            let at = before.filter(|_| is_retry(line)).unwrap_or(line.finished_at);
            ends.push((fence, Some(at)));
        }
        before = Some(line.finished_at);
    }
    ends.push((i64::MAX, entry.closed_at));
    let mut after = i64::MIN;
    let mut stays = Vec::new();
    for (fence, until) in ends {
        let ours = |request: &&&Request| request.fence.is_some_and(|own| own > after && own <= fence);
        let requests: Vec<&Request> = sends.iter().filter(ours).copied().collect();
        if let Some(from) = requests.iter().map(|request| request.at).min() {
            stays.push(Stay { entry, from, until, requests });
        }
        after = fence;
    }
    stays
}

/// The queues: by tenant and ordering key.
fn queues(world: &World) -> BTreeMap<(&'static str, u32), Vec<Member<'_>>> {
    let mut sends: HashMap<Uuid, Vec<&Request>> = HashMap::new();
    for request in world.requests.iter().filter(|request| request.what == What::Send) {
        sends.entry(request.action.unwrap_or_default()).or_default().push(request);
    }
    let mut queues: BTreeMap<_, Vec<Member>> = BTreeMap::new();
    for entry in &world.entries {
        let Some((order, queue)) = world.plan.order(entry.order).and_then(|order| Some((order, order.queue?))) else {
            continue;
        };
        let answers = world.desk.answers.iter().filter(|answer| answer.order == entry.order);
        queues.entry((order.tenant(), queue)).or_default().push(Member {
            entry,
            stays: stays(entry, sends.get(&entry.action).map_or(&[], Vec::as_slice)),
            tried: world.desk.tried.get(&entry.order).copied(),
            committed: answers.map(|answer| answer.at).min(),
            cancelled: order.cancelled.is_some(),
        });
    }
    queues
}

impl QueueFigures {
    /// Counts.
    pub fn of(world: &World) -> Self {
        let queues = queues(world);
        let each = |count: &dyn Fn(&[Member]) -> usize| queues.values().map(|members| count(members)).sum();
        let sent = |member: &Member| !member.stays.is_empty();
        let late = |stay: &Stay| {
            let is_late = |request: &&&Request| stay.until.is_some_and(|until| request.at > until);
            stay.requests.iter().filter(is_late).count()
        };
        let stands_behind = |member: &Member, members: &[Member]| {
            let Some(began) = member.stays.first().map(|stay| stay.from) else { return false };
            let before = members.iter().filter(|other| other.stays.last().is_some_and(|stay| stay.from < began));
            before.max_by_key(|other| other.stays.last().map(|stay| stay.from)).is_some_and(|o| o.entry.was_unknown())
        };
        Self {
            queues: queues.len(),
            actions: each(&|members| members.len()),
            longest: queues.values().map(Vec::len).max().unwrap_or(0),
            pairs: each(&|members| pairs(members).filter(|(first, then)| sent(first) && sent(then)).count()),
            behind_unknown: each(&|members| members.iter().filter(|member| stands_behind(member, members)).count()),
            held: each(&|members| members.iter().map(|member| failures(member).count()).sum()),
            late: each(&|members| members.iter().flat_map(|member| &member.stays).map(late).sum()),
        }
    }
}
