use std::process::{Command, Stdio};

use tokio_postgres::NoTls;

use super::*;

async fn ask(cluster: &Cluster, sql: &str) -> String {
    let url = cluster.url(cluster.superuser(), "postgres");
    let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
    let connection = tokio::spawn(connection);
    let answer = client.query_one(sql, &[]).await.unwrap().get(0);
    drop(client);
    connection.await.unwrap().unwrap();
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_starts_answers_restarts_and_leaves_nothing_behind() {
    let mut cluster = Cluster::start(ClusterOptions::default().set("work_mem", "7MB")).unwrap();
    let home = cluster.home.path().to_owned();
    assert_eq!(ask(&cluster, "select 'one'").await, "one");
    assert_eq!(ask(&cluster, "select current_setting('work_mem') || current_setting('fsync')").await, "7MBon");
    assert_eq!(ask(&cluster, "select inet_server_addr()::text").await, "127.0.0.1/32");

    let (pid, port) = (cluster.pid(), cluster.port());
    for mode in [StopMode::Fast, StopMode::Immediate] {
        cluster.restart(mode).unwrap();
        assert_eq!(ask(&cluster, "select 'still'").await, "still");
    }
    assert_ne!(cluster.pid(), pid);
    assert_eq!(cluster.port(), port);

    cluster.stop(StopMode::Fast).unwrap();
    cluster.stop(StopMode::Fast).unwrap();
    let url = cluster.url("postgres", "postgres");
    assert!(tokio_postgres::connect(&url, NoTls).await.is_err());
    cluster.resume().unwrap();
    assert_eq!(ask(&cluster, "select 'again'").await, "again");

    let pid = cluster.pid();
    drop(cluster);
    assert!(!home.exists());
    assert!(!is_alive(pid));
}

#[test]
fn a_setting_postgresql_refuses_is_reported_with_the_end_of_its_log() {
    let error = Cluster::start(ClusterOptions::default().set("shared_buffers", "many")).unwrap_err();
    assert!(matches!(error, ClusterError::Ended { .. }), "{error:?}");
    assert!(error.to_string().contains("shared_buffers"), "{error}");
}

#[test]
fn urls_escape_what_names_may_hold() {
    let cluster = Cluster::start(ClusterOptions::default()).unwrap();
    let url = cluster.url("release_desk", "a b/ü");
    assert_eq!(url, format!("postgres://release_desk@127.0.0.1:{}/a%20b%2F%C3%BC", cluster.port()));
}

/// The leash: what a SIGKILL of the test process leaves. The inner run is this same test binary.
#[test]
fn a_killed_process_takes_its_cluster_along() {
    use std::io::{BufRead, BufReader};

    let mut inner = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--ignored", "--nocapture", "proving::cluster::tests::inner_run_that_gets_killed"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(inner.stdout.take().unwrap()).lines();
    let said = lines.map(Result::unwrap).find_map(|l| l.split_once("cluster ").map(|(_, rest)| rest.to_owned()));
    let said = said.unwrap();
    let (pid, home) = said.split_once(' ').unwrap();
    let (pid, home) = (pid.parse().unwrap(), Path::new(home));
    assert!(home.exists() && is_alive(pid));
    inner.kill().unwrap();
    inner.wait().unwrap();

    let killed = crate::clock::stopwatch();
    while (home.exists() || is_alive(pid)) && killed.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(!home.exists() && !is_alive(pid));
}

#[test]
#[ignore = "only run, and killed, by the test above"]
fn inner_run_that_gets_killed() {
    let cluster = Cluster::start(ClusterOptions::default()).unwrap();
    println!("cluster {} {}", cluster.pid(), cluster.home.path().display());
    std::thread::sleep(Duration::from_secs(20));
}

#[test]
fn a_kept_cluster_runs_on_and_says_how_to_end_it() {
    let kept = Cluster::start(ClusterOptions::default()).unwrap().keep();
    assert!(is_alive(kept.pid) && kept.dir.exists());
    let ended = Command::new("/bin/sh").args(["-c", &kept.stop_command()]).status().unwrap();
    assert!(ended.success() && !kept.dir.exists());
}

/// Whether it runs; a process that has ended and was not waited for does not.
fn is_alive(pid: u32) -> bool {
    let id = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    rustix::process::test_kill_process(id).is_ok() && !stat.contains(") Z ")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_is_promoted_lacks_what_was_committed_since() {
    let mut cluster = Cluster::start(ClusterOptions::default()).unwrap();
    assert_eq!(ask(&cluster, "select 'one' from (select pg_switch_wal()) s").await, "one");
    let put = async |cluster: &Cluster, sql: &str| {
        let url = cluster.url(cluster.superuser(), "postgres");
        let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
        let connection = tokio::spawn(connection);
        client.batch_execute(sql).await.unwrap();
        drop(client);
        connection.await.unwrap().unwrap();
    };
    put(&cluster, "create table t (n int); insert into t values (1)").await;
    cluster.stop_and_copy().unwrap();
    cluster.resume().unwrap();
    put(&cluster, "insert into t values (2)").await;
    cluster.fail_over().unwrap();
    assert_eq!(ask(&cluster, "select count(*)::text || pg_is_in_recovery() from t").await, "1true");
    assert_eq!(ask(&cluster, "select pg_promote()::text").await, "true");
    put(&cluster, "insert into t values (3)").await;
    let timeline = "select timeline_id::text || (select count(*) from t) from pg_control_checkpoint()";
    put(&cluster, "checkpoint").await;
    assert_eq!(ask(&cluster, timeline).await, "22");
}
