//! `Sink`: takes lines at once and writes them from a thread of its own, many at a time.
//!
//! Who logs never waits for a pipe that nobody reads, a slow disk or another who logs. Where more is waiting than memory
//! should be given to it, lines are lost, and how many is told as soon as there is room.

use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Most that waits, in bytes.
const MOST: usize = 4 << 20;
/// How long lines wait for others that are written with them, where some have just been written.
const GATHERED: Duration = Duration::from_millis(5);

/// Where lines go. Clones are the same one.
#[derive(Clone, Debug)]
pub struct Sink(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    news: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    bytes: Vec<u8>,
    /// Lines that found no room.
    lost: u64,
    is_over: bool,
}

/// Writes what is left when it is dropped, and waits for that.
#[derive(Debug)]
#[must_use = "what is logged is lost without it"]
pub struct SinkGuard {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Sink {
    /// Lines are written to `out`. One that cannot be written is lost: there is nobody to tell.
    ///
    /// # Errors
    /// When there is no thread to be had.
    pub fn over(out: impl Write + Send + 'static) -> io::Result<(Self, SinkGuard)> {
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || theirs.write_to(out))?;
        let guard = SinkGuard {
            shared: Arc::clone(&shared),
            thread: Some(thread),
        };
        Ok((Self(shared), guard))
    }
}

impl Write for Sink {
    /// One line.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut waiting = self.0.lock();
        if waiting.bytes.len() + line.len() > MOST {
            waiting.lost += 1;
            return Ok(line.len());
        }
        let is_first = waiting.bytes.is_empty();
        waiting.bytes.extend_from_slice(line);
        drop(waiting);
        if is_first {
            self.0.news.notify_one();
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes until it is over and nothing is left.
    fn write_to(&self, mut out: impl Write) {
        let mut batch = Vec::new();
        loop {
            let (lost, is_over) = self.take(&mut batch);
            // There is nobody to tell.
            drop(out.write_all(&batch).and_then(|()| out.flush()));
            batch.clear();
            if lost > 0 {
                tracing::warn!(
                    lost,
                    "lines of the log came faster than they could be written"
                );
            }
            if is_over && self.lock().bytes.is_empty() {
                return;
            }
            self.rest();
        }
    }

    /// Waits for lines, and takes them all.
    fn take(&self, batch: &mut Vec<u8>) -> (u64, bool) {
        let is_idle = |waiting: &mut Waiting| waiting.bytes.is_empty() && !waiting.is_over;
        let waited = self.news.wait_while(self.lock(), is_idle);
        let mut waiting = waited.unwrap_or_else(PoisonError::into_inner);
        std::mem::swap(&mut waiting.bytes, batch);
        (std::mem::take(&mut waiting.lost), waiting.is_over)
    }

    /// A moment in which lines gather.
    fn rest(&self) {
        let may_rest = |waiting: &mut Waiting| waiting.bytes.len() < MOST / 2 && !waiting.is_over;
        let rested = self
            .news
            .wait_timeout_while(self.lock(), GATHERED, may_rest);
        drop(rested);
    }
}

impl Drop for SinkGuard {
    fn drop(&mut self) {
        self.shared.lock().is_over = true;
        self.shared.news.notify_one();
        if let Some(thread) = self.thread.take() {
            // One that panicked has nothing more to write.
            drop(thread.join());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// Hands on what is written, once somebody lets it, and tells when it is asked to.
    struct Gate {
        asked: mpsc::Sender<()>,
        open: mpsc::Receiver<()>,
        written: Arc<Mutex<Vec<u8>>>,
    }

    impl Write for Gate {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _nobody_listens = self.asked.send(());
            let _open = self.open.recv();
            self.written.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn nothing_is_lost_that_was_taken_and_the_order_stays() {
        let (opener, open) = mpsc::channel();
        let written = Arc::default();
        let gate = Gate {
            asked: mpsc::channel().0,
            open,
            written: Arc::clone(&written),
        };
        drop(opener); // it is never closed
        let (sink, guard) = Sink::over(gate).unwrap();
        for number in 0..10_000 {
            writeln!(sink.clone(), "{number}").unwrap();
        }
        drop(guard);
        let expected: String = (0..10_000).map(|number| format!("{number}\n")).collect();
        assert_eq!(*written.lock().unwrap(), expected.as_bytes());
    }

    #[test]
    fn nobody_waits_for_an_output_that_takes_nothing() {
        let (asked, is_asked) = mpsc::channel();
        let (opener, open) = mpsc::channel();
        let written = Arc::default();
        let gate = Gate {
            asked,
            open,
            written: Arc::clone(&written),
        };
        let (mut sink, guard) = Sink::over(gate).unwrap();
        let line = [b'x'; 1 << 16];
        assert_eq!(sink.write(&line).unwrap(), line.len());
        is_asked.recv().unwrap();
        for _ in 0..4 * MOST / line.len() {
            assert_eq!(sink.write(&line).unwrap(), line.len());
        }
        let waiting = sink.0.lock();
        let lost = 3 * MOST / line.len();
        assert_eq!((waiting.bytes.len(), waiting.lost), (MOST, lost as u64));
        drop(waiting);
        drop(opener);
        drop(guard);
        assert_eq!(written.lock().unwrap().len(), line.len() + MOST);
    }
}
