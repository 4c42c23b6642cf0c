//! `tyr class`: methods of users that run beside blobs, in Lua.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::json;
use tyr_object::blocking::Classes;
use tyr_object::{Call, ClassRecord, Limits};

use super::source::SourceArguments;
use crate::data::{parse_bytes, to_base64};
use crate::failure::{Failure, Outcome};
use crate::output::table;
use crate::session::{Access, Session};

/// What to do with object classes.
#[derive(Debug, Subcommand)]
pub enum ClassCommand {
    /// Make a script the version of its class that is called from now on
    Install(InstallArguments),
    /// List the classes that are installed
    #[command(after_help = "Example:\n  tyr class list --json")]
    List,
    /// Show the versions of a class and where it may be called, or a script of it
    Show(ShowArguments),
    /// Let a class be called in a keyspace
    Enable(PlaceArguments),
    /// Let a class be called in a keyspace no more
    Disable(PlaceArguments),
    /// Let a version of a class be called no more, for good
    Retire(RetireArguments),
    /// Call a method beside a blob, and write what it answers to standard output
    Call(CallArguments),
    /// Run the tests that a script brings, in memory
    #[command(after_help = TEST_HELP)]
    Test(ScriptArguments),
}

const TEST_HELP: &str = "\
Exit code 1 when a test fails. A test is a function of the blob, which is not there yet, and of \
`call`.

Example:
  tyr class test register.lua";

/// A script.
#[derive(Args, Debug)]
pub struct ScriptArguments {
    /// The file with the script; `-` for standard input
    file: PathBuf,
    /// The name of the class, for a script that registers handlers and does not say one
    #[arg(long)]
    name: Option<String>,
}

/// `tyr class install`
#[derive(Args, Debug)]
#[command(after_help = "\
The script is run once, and so are the tests that it brings: if one fails nothing is installed. \
Versions are numbered from 1 on and never changed. Calls that have begun go on with theirs. A \
class has to be enabled in a keyspace before it can be called there.

Example:
  tyr class install register.lua")]
pub struct InstallArguments {
    #[command(flatten)]
    script: ScriptArguments,
}

/// `tyr class show`
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  tyr class show register --script")]
pub struct ShowArguments {
    /// The class
    class: String,
    /// Write the script of the version that is called, or of --number, to standard output
    #[arg(long)]
    script: bool,
    /// Of this version
    #[arg(long, value_name = "NUMBER", requires = "script")]
    number: Option<u32>,
}

/// `tyr class enable`, `tyr class disable`
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  tyr class enable register registers")]
pub struct PlaceArguments {
    /// The class
    class: String,
    /// The keyspace
    keyspace: String,
}

/// `tyr class retire`
#[derive(Args, Debug)]
#[command(after_help = "\
Its script is removed. Where it was the version that is called, that is the highest that is left.

Example:
  tyr class retire register 1")]
pub struct RetireArguments {
    /// The class
    class: String,
    /// The number of the version
    number: u32,
}

/// `tyr class call`
#[derive(Args, Debug)]
#[command(after_help = "\
A call is one transaction: what the method reads stands still, what it writes takes effect at once \
or not at all. The blob need not be there. The exit code is that of the failure's kind.

Examples:
  tyr class call registers one register set first
  tyr class call registers one register get
  tyr class call logs log/0 zlog write hex:0000000000000007")]
