//! This machine's own metrics: processors, memory, load, disks, network interfaces, processes.
//!
//! ```text
//!   parameter                                        job        unit
//!   cpu.usage, cpu.N.usage                           system     percent of one processor's time
//!   memory.used, memory.available, swap.used         system     bytes
//!   load.1, load.5, load.15                          system     runnable tasks
//!   disk.MOUNT.used, .available, .read, .written     system     bytes; bytes a second
//!   network.INTERFACE.received, .sent, .errors       system     bytes a second; since the last
//!   process.cpu, process.memory, process.count       its name   percent; bytes; processes
//! ```
//!
//! A process is a job here: the job dimension then answers which program used what, over hosts.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use sysinfo::{
    CpuRefreshKind, DiskRefreshKind, Disks, MemoryRefreshKind, Networks, ProcessRefreshKind,
    ProcessesToUpdate, RefreshKind, System,
};

use super::{Reading, now_us};
use crate::intake::Intake;
use crate::series::{Measurement, Series};

/// How this machine is named and how often it is looked at.
#[derive(Clone, Debug)]
pub struct LiveOptions {
    /// The site of this machine. Default `local`.
    pub site: String,
    /// Its cluster. Default `live`.
    pub cluster: String,
    /// Its name. Default: the host name.
    pub host: String,
    /// Time between two looks. Default one second.
    pub interval: Duration,
    /// Programs reported, those that use most processor time first. Default 10.
    pub processes: usize,
}

impl Default for LiveOptions {
    fn default() -> Self {
        Self {
            site: "local".to_owned(),
            cluster: "live".to_owned(),
            host: System::host_name().unwrap_or_else(|| "localhost".to_owned()),
            interval: Duration::from_secs(1),
            processes: 10,
        }
    }
}

/// Records this machine's metrics at every interval, until it is dropped.
pub async fn run(intake: Arc<Intake>, options: LiveOptions) {
    let mut ticks = tokio::time::interval(options.interval.max(Duration::from_millis(100)));
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    let mut source = LiveSource::new(options);
    loop {
        ticks.tick().await;
        let time_us = now_us();
        let readings = source.collect(time_us);
        let measurements: Vec<Measurement<'_>> =
            readings.iter().map(|reading| reading.series.at(time_us, reading.value)).collect();
        intake.record(&measurements).await;
    }
}

/// Reads this machine's metrics.
pub struct LiveSource {
    options: LiveOptions,
    system: System,
    disks: Disks,
    networks: Networks,
    last_us: Option<i64>,
}

/// What the processes of one program use together.
#[derive(Clone, Copy, Debug, Default)]
struct Program {
    cpu: f64,
    memory: f64,
    count: f64,
}

impl LiveSource {
    /// A source that has not looked yet.
    pub fn new(options: LiveOptions) -> Self {
        let kind = RefreshKind::nothing()
            .with_cpu(CpuRefreshKind::nothing().with_cpu_usage())
            .with_memory(MemoryRefreshKind::everything());
        Self {
            options,
            system: System::new_with_specifics(kind),
            disks: Disks::new_with_refreshed_list_specifics(DiskRefreshKind::everything()),
            networks: Networks::new_with_refreshed_list(),
            last_us: None,
        }
    }

    /// Looks once. Shares and rates are since the last look, and absent at the first.
    pub fn collect(&mut self, now_us: i64) -> Vec<Reading> {
        self.refresh();
        let elapsed = self.last_us.map(|last_us| (now_us - last_us) as f64 / 1e6);
        self.last_us = Some(now_us);
        let elapsed = elapsed.filter(|seconds| *seconds > 0.0);
        let mut readings = Readings { options: &self.options, readings: Vec::new() };
        self.read_system(elapsed.is_some(), &mut readings);
        self.read_devices(elapsed, &mut readings);
        if elapsed.is_some() {
            self.read_programs(&mut readings);
        }
        readings.readings
    }

    fn refresh(&mut self) {
        self.system.refresh_cpu_usage();
        self.system.refresh_memory();
        let kind = ProcessRefreshKind::nothing().with_cpu().with_memory().without_tasks();
        self.system.refresh_processes_specifics(ProcessesToUpdate::All, true, kind);
        self.disks.refresh(true);
        self.networks.refresh(true);
    }

