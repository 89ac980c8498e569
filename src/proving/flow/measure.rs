//! The figures.

use super::scene::{Kind, Scene};
use super::{Fault, Latency, Tally};

/// Of the good destination's actions.
pub async fn latency(scene: &Scene) -> Result<Latency, Fault> {
    let sql = "select n, p[1], p[2] from (
        select count(*) as n, percentile_cont(array[0.5, 0.99]) within group (
            order by extract(epoch from t.finished_at - a.created_at)::float8 * 1000) as p
        from outbox.action a join outbox.attempt t using (action_id)
        where a.operation = $1 and t.evidence = 'accepted') s";
    let row = scene.session().await?.query_one(sql, &[&Kind::Healthy.operation()]).await?;
    Ok(Latency { actions: row.try_get(0)?, p50_ms: hundredths(row.try_get(1)?), p99_ms: hundredths(row.try_get(2)?) })
}

/// What became of a destination's actions.
pub async fn tally(scene: &Scene, kind: Kind) -> Result<Tally, Fault> {
    let sql = "select (select count(*) from outbox.action where operation = $1),
        (select count(*) from outbox.attempt t join outbox.action a using (action_id) where a.operation = $1),
        (select count(*) from outbox.attempt t join outbox.action a using (action_id)
            where a.operation = $1 and t.verdict = 'outcome_unknown'),
        (select count(*) from outbox.delivery where operation = $1 and step = 'review'),
        (select string_agg(distinct s.state, ', ') from outbox.daemon d,
            json_to_recordset(d.destinations) as s(destination text, state text) where s.destination = $2)";
    let row = scene.session().await?.query_one(sql, &[&kind.operation(), &kind.name()]).await?;
    let there = scene.fake(kind).tally();
    Ok(Tally {
        destination: kind.name(),
        actions: row.try_get(0)?,
        attempts: row.try_get(1)?,
        requests: there.requests,
        effects: there.effects,
        duplicates: there.duplicates,
        doubts: row.try_get(2)?,
        reviews: row.try_get(3)?,
        state: row.try_get::<_, Option<String>>(4)?.unwrap_or_default(),
    })
}

/// Lines of both daemons, but for the regular ones.
pub fn log_lines(scene: &Scene) -> usize {
    scene.logs().lines().filter(|line| !line.contains("\"message\":\"stats\"")).count()
}

/// The most memory that one of the daemons has had.
pub fn rss_mb(scene: &Scene) -> f64 {
    let most = scene.daemons.iter().filter_map(|daemon| daemon.usage()).map(|usage| usage.peak_rss).max();
    #[allow(clippy::cast_precision_loss, reason = "a figure for people")]
    hundredths(most.unwrap_or(0) as f64 / 1_048_576.0)
}

fn hundredths(figure: f64) -> f64 {
    (figure * 100.0).round() / 100.0
}
