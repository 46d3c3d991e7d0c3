//! Percentages on standard error, for long work at a terminal.

use std::io::{self, IsTerminal as _, Write as _};

/// How far something is.
pub(super) struct Progress {
    verb: &'static str,
    /// None where nobody is shown anything, or the whole is not known.
    whole: Option<u64>,
    /// Between two signs.
    step: u64,
    done: u64,
    told: u64,
}

impl Progress {
    /// Of work whose size is `whole`, with a sign each `step`, where standard error is a terminal.
    pub(super) fn new(verb: &'static str, whole: Option<u64>, step: u64) -> Self {
        let shown = io::stderr().is_terminal();
        Self {
            verb,
            whole: whole.filter(|whole| shown && *whole > step),
            step,
            done: 0,
            told: 0,
        }
    }

    /// The same, silent where standard output is the terminal: its lines are sign enough.
    pub(super) fn beside_output(verb: &'static str, whole: Option<u64>, step: u64) -> Self {
        let whole = whole.filter(|_| !io::stdout().is_terminal());
        Self::new(verb, whole, step)
    }

    pub(super) fn add(&mut self, more: u64) {
        self.done += more;
        if let Some(whole) = self.whole
            && self.done - self.told >= self.step
        {
            self.told = self.done;
            self.tell(format_args!(
                "\r{} {} %",
                self.verb,
                self.done.min(whole) * 100 / whole.max(1)
            ));
        }
    }

    pub(super) fn finish(&self) {
        if self.told > 0 {
            self.tell(format_args!("\r{} 100 %\n", self.verb));
        }
    }

    fn tell(&self, text: core::fmt::Arguments<'_>) {
        // Progress that cannot be shown is no reason to stop.
        let _shown = io::stderr().lock().write_fmt(text);
    }
}
