//! A configuration file of any content: checked without a panic, and either a configuration or at least one mistake.
#![no_main]

use std::fs;
use std::sync::LazyLock;

use fuseline_gateway::config::{Overrides, Severity, Sources};
use libfuzzer_sys::fuzz_target;
use tempfile::{NamedTempFile, TempPath};

static FILE: LazyLock<TempPath> = LazyLock::new(|| {
    NamedTempFile::new()
        .expect("a temporary file")
        .into_temp_path()
});

fuzz_target!(|text: &str| {
    fs::write(&*FILE, text).expect("the temporary file takes it");
    let report = Sources {
        file: Some(&*FILE),
        overrides: &Overrides::default(),
        env: &|_| None,
    }
    .load();
    let is_refused = report
        .findings
        .iter()
        .any(|finding| finding.severity == Severity::Mistake);
    assert_eq!(report.config.is_none(), is_refused);
    for finding in &report.findings {
        assert!(!finding.to_string().is_empty());
    }
});
