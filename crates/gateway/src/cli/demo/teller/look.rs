//! Signs and colours, and what stands for them where there are none.

use super::super::callers::Answer;
use super::super::event::Lane;

/// Columns kept for the number of calls that have no room.
const NOTE: usize = 4;

/// What the reader's screen can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Look {
    /// A pipe or a file: letters.
    Plain,
    /// A terminal that wants no colours.
    Signs,
    Colours,
}

/// What a piece of text is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tone {
    Good,
    Spare,
    Warning,
    Bad,
    Title,
    Aside,
}

impl Look {
    pub(super) fn paint(self, tone: Tone, text: &str) -> String {
        if self != Self::Colours || text.is_empty() {
            return text.to_owned();
        }
        let code = match tone {
            Tone::Good => "32",
            Tone::Spare => "36",
            Tone::Warning => "33",
            Tone::Bad => "1;31",
            Tone::Title => "1",
            Tone::Aside => "2",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }

    /// The first on a terminal, the second elsewhere.
    pub(super) fn pick(self, sign: &'static str, plain: &'static str) -> &'static str {
        if self == Self::Plain { plain } else { sign }
    }

    /// One answer.
    pub(super) fn answer(self, answer: Answer) -> (Tone, &'static str) {
        match answer {
            Answer::Primary => (Tone::Good, self.pick("●", "P")),
            Answer::Spare => (Tone::Spare, self.pick("◆", "S")),
            Answer::SpareAfterFailure => (Tone::Warning, self.pick("◇", "f")),
            Answer::Nobody => (Tone::Bad, self.pick("✗", "x")),
        }
    }

    /// A call that has not ended.
    pub(super) fn waiting(self) -> (Tone, &'static str) {
        (Tone::Aside, self.pick("·", "."))
    }

    /// Answers in their order and the calls under way, in a column of this width.
    pub(super) fn lane(self, lane: &Lane, width: usize) -> String {
        let answers = lane.answers.iter().map(|answer| self.answer(*answer));
        let mut signs: Vec<_> = answers
            .chain(std::iter::repeat_n(self.waiting(), lane.waiting))
            .collect();
        let more = signs.len().saturating_sub(width);
        let note = if more > 0 {
            format!("+{}", more + NOTE)
        } else {
            String::new()
        };
        if more > 0 {
            signs.truncate(width.saturating_sub(NOTE));
        }
        let blank = width.saturating_sub(signs.len() + note.len());
        let runs = signs.chunk_by(|left, right| left == right);
        let painted = runs.filter_map(|run| {
            run.first()
                .map(|(tone, sign)| self.paint(*tone, &sign.repeat(run.len())))
        });
        painted.collect::<String>() + &note + &" ".repeat(blank)
    }
}
