//! The routes of a gateway that nobody calls, without a listener: for tests, and for the fuzzer.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use axum::Router;

use super::Admin;
use crate::config::{Overrides, Sources};
use crate::fleet::Gauge;
use crate::live::Live;
use crate::observe::Feed;
use crate::proxy::Proxy;
use crate::shutdown::Tasks;
use crate::state::Meter;

/// One provider, whose key no answer may show.
const CONFIG: &str = r#"
state = "off"
[providers.a]
protocol = "openai"
base_url = "http://127.0.0.1:9/v1"
api_key = "sk-canary"
[[routes]]
model = "*"
targets = [{ provider = "a" }]
"#;

/// The routes, over breakers of their own.
pub(crate) fn router() -> anyhow::Result<Router> {
    let sources = Sources {
        file: None,
        overrides: &Overrides::default(),
        env: &|_| None,
    };
    let report = sources.load_text(None, Path::new(""), CONFIG);
    let config = report
        .config
        .with_context(|| format!("{:?}", report.findings))?;
    let proxy = Arc::new(Proxy::new(config, None)?);
    let live = Arc::new(Live::new(proxy, None, Tasks::default()));
    let (meter, gauge) = (Meter::new(false, None), Gauge::default());
    Ok(super::router(Admin::new(
        live,
        Tasks::default(),
        Feed::default(),
        meter,
        gauge,
    )))
}