pub struct CallArguments {
    /// The keyspace
    keyspace: String,
    /// The key of the blob
    key: String,
    /// The class
    class: String,
    /// The method
    method: String,
    /// What the method is given: text, hex:00ff, or base64:AP8=
    #[arg(conflicts_with = "file", allow_negative_numbers = true)]
    input: Option<String>,
    /// The same from a file; `-` for standard input
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

/// Does what the command line says.
pub fn run(session: &mut Session, command: ClassCommand) -> Outcome {
    match command {
        ClassCommand::Install(arguments) => install(session, arguments.script),
        ClassCommand::List => list(session),
        ClassCommand::Show(arguments) => show(session, &arguments),
        ClassCommand::Enable(arguments) => enable(session, &arguments, true),
        ClassCommand::Disable(arguments) => enable(session, &arguments, false),
        ClassCommand::Retire(arguments) => retire(session, &arguments),
        ClassCommand::Call(arguments) => call(session, arguments),
        ClassCommand::Test(arguments) => test(session, arguments),
    }
}

fn classes(session: &mut Session, access: Access) -> Outcome<Classes> {
    Ok(Classes::of(&session.open(access)?))
}

/// A script, or the input of a call, in a file or on standard input.
fn read(session: &Session, file: PathBuf) -> Outcome<Vec<u8>> {
    let name = file.display().to_string();
    SourceArguments::of_file(file).read_all(session, Limits::IN_PLACE.input as u64, &name)
}

fn install(session: &mut Session, arguments: ScriptArguments) -> Outcome {
    let script = read(session, arguments.file)?;
    let classes = classes(session, Access::Create)?;
    let done = classes.install(arguments.name.as_deref(), &script)?;
    let (class, version) = (&done.class, done.version);
    let text = match done.is_new {
        true => format!("{class} {version}"),
        false => format!("{class} {version} was installed already"),
    };
    let fields = json!({ "class": class, "version": version, "new": done.is_new });
    session.output.record(&fields, &text)
}

fn list(session: &mut Session) -> Outcome {
    let all = classes(session, Access::Read)?.list()?;
    if session.output.is_json() {
        return all.iter().try_for_each(|(name, record)| {
            let fields =
                json!({ "class": name, "current": record.current, "keyspaces": record.keyspaces });
            session.output.json(&fields)
        });
    }
    let rows: Vec<Vec<String>> = all.iter().map(|(name, record)| row(name, record)).collect();
    session.output.line(&table(&["class", "version", "keyspaces"], &rows, &[1]))
}

fn row(name: &str, record: &ClassRecord) -> Vec<String> {
    let version = record.current.map_or_else(|| "retired".to_owned(), |number| number.to_string());
    vec![name.to_owned(), version, places(record)]
}

/// The keyspaces in which a class may be called.
fn places(record: &ClassRecord) -> String {
    let keyspaces: Vec<&str> = record.keyspaces.iter().map(String::as_str).collect();
    keyspaces.join(", ")
}

fn show(session: &mut Session, arguments: &ShowArguments) -> Outcome {
    let classes = classes(session, Access::Read)?;
    if arguments.script {
        let script = classes.script(&arguments.class, arguments.number)?;
        return session.output.bytes(&script);
    }
    let record = classes.get(&arguments.class)?;
    if session.output.is_json() {
        let mut fields = json!(record);
        fields["class"] = json!(arguments.class);
        return session.output.json(&fields);
    }
    let places = if record.keyspaces.is_empty() { "none".to_owned() } else { places(&record) };
    session.output.line(&format!("enabled in: {places}\n"))?;
    let state = |number, is_retired| match is_retired {
        true => "retired",
        false if Some(number) == record.current => "called",
        false => "",
    };
    let rows = record.versions.iter().map(|it| {
        let state = state(it.number, it.is_retired).to_owned();
        vec![it.number.to_string(), it.bytes.to_string(), state, it.sha256.clone()]
    });
    let rows: Vec<Vec<String>> = rows.collect();
    session.output.line(&table(&["version", "bytes", "", "sha256"], &rows, &[0, 1]))
}

fn enable(session: &mut Session, arguments: &PlaceArguments, is_enabled: bool) -> Outcome {
    let PlaceArguments { class, keyspace } = arguments;
    let classes = classes(session, Access::Write)?;
    let is_new = match is_enabled {
        true => classes.enable(class, keyspace)?,
        false => classes.disable(class, keyspace)?,
    };
    let fields =
        json!({ "class": class, "keyspace": keyspace, "enabled": is_enabled, "new": is_new });
    let text = match (is_new, is_enabled) {
        (true, _) => String::new(),
        (false, true) => format!("{class} was enabled in {keyspace} already"),
        (false, false) => format!("{class} was not enabled in {keyspace}"),
    };
    session.output.record(&fields, &text)
}

fn retire(session: &mut Session, arguments: &RetireArguments) -> Outcome {
    let RetireArguments { class, number } = arguments;
    classes(session, Access::Write)?.retire(class, *number)?;
    session.output.record(&json!({ "class": class, "retired": number }), "")
}

fn call(session: &mut Session, arguments: CallArguments) -> Outcome {
    let input = match (arguments.input, arguments.file) {
        (Some(input), _) => parse_bytes(&input)?,
        (None, Some(file)) => read(session, file)?,
        (None, None) => Vec::new(),
    };
    let store = session.open(Access::Write)?;
    let keyspace = store.keyspace(&arguments.keyspace)?;
    let call = Call::new(arguments.class, arguments.method, input);
    let answer = Classes::of(&store).call(&keyspace, &arguments.key, &call)?;
    if session.output.is_json() {
        let text = std::str::from_utf8(&answer).ok();
        return session.output.json(&json!({ "base64": to_base64(&answer), "text": text }));
    }
    session.output.bytes(&answer)
}

fn test(session: &mut Session, arguments: ScriptArguments) -> Outcome {
    let file = arguments.file.display().to_string();
    let script = read(session, arguments.file)?;
    let outcomes = tyr_object::test(arguments.name.as_deref(), &script)?;
    // Lines of a script are told of a file `class`: only here it is known which one that is.
    let told = |text: &str| match text.strip_prefix("class:") {
        Some(rest) => format!("{file}:{rest}"),
        None => text.to_owned(),
    };
    for outcome in &outcomes {
        let failure = outcome.failure.as_ref().map(|failure| told(failure.text()));
        let text = match &failure {
            None => format!("{} ok", outcome.name),
            Some(failure) => format!("{} FAILED: {failure}", outcome.name),
        };
        session.output.record(&json!({ "test": outcome.name, "failure": failure }), &text)?;
        for (level, line) in &outcome.lines {
            let fields = json!({ "level": level.name(), "text": line });
            session.output.record(&fields, &format!("  {}: {line}", level.name()))?;
        }
    }
    let failed = outcomes.iter().filter(|outcome| outcome.failure.is_some()).count();
    if failed > 0 {
        return Err(Failure::Differences(format!("{failed} of {} tests failed", outcomes.len())));
    }
    let text = if outcomes.is_empty() { "the script brings no tests" } else { "" };
    session.output.record(&json!({ "tests": outcomes.len(), "failed": 0 }), text)
}
