//! The metrics: histograms that ended calls and attempts are recorded in, and everything else as it is read.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use opentelemetry::KeyValue;
use opentelemetry::metrics::{AsyncInstrument, Histogram, Meter};

use crate::family::{Family, Series, Sort, Value};
use crate::names;
use crate::traffic::BOUNDS;

/// The conventions' own, and on to ten minutes: models think for longer than they foresee.
const OPERATION_BOUNDS: [f64; 17] = [
    0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92, 163.84,
    327.68, 655.36,
];
const TOKEN_BOUNDS: [f64; 14] = [
    1.0,
    4.0,
    16.0,
    64.0,
    256.0,
    1_024.0,
    4_096.0,
    16_384.0,
    65_536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
];

/// The histograms. The first two are those of the Prometheus page.
pub(super) struct Instruments {
    pub(super) call_seconds: Histogram<f64>,
    pub(super) first_token_seconds: Histogram<f64>,
    pub(super) operation: Histogram<f64>,
    pub(super) first_chunk: Histogram<f64>,
    pub(super) tokens: Histogram<u64>,
}

impl Instruments {
    pub(super) fn new(meter: &Meter) -> Self {
        let seconds = |(name, help): (&'static str, &'static str), bounds: &[f64]| {
            let histogram = meter.f64_histogram(name).with_description(help);
            let histogram = histogram.with_unit("s").with_boundaries(bounds.to_vec());
            histogram.build()
        };
        let (name, help) = names::TOKEN_USAGE;
        let tokens = meter.u64_histogram(name).with_description(help);
        let tokens = tokens
            .with_unit("{token}")
            .with_boundaries(TOKEN_BOUNDS.to_vec());
        Self {
            call_seconds: seconds(names::CALL_SECONDS, &BOUNDS),
            first_token_seconds: seconds(names::FIRST_TOKEN_SECONDS, &BOUNDS),
            operation: seconds(names::OPERATION_DURATION, &OPERATION_BOUNDS),
            first_chunk: seconds(names::TIME_TO_FIRST_CHUNK, &OPERATION_BOUNDS),
            tokens: tokens.build(),
        }
    }
}

/// One reading for all instruments: each takes its own metric out, and the first that finds nothing reads anew.
struct Reading {
    read: Box<dyn Fn() -> Vec<Family> + Send + Sync>,
    untold: Mutex<BTreeMap<&'static str, Family>>,
}

impl Reading {
    fn take(&self, name: &'static str) -> Vec<Series> {
        let mut untold = self.untold.lock().unwrap_or_else(PoisonError::into_inner);
        if !untold.contains_key(name) {
            let families = (self.read)().into_iter();
            *untold = families.map(|family| (family.name, family)).collect();
        }
        untold
            .remove(name)
            .map_or_else(Vec::new, |family| family.series)
    }

    fn tell(&self, name: &'static str, observer: &dyn AsyncInstrument<f64>) {
        for Series { labels, value } in self.take(name) {
            let attributes: Vec<KeyValue> = labels
                .into_iter()
                .map(|(name, value)| KeyValue::new(name, value))
                .collect();
            let value = match value {
                Value::Count(count) => count as f64,
                Value::Amount(amount) => amount,
            };
            observer.observe(value, &attributes);
        }
    }
}

/// Every metric that `read` gives now is read anew for each export.
pub(super) fn observe(meter: &Meter, read: impl Fn() -> Vec<Family> + Send + Sync + 'static) {
    let families = read();
    let reading = Arc::new(Reading {
        read: Box::new(read),
        untold: Mutex::default(),
    });
    for Family {
        name, help, sort, ..
    } in families
    {
        let reading = Arc::clone(&reading);
        // Whether it is a counter or a gauge is all in which they differ.
        match sort {
            Sort::Counter => drop(
                meter
                    .f64_observable_counter(name)
                    .with_description(help)
                    .with_callback(move |observer| reading.tell(name, observer))
                    .build(),
            ),
            Sort::Gauge => drop(
                meter
                    .f64_observable_gauge(name)
                    .with_description(help)
                    .with_callback(move |observer| reading.tell(name, observer))
                    .build(),
            ),
        }
    }
}
