//! The same story for programs.

use serde_json::{Value, json};

use super::choices::{Verdict, choices};
use super::{View, known};
use crate::cli::print::words::rfc3339;
use crate::core::time::Timestamp;
use crate::ledger::{Entry, InQueue, Linked, Note, Story, Tombstone};

/// A story as one object. Times are RFC 3339, in UTC.
pub fn story(view: &View<'_>) -> Value {
    let story = view.story;
    json!({
        "now": rfc3339(story.now),
        "committed": committed(story),
        "standing": standing(story),
        "known": known::known(view),
        "configured": view.operation.is_some(),
        "destination": view.operation.map(|operation| &operation.target),
        "contract": view.operation.map(|operation| &operation.terms.contract.name),
        "cancellation": story.cancellation.as_ref().map(note),
        "revocations": story.revocations.iter().map(|revocation| json!({
            "revocation": revocation.number,
            "made": note(&revocation.made),
            "lifted": revocation.lifted.as_ref().map(note),
        })).collect::<Vec<_>>(),
        "history": story.history.iter().map(entry).collect::<Vec<_>>(),
        "compensates": story.compensates.as_ref().map(linked),
        "compensated_by": story.compensated_by.iter().map(linked).collect::<Vec<_>>(),
        "queue": story.queue.as_ref().map(in_queue),
        "hint": view.hint.as_ref().and_then(|hint| hint.as_ref().ok()),
        "choices": choices(view).iter().map(|choice| match &choice.verdict {
            Verdict::Possible(risk) => json!({
                "decision": choice.name, "possible": true, "risk": risk, "command": choice.command,
            }),
            Verdict::Refused(why) => json!({ "decision": choice.name, "possible": false, "why_not": why }),
        }).collect::<Vec<_>>(),
    })
}

/// A tombstone as one object.
pub fn tombstone(stone: &Tombstone) -> Value {
    json!({
        "now": rfc3339(stone.now),
        "pruned": true,
        "action_id": stone.id.0,
        "tenant": stone.tenant,
        "principal": stone.principal,
        "operation": stone.operation,
        "retry_key": stone.retry_key,
        "state": stone.state,
        "receipt": stone.receipt,
        "created_at": rfc3339(stone.created_at),
        "closed_at": rfc3339(stone.closed_at),
    })
}

fn time(at: Option<Timestamp>) -> Option<String> {
    at.map(rfc3339)
}

fn committed(story: &Story) -> Value {
    let c = &story.committed;
    let content = c.content.as_ref();
    json!({
        "action_id": c.id.0,
        "tenant": c.tenant,
        "principal": c.principal,
        "operation": c.operation,
        "retry_key": c.retry_key,
        "event_id": c.event_id,
        "proposal_id": c.proposal_id,
        "workflow_id": c.workflow_id,
        "traceparent": c.traceparent,
        "params": content.and_then(|c| c.params.as_deref()).and_then(|params| serde_json::from_str::<Value>(params).ok()),
        "header_names": content.map(|c| &c.header_names),
        "content_type": c.content_type,
        "body_bytes": content.and_then(|c| c.body.as_ref()).map(|body| body.bytes),
        "body_sha256": content.and_then(|c| c.body.as_ref()).map(|body| &body.sha256),
        "ordering_key": c.ordering_key,
        "not_before": time(c.not_before),
        "expires_at": time(c.expires_at),
        "authority": c.authority,
        "created_at": rfc3339(c.created_at),
    })
}

fn standing(story: &Story) -> Value {
    let s = &story.standing;
    json!({
        "state": s.state.as_str(),
        "step": s.step.as_str(),
        "label": s.label,
        "sentence": s.sentence,
        "took_effect": s.took_effect,
        "due_at": time(s.due_at),
        "fence": s.fence,
        "attempt_id": s.attempt,
        "attempts": s.attempts,
        "worker": s.worker,
        "first_sent_at": time(s.first_sent_at),
        "last_sent_at": time(s.last_sent_at),
        "doubt_since": time(s.doubt.map(|doubt| doubt.since)),
        "doubt_attempt": s.doubt.and_then(|doubt| doubt.attempt).map(|attempt| attempt.0),
        "proof_waits": s.proof.is_some(),
        "cancel_sent_at": time(s.cancel_sent_at),
        "override": s.overridden,
        "reason": s.reason,
        "receipt": s.receipt,
        "parked": story.queue.as_ref().is_some_and(|queue| !queue.has_turn),
        "closed_at": time(s.closed_at),
    })
}

fn in_queue(queue: &InQueue) -> Value {
    json!({
        "has_turn": queue.has_turn,
        "holds": queue.holds,
        "waiting_before": queue.before,
        "waiting_behind": queue.behind,
        "head": queue.head.as_ref().map(|head| json!({
            "action_id": head.id.0, "label": head.label, "reason": head.reason,
        })),
    })
}

fn entry(entry: &Entry) -> Value {
    json!({
        "attempt_id": entry.attempt,
        "number": entry.number,
        "kind": entry.kind.as_str(),
        "fence": entry.fence,
        "worker": entry.worker,
        "idempotency_key": entry.idempotency_key,
        "started_at": time(entry.started_at),
        "deadline_at": time(entry.deadline_at),
        "finished_at": rfc3339(entry.finished_at),
        "evidence": entry.evidence,
        "verdict": entry.verdict,
        "http_status": entry.status,
        "receipt": entry.receipt,
        "detail": entry.detail,
        "decided_by": entry.decided_by,
    })
}

fn note(note: &Note) -> Value {
    json!({ "at": rfc3339(note.at), "by": note.by, "reason": note.reason })
}

fn linked(linked: &Linked) -> Value {
    json!({
        "action_id": linked.id.0,
        "operation": linked.operation,
        "label": linked.label,
        "receipt": linked.receipt,
    })
}
