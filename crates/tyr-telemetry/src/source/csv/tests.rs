//! Files of our own making, replayed.

use super::*;
use crate::calendar::{TimeRange, Window};
use crate::fixture::Fixture;
use crate::subject::{AggregateName, Scope, Subject};

fn write(folder: &tempfile::TempDir, name: &str, text: &str) -> PathBuf {
    let path = folder.path().join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, text).unwrap();
    path
}

/// A series as the Numenta Anomaly Benchmark writes it: every five minutes from 2014-04-01 on.
fn nab(rows: usize) -> String {
    let mut text = "timestamp,value\n".to_owned();
    for row in 0..rows {
        let minute = row * 5;
        text.push_str(&format!(
            "2014-04-{:02} {:02}:{:02}:00,{}\n",
            1 + minute / 1440,
            minute / 60 % 24,
            minute % 60,
            row as f64 * 0.5 - 3.0
        ));
    }
    text
}

async fn replay_files(
    fixture: &Fixture,
    files: &[PathBuf],
    options: ReplayOptions,
) -> Result<ReplayReport> {
    replay(fixture.intake("csv"), files, options, |_| ()).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nab_files_replay_as_they_are_and_are_named_by_their_paths() {
    let fixture = Fixture::new().await;
    let folder = tempfile::tempdir().unwrap();
    let files = [
        write(&folder, "realTweets/volume_A.csv", &nab(600)),
        write(&folder, "realTweets/volume_B.csv", nab(300).trim_end()),
    ];
    let report = replay_files(&fixture, &files, ReplayOptions::default()).await.unwrap();
    assert_eq!((report.files, report.rows, report.counts.stored), (2, 900, 900));
    assert_eq!(report.counts.refused, 0);
    let name = AggregateName {
        subject: Subject::parse(Scope::Cluster, "csv/realTweets").unwrap(),
        parameter: "value".into(),
    };
    let days = fixture.telemetry.aggregate(&name, Window::Day, TimeRange::ALL).await.unwrap();
    let counts: Vec<u64> = days.points.iter().map(|point| point.count).collect();
    assert_eq!(counts, [576, 300, 24]);
    fixture.verify_clean(900).await;
}

#[tokio::test]
async fn columns_name_what_they_are_told_to() {
    let fixture = Fixture::new().await;
    let folder = tempfile::tempdir().unwrap();
    let text = "when,machine,what,v,where\n1700000000000,a,load,1.5,cern\n\
                1700000000001,b,load,2.5,fnal\n1700000000002,a,temp,20,cern\n";
    let files = [write(&folder, "x.csv", text)];
    let columns = Columns {
        time: "when".into(),
        value: "v".into(),
        site: Some("where".into()),
        host: Some("machine".into()),
        parameter: Some("what".into()),
        ..Columns::default()
    };
    let options = ReplayOptions {
        columns,
        time_format: TimeFormat::Milliseconds,
        is_named_by_path: false,
        ..ReplayOptions::default()
    };
    let report = replay_files(&fixture, &files, options).await.unwrap();
    assert_eq!(report.counts.stored, 3);
    let mut series = ReplayOptions::default().defaults;
    (series.site, series.host, series.parameter) = ("fnal".into(), "b".into(), "load".into());
    let raw = fixture.telemetry.raw(&series, TimeRange::ALL, 10).await.unwrap();
    assert_eq!(raw.samples.len(), 1);
    assert_eq!((raw.samples[0].time_us, raw.samples[0].value), (1_700_000_000_001_000, 2.5));
}

#[tokio::test]
async fn bad_rows_are_refused_by_name_and_line_and_the_others_recorded() {
    let fixture = Fixture::new().await;
    let folder = tempfile::tempdir().unwrap();
    let text = "timestamp,value\n2014-04-01 00:00:00,1\nnoon,2\n2014-04-01 00:05:00,many\n\
                2014-04-01 00:10:00\n2014-04-01 00:15:00,NaN\n2014-04-01 00:20:00,3\n";
    let files = [write(&folder, "x.csv", text)];
    let options = ReplayOptions { concurrency: 1, ..ReplayOptions::default() };
    let report = replay_files(&fixture, &files, options).await.unwrap();
    assert_eq!((report.rows, report.counts.stored, report.counts.refused), (6, 2, 4));
    let notices = fixture.notices();
    assert!(notices[0].contains("x.csv:3:") && notices[0].contains("noon"), "{notices:?}");
    fixture.verify_clean(2).await;
}

#[tokio::test]
async fn a_missing_file_or_column_is_an_error_that_names_it() {
    let fixture = Fixture::new().await;
    let folder = tempfile::tempdir().unwrap();
    let missing = [folder.path().join("none.csv")];
    let error = replay_files(&fixture, &missing, ReplayOptions::default()).await.unwrap_err();
    assert!(error.message().contains("none.csv"), "{error}");
    let files = [write(&folder, "x.csv", "time,value\n1,2\n")];
    let error = replay_files(&fixture, &files, ReplayOptions::default()).await.unwrap_err();
    assert!(error.message().contains("timestamp") && error.message().contains("time, value"));
}
