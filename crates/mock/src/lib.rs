//! A scripted LLM provider on loopback: it answers, dawdles, breaks off and refuses as its script says, and remembers what it
//! was asked.
//!
//! It speaks HTTP/1.1 and both dialects, told apart by the path's end, whatever the prefix: OpenAI's (`/chat/completions`,
//! `/completions`, `/responses`, `/embeddings`) and Anthropic's (`/messages`). A request that says `"stream": true` is answered
//! with a stream. Any other path gets an empty list. Answers are the same bytes on every run.
//!
//! ```
//! # use std::time::Duration;
//! # use fuseline_mock::{Conduct, Mock, Phase, Reply, Rule, Script};
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let seconds = Duration::from_secs;
//! let incident = Script::phases([
//!     Phase::at(seconds(0), Reply::ok()),
//!     Phase::at(seconds(5), Reply::status(503)),
//!     Phase::at(seconds(15), Conduct::refuse()),
//!     Phase::at(seconds(18), Reply::ok()),
//! ]);
//! let mock = Mock::start(incident).await?;
//! // ... calls to mock.url() ...
//! assert_eq!(mock.hits(), 0);
//! mock.set(Reply::ok().events(20).cut_after(5)).await?;
//! mock.set(Script::always(Reply::ok()).rule(Rule::model("gpt-4o").reply(Reply::status(429)))).await?;
//! mock.stop().await;
//! # Ok(())
//! # }
//! ```
//!
//! # Script files
//!
//! The same in TOML, for [`Script::from_toml`] and [`Script::load`]. Durations are texts: `"500ms"`, `"2s"`. An unknown key is an
//! error, and so is one that another key makes meaningless.
//!
//! ```
//! let script = fuseline_mock::Script::from_toml(r#"
//! [[phases]]                      # healthy, and one model is slow to begin
//! after = "0s"
//! replies = [{ text = "All is well." }]
//! rules = [{ model = "gpt-4o", replies = [{ first_gap = "2s", gap = "50ms", events = 20 }] }]
//!
//! [[phases]]                      # every other call fails
//! after = "5s"
//! replies = [{ status = 503 }, {}]
//! cycle = true
//!
//! [[phases]]                      # nobody listens
//! after = "15s"
//! connections = "refuse"
//!
//! [[phases]]                      # back
//! after = "18s"
//! "#)?;
//! # let _ = script;
//! # Ok::<(), fuseline_mock::ScriptError>(())
//! ```
//!
//! A phase's keys may stand at the top of the file too, for a script of one phase:
//!
//! | key | meaning |
//! |---|---|
//! | `after` | when the phase begins, since the start; the first at `"0s"` (inside `phases` only) |
//! | `replies` | one reply per request, in order; the last repeats; default: one good answer |
//! | `cycle` | `true`: after the last reply comes the first again |
//! | `rules` | `{path, model, key, replies, cycle}`: own replies for paths that end so, this model, this API key; the first rule that fits wins |
//! | `connections` | in place of all these: `"refuse"` (nobody listens) or `"reset"` (accepted, then reset) |
//!
//! A reply's keys; `{}` is the good answer:
//!
//! | key | meaning |
//! |---|---|
//! | `delay` | wait before the head |
//! | `status` | default 200; from 400 on with an error body in the caller's dialect |
//! | `headers` | `{ retry-after = "2", set-cookie = ["a=1", "b=2"] }` |
//! | `text`, `events` | of a good answer: its text, and its number of content events when streamed (default: one a word) |
//! | `error` | `{type, code, message}` of the error body |
//! | `body` | this text as the body |
//! | `chunks` | these texts as a streamed body, byte for byte |
//! | `first_gap`, `gap` | silence before the first content event, and between events |
//! | `cut_after`, `reset_after`, `stall_after` | after this many content events: the connection closes without a terminator, is reset, falls silent |
//! | `fault` | before any head: `"close"`, `"reset"`, `"stall"` |
//! | `raw` | this text in place of an HTTP answer |

mod answer;
mod body;
mod connection;
mod dialect;
mod error;
mod file;
mod ledger;
mod mock;
mod reply;
mod request;
mod script;
mod server;

pub use error::{ScriptError, TimedOut};
pub use ledger::{Counts, Departure, Stage};
pub use mock::Mock;
pub use reply::Reply;
pub use request::Recorded;
pub use script::{Conduct, Phase, Rule, Script};
