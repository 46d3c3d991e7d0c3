//! A script as a TOML file. The format is described on the crate's front page.

mod reply;

use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use serde::de::{Deserializer, Error};

use crate::error::ScriptError;
use reply::ReplyFile;

use crate::{Conduct, Phase, Reply, Rule, Script};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptFile {
    phases: Option<Vec<PhaseFile>>,
    connections: Option<Connections>,
    replies: Option<Vec<ReplyFile>>,
    #[serde(default)]
    cycle: bool,
    #[serde(default)]
    rules: Vec<RuleFile>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PhaseFile {
    #[serde(deserialize_with = "duration")]
    after: Duration,
    connections: Option<Connections>,
    replies: Option<Vec<ReplyFile>>,
    #[serde(default)]
    cycle: bool,
    #[serde(default)]
    rules: Vec<RuleFile>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Connections {
    Refuse,
    Reset,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleFile {
    path: Option<String>,
    model: Option<String>,
    key: Option<String>,
    replies: Vec<ReplyFile>,
    #[serde(default)]
    cycle: bool,
}

fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(deserializer)?;
    humantime::parse_duration(&text).map_err(|error| {
        D::Error::custom(format!(
            "{text:?} is no duration ({error}); write \"500ms\", \"2s\" or \"1m\""
        ))
    })
}

impl Script {
    /// Reads a script from TOML text.
    ///
    /// # Errors
    /// Naming the place and what is wrong with it.
    pub fn from_toml(text: &str) -> Result<Self, ScriptError> {
        let file: ScriptFile =
            toml::from_str(text).map_err(|error| ScriptError::new("", error.to_string()))?;
        let script = file.into_script()?;
        script.check()?;
        Ok(script)
    }

    /// Reads a script from a TOML file.
    ///
    /// # Errors
    /// Naming the file, the place in it and what is wrong there.
    pub fn load(path: &Path) -> Result<Self, ScriptError> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|error| ScriptError::new(&name, error.to_string()))?;
        Self::from_toml(&text).map_err(|error| ScriptError::new(&name, error.to_string()))
    }
}

impl ScriptFile {
    fn into_script(self) -> Result<Script, ScriptError> {
        let single = PhaseFile {
            after: Duration::ZERO,
            connections: self.connections,
            replies: self.replies,
            cycle: self.cycle,
            rules: self.rules,
        };
        let Some(phases) = self.phases else {
            return Ok(Script::always(single.into_conduct("")?));
        };
        if !single.is_blank() {
            let text = "connections, replies, cycle and rules stand either at the top or inside phases; move them into a phase";
            return Err(ScriptError::new("phases", text));
        }
        let phases = phases.into_iter().enumerate().map(|(index, phase)| {
            let after = phase.after;
            Ok(Phase::at(
                after,
                phase.into_conduct(&format!("phases[{index}]."))?,
            ))
        });
        Ok(Script::phases(
            phases.collect::<Result<Vec<_>, ScriptError>>()?,
        ))
    }
}

impl PhaseFile {
    fn is_blank(&self) -> bool {
        self.connections.is_none() && self.replies.is_none() && !self.cycle && self.rules.is_empty()
    }

    fn into_conduct(self, place: &str) -> Result<Conduct, ScriptError> {
        if let Some(connections) = self.connections {
            if self.replies.is_some() || self.cycle || !self.rules.is_empty() {
                let text = "no request arrives here, so replies, cycle and rules must be left out";
                return Err(ScriptError::new(format!("{place}connections"), text));
            }
            return Ok(match connections {
                Connections::Refuse => Conduct::refuse(),
                Connections::Reset => Conduct::reset_on_accept(),
            });
        }
        let mut conduct = match self.replies {
            None if self.cycle => {
                return Err(ScriptError::new(
                    format!("{place}cycle"),
                    "there are no replies to cycle",
                ));
            }
            None => Reply::ok().into(),
            Some(list) if self.cycle => Conduct::cycle(replies(list, place)?),
            Some(list) => Conduct::sequence(replies(list, place)?),
        };
        for (index, rule) in self.rules.into_iter().enumerate() {
            conduct = conduct.rule(rule.into_rule(&format!("{place}rules[{index}]."))?);
        }
        Ok(conduct)
    }
}

impl RuleFile {
    fn into_rule(self, place: &str) -> Result<Rule, ScriptError> {
        let replies = replies(self.replies, place)?;
        let rule = Rule::when(self.path, self.model, self.key);
        Ok(if self.cycle {
            rule.cycle(replies)
        } else {
            rule.sequence(replies)
        })
    }
}

fn replies(list: Vec<ReplyFile>, place: &str) -> Result<Vec<Reply>, ScriptError> {
    let replies = list.into_iter().enumerate().map(|(index, reply)| {
        let place = format!("{place}replies[{index}]");
        reply
            .into_reply()
            .map_err(|problem| ScriptError::new(place, problem))
    });
    replies.collect()
}

#[cfg(test)]
mod tests;
