//! The settings as flags of a command: clap is told of them from the table.

use std::collections::BTreeMap;

use clap::builder::StyledStr;
use clap::error::Error;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};

use super::setting::{Group, Setting};
use super::table::SETTINGS;

/// The settings that were given as flags, as texts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SettingFlags(pub BTreeMap<&'static str, String>);

fn argument(setting: &'static Setting) -> Arg {
    let flag = setting.flag();
    let fallback = match setting.default {
        Some(text) => format!("; default {text}"),
        None => String::new(),
    };
    let help = format!(
        "{} [{}{fallback}; env {}]",
        setting.meaning,
        setting.kind.range(),
        setting.variable()
    );
    let argument = Arg::new(setting.name)
        .long(flag)
        .value_name(setting.kind.placeholder())
        .help_heading(setting.group.heading())
        .help(StyledStr::from(help));
    match setting.kind.is_switch() {
        true => argument.num_args(0..=1).require_equals(true).default_missing_value("true"),
        false => argument,
    }
}

impl Args for SettingFlags {
    fn augment_args(command: Command) -> Command {
        let in_group = |group: Group| SETTINGS.iter().filter(move |it| it.group == group);
        let settings = Group::ALL.into_iter().flat_map(in_group);
        settings.fold(command, |command, setting| command.arg(argument(setting)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for SettingFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut flags = Self::default();
        flags.update_from_arg_matches(matches)?;
        Ok(flags)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        for setting in &SETTINGS {
            if let Some(text) = matches.get_one::<String>(setting.name) {
                self.0.insert(setting.name, text.clone());
            }
        }
        Ok(())
    }
}
