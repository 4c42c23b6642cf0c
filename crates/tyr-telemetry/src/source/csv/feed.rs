//! The rows of all files, one after the other, handed out in chunks.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::vec::IntoIter;

use tyr::{Error, Result};

use super::{Columns, ReplayOptions, ReplayProgress, Row, names_of};
use crate::series::Series;

/// Rows of a chunk: few enough that workers finish together.
const CHUNK_LEN: usize = 128;

/// Reads files in order.
pub struct Feed {
    options: ReplayOptions,
    files: IntoIter<PathBuf>,
    current: Option<OpenFile>,
    bytes_before: u64,
    progress: ReplayProgress,
}

/// The file that is being read.
struct OpenFile {
    path: PathBuf,
    reader: csv::Reader<File>,
    places: Places,
    record: csv::StringRecord,
    /// The names of the last row; most rows repeat them.
    series: Arc<Series>,
}

/// Where in a row the columns are.
struct Places {
    time: usize,
    value: usize,
    site: Option<usize>,
    cluster: Option<usize>,
    host: Option<usize>,
    parameter: Option<usize>,
    job: Option<usize>,
}

impl Feed {
    /// A feed of these files, which must all be there.
    pub fn open(files: &[PathBuf], options: ReplayOptions) -> Result<Self> {
        let mut progress = ReplayProgress { files_total: files.len(), ..Default::default() };
        for path in files {
            let meta = std::fs::metadata(path)
                .map_err(|error| Error::io(format!("cannot read {}", path.display()), error))?;
            if !meta.is_file() {
                return Err(Error::invalid(format!("{} is not a file", path.display())));
            }
            progress.bytes_total += meta.len();
        }
        let files: Vec<PathBuf> = files.to_vec();
        Ok(Self { options, files: files.into_iter(), current: None, bytes_before: 0, progress })
    }

    /// How far it is.
    pub fn progress(&self) -> ReplayProgress {
        self.progress
    }

    /// Adds the next rows to `rows`, none at the end of the last file. What is wrong with the rows
    /// that are left out goes to `refuse`.
    pub fn fill(&mut self, rows: &mut Vec<Row>, mut refuse: impl FnMut(String)) -> Result<()> {
        while rows.len() < CHUNK_LEN {
            let Some(file) = &mut self.current else {
                match self.files.next() {
                    Some(path) => self.current = Some(OpenFile::open(path, &self.options)?),
                    None => return Ok(()),
                }
                continue;
            };
            match file.next_row(&self.options) {
                Some(Ok(row)) => rows.push(row),
                Some(Err(RowError::Refused(why))) => refuse(why),
                Some(Err(RowError::Broken(error))) => return Err(error),
                None => {
                    self.bytes_before += file.reader.position().byte();
                    self.progress.bytes_read = self.bytes_before;
                    self.progress.files_done += 1;
                    self.current = None;
                    continue;
                }
            }
            self.progress.rows += 1;
            self.progress.bytes_read = self.bytes_before + file.reader.position().byte();
        }
        Ok(())
    }
}

/// Why there is no row.
enum RowError {
    /// The row is wrong; the next may be good.
    Refused(String),
    /// The file cannot be read on.
    Broken(Error),
}

impl OpenFile {
    fn open(path: PathBuf, options: &ReplayOptions) -> Result<Self> {
        let cannot = |error: csv::Error| {
            Error::unavailable(format!("cannot read {}", path.display())).with_source(error)
        };
        let mut reader = csv::ReaderBuilder::new()
            .flexible(true)
            .trim(csv::Trim::All)
            .from_path(&path)
            .map_err(cannot)?;
        let headers = reader.headers().map_err(cannot)?;
        let places = Places::find(&options.columns, headers).map_err(|missing| {
            let found: Vec<&str> = headers.iter().collect();
            Error::invalid(format!(
                "{} has no column \"{}\"; its columns are: {}",
                path.display(),
                missing.escape_debug(),
                found.join(", ").escape_debug()
            ))
        })?;
        let series = Arc::new(names_of(&path, options));
        Ok(Self { path, reader, places, record: csv::StringRecord::new(), series })
    }

    fn next_row(&mut self, options: &ReplayOptions) -> Option<Result<Row, RowError>> {
        match self.reader.read_record(&mut self.record) {
            Ok(false) => None,
            Ok(true) => Some(self.parse_row(options).map_err(|why| {
                let line = self.record.position().map_or(0, csv::Position::line);
                RowError::Refused(format!("{}:{line}: {why}", self.path.display()))
            })),
            Err(error) if error.is_io_error() => {
                let what = format!("cannot read {}", self.path.display());
                Some(Err(RowError::Broken(Error::unavailable(what).with_source(error))))
            }
            Err(error) => Some(Err(RowError::Refused(format!("{}: {error}", self.path.display())))),
        }
    }

    fn parse_row(&mut self, options: &ReplayOptions) -> Result<Row, String> {
        let cell = |place: usize, what: &str| {
            self.record.get(place).ok_or_else(|| format!("the row has no {what}"))
        };
        let time = cell(self.places.time, "time")?;
        let time_us = options
            .time_format
            .to_us(time)
            .ok_or_else(|| format!("\"{}\" is not a time", time.escape_debug()))?;
        let value = cell(self.places.value, "value")?;
        let value =
            value.parse().map_err(|_| format!("\"{}\" is not a number", value.escape_debug()))?;
        let named = [
            (self.places.site, &self.series.site),
            (self.places.cluster, &self.series.cluster),
            (self.places.host, &self.series.host),
            (self.places.parameter, &self.series.parameter),
            (self.places.job, &self.series.job),
        ];
        let mut is_same = true;
        for (place, name) in named {
            if let Some(place) = place {
                is_same &= cell(place, "name in every column")? == name;
            }
        }
        if !is_same {
            self.rename();
        }
        Ok(Row { series: Arc::clone(&self.series), time_us, value })
    }

    fn rename(&mut self) {
        let record = &self.record;
        let name = |place: Option<usize>, old: &String| {
            place.and_then(|place| record.get(place)).map_or_else(|| old.clone(), str::to_owned)
        };
        let old = &self.series;
        self.series = Arc::new(Series {
            site: name(self.places.site, &old.site),
            cluster: name(self.places.cluster, &old.cluster),
            host: name(self.places.host, &old.host),
            parameter: name(self.places.parameter, &old.parameter),
            job: name(self.places.job, &old.job),
        });
    }
}

impl Places {
    /// Where the columns are, or the name of one that is missing.
    fn find(columns: &Columns, headers: &csv::StringRecord) -> Result<Self, String> {
        let place = |name: &String| {
            headers.iter().position(|header| header == name).ok_or_else(|| name.clone())
        };
        let optional = |name: &Option<String>| name.as_ref().map(place).transpose();
        Ok(Self {
            time: place(&columns.time)?,
            value: place(&columns.value)?,
            site: optional(&columns.site)?,
            cluster: optional(&columns.cluster)?,
            host: optional(&columns.host)?,
            parameter: optional(&columns.parameter)?,
            job: optional(&columns.job)?,
        })
    }
}