    fn read_system(&self, has_shares: bool, readings: &mut Readings<'_>) {
        if has_shares {
            readings.push("cpu.usage", f64::from(self.system.global_cpu_usage()));
            for (number, cpu) in self.system.cpus().iter().enumerate() {
                readings.push(&format!("cpu.{number}.usage"), f64::from(cpu.cpu_usage()));
            }
        }
        readings.push("memory.used", self.system.used_memory() as f64);
        readings.push("memory.available", self.system.available_memory() as f64);
        readings.push("swap.used", self.system.used_swap() as f64);
        let load = System::load_average();
        readings.push("load.1", load.one);
        readings.push("load.5", load.five);
        readings.push("load.15", load.fifteen);
    }

    fn read_devices(&self, elapsed: Option<f64>, readings: &mut Readings<'_>) {
        for disk in &self.disks {
            let name = format!("disk.{}", disk.mount_point().display());
            let used = disk.total_space().saturating_sub(disk.available_space());
            readings.push(&format!("{name}.used"), used as f64);
            readings.push(&format!("{name}.available"), disk.available_space() as f64);
            if let Some(seconds) = elapsed {
                let usage = disk.usage();
                readings.push(&format!("{name}.read"), usage.read_bytes as f64 / seconds);
                readings.push(&format!("{name}.written"), usage.written_bytes as f64 / seconds);
            }
        }
        let Some(seconds) = elapsed else { return };
        for (interface, data) in &self.networks {
            let name = format!("network.{interface}");
            let errors = data.errors_on_received() + data.errors_on_transmitted();
            readings.push(&format!("{name}.received"), data.received() as f64 / seconds);
            readings.push(&format!("{name}.sent"), data.transmitted() as f64 / seconds);
            readings.push(&format!("{name}.errors"), errors as f64);
        }
    }

    fn read_programs(&self, readings: &mut Readings<'_>) {
        let mut programs: BTreeMap<String, Program> = BTreeMap::new();
        // The library lists threads among processes; each would count its process's memory again.
        let processes = self.system.processes().values();
        for process in processes.filter(|process| process.thread_kind().is_none()) {
            let name = process.name().to_string_lossy().into_owned();
            let program = programs.entry(name).or_default();
            program.cpu += f64::from(process.cpu_usage());
            program.memory += process.memory() as f64;
            program.count += 1.0;
        }
        let mut busiest: Vec<(String, Program)> = programs.into_iter().collect();
        busiest.sort_by(|a, b| {
            (b.1.cpu, b.1.memory)
                .partial_cmp(&(a.1.cpu, a.1.memory))
                .unwrap_or(std::cmp::Ordering::Equal)
        });
        for (name, program) in busiest.iter().take(self.options.processes) {
            readings.push_for(name, "process.cpu", program.cpu);
            readings.push_for(name, "process.memory", program.memory);
            readings.push_for(name, "process.count", program.count);
        }
    }
}

/// Readings of one look, named for this machine.
struct Readings<'a> {
    options: &'a LiveOptions,
    readings: Vec<Reading>,
}

impl Readings<'_> {
    fn push(&mut self, parameter: &str, value: f64) {
        self.push_for("system", parameter, value);
    }

    fn push_for(&mut self, job: &str, parameter: &str, value: f64) {
        let series = Series {
            site: self.options.site.clone(),
            cluster: self.options.cluster.clone(),
            host: self.options.host.clone(),
            parameter: parameter.to_owned(),
            job: job.to_owned(),
        };
        self.readings.push(Reading { series, value });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_looks_give_levels_first_and_rates_then() {
        let mut source = LiveSource::new(LiveOptions::default());
        let first = source.collect(0);
        let has = |readings: &[Reading], parameter: &str| {
            readings.iter().any(|reading| reading.series.parameter == parameter)
        };
        assert!(has(&first, "memory.used") && has(&first, "load.1"));
        assert!(!has(&first, "cpu.usage"));
        let second = source.collect(1_000_000);
        assert!(has(&second, "cpu.usage") && has(&second, "cpu.0.usage"));
        assert!(has(&second, "process.memory"));
        assert!(second.iter().all(|reading| reading.value.is_finite() && reading.value >= 0.0));
    }

    #[tokio::test]
    async fn this_machine_is_recorded_and_verifies() {
        let fixture = crate::fixture::Fixture::new().await;
        let intake = fixture.intake("live");
        let options =
            LiveOptions { interval: Duration::from_millis(100), ..LiveOptions::default() };
        let looking = tokio::spawn(run(Arc::clone(&intake), options));
        crate::fixture::until(|| fixture.telemetry.counts().measurements > 50).await;
        looking.abort();
        // It may be in the middle of a look; what it was recording is recorded or not.
        let _ = looking.await;
        assert_eq!((intake.counts().refused, intake.counts().failed), (0, 0));
        fixture.verify_clean(fixture.telemetry.counts().measurements).await;
    }
}
