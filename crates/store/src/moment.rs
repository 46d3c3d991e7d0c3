//! `Moment`: one instant, as this process, the world and the machine tell it.
//!
//! A breaker's instants are ticks of its registry's clock, which die with the process. The machine's time since it was
//! booted goes on and never steps, but says nothing after the next boot; wall-clock time survives that, and may step.

use std::sync::Arc;
#[cfg(target_os = "linux")]
use std::sync::LazyLock;
use std::time::{SystemTime, UNIX_EPOCH};

use fuseline_core::{Clock, Tick};

/// An instant by three clocks.
///
/// ```
/// use fuseline_core::Clock;
/// use fuseline_store::Moment;
///
/// let clock = Clock::system();
/// let now = Moment::read(&clock);
/// assert!(now.tick <= clock.now());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "plain data that tests write out")]
pub struct Moment {
    /// By the registry's clock.
    pub tick: Tick,
    /// Wall-clock time, in ms since 1970.
    pub wall_ms: u64,
    /// By the machine, where it says.
    pub boot: Option<Boot>,
}

/// Time by a machine that has been running since one boot.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "plain data that tests write out")]
pub struct Boot {
    /// Which boot.
    pub id: Arc<str>,
    /// Milliseconds since then.
    pub ms: u64,
}

/// None where the system does not say.
#[cfg(target_os = "linux")]
static BOOT_ID: LazyLock<Option<Arc<str>>> = LazyLock::new(|| {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim().into())
});

impl Moment {
    /// Now, with `clock` the registry's.
    #[expect(
        clippy::disallowed_methods,
        reason = "the edge at which ticks become dates"
    )]
    pub fn read(clock: &Clock) -> Self {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH);
        Self {
            tick: clock.now(),
            wall_ms: wall.map_or(0, |wall| {
                u64::try_from(wall.as_millis()).unwrap_or(u64::MAX)
            }),
            boot: Boot::read(),
        }
    }

    /// When a tick is, or was, by the wall clock.
    pub(crate) fn wall_of(&self, tick: Tick) -> u64 {
        shift(self.wall_ms, self.tick, tick)
    }

    /// When a tick is, or was, in milliseconds since boot.
    pub(crate) fn boot_of(&self, tick: Tick) -> Option<u64> {
        Some(shift(self.boot.as_ref()?.ms, self.tick, tick))
    }
}

impl Boot {
    /// By the system's own clock, which goes on while the machine sleeps. `/proc/uptime` would be another's in some
    /// containers.
    #[cfg(target_os = "linux")]
    fn read() -> Option<Self> {
        use rustix::time::{ClockId, clock_gettime};

        let time = clock_gettime(ClockId::Boottime);
        let whole = u64::try_from(time.tv_sec).ok()?.checked_mul(1_000)?;
        Some(Self {
            id: BOOT_ID.clone()?,
            ms: whole + u64::try_from(time.tv_nsec).ok()? / 1_000_000,
        })
    }

    #[cfg(not(target_os = "linux"))]
    const fn read() -> Option<Self> {
        None
    }
}

/// The instant that is as far from `at` as `to` is from `from`.
fn shift(at: u64, from: Tick, to: Tick) -> u64 {
    let (from, to) = (from.as_millis(), to.as_millis());
    at.saturating_add(to.saturating_sub(from))
        .saturating_sub(from.saturating_sub(to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clocks_go_forward_together() {
        let clock = Clock::system();
        let (before, after) = (Moment::read(&clock), Moment::read(&clock));
        assert!(before.tick <= after.tick);
        if let Some((before, after)) = before.boot.zip(after.boot) {
            assert_eq!(before.id, after.id);
            assert!(before.ms <= after.ms && after.ms > 0);
        }
        assert_eq!(
            cfg!(target_os = "linux"),
            Moment::read(&clock).boot.is_some()
        );
    }
}
