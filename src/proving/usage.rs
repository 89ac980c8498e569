//! What a process has used, where the system says so (Linux's /proc).

use std::time::Duration;

/// What a process has used so far.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    /// User and system time.
    pub cpu: Duration,
    /// The most memory it has had, bytes.
    pub peak_rss: u64,
    /// The memory that it has, bytes.
    pub rss: u64,
}

impl Usage {
    /// Of a running process; `None` where the system doesn't say.
    pub fn of(pid: u32) -> Option<Self> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        // Fields 14 and 15, counted behind the command name, which may hold spaces.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let ticks: u64 = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
        let bytes = |name: &str| {
            let value = status.lines().find_map(|line| line.strip_prefix(name))?;
            Some(value.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
        };
        let per_second = rustix::param::clock_ticks_per_second().max(1);
        let cpu = Duration::from_millis(ticks * 1000 / per_second);
        Some(Self { cpu, peak_rss: bytes("VmHWM:")?, rss: bytes("VmRSS:")? })
    }
}
