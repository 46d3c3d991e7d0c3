//! `Family`: one metric with all its series as plain data, read once and then written in whatever format is asked for.

use std::fmt;

use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use crate::names::Counter;

/// A metric as it stands at one moment: its name, its help, and its series. What a reader of
/// [`Metrics::families`](crate::Metrics::families) hands on to an exporter.
#[derive(Clone, Debug)]
pub struct Family {
    /// Without the `_total` that the Prometheus page gives to counters.
    pub(crate) name: &'static str,
    pub(crate) help: &'static str,
    pub(crate) sort: Sort,
    pub(crate) series: Vec<Series>,
}

/// How a value moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    /// It never decreases.
    Counter,
    Gauge,
}

/// Labels and what they are the labels of.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    pub(crate) labels: Vec<(&'static str, String)>,
    pub(crate) value: Value,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Value {
    Count(u64),
    Amount(f64),
}

impl Family {
    pub(crate) fn counter(counter: Counter, series: Vec<Series>) -> Self {
        Self {
            name: counter.name,
            help: counter.help,
            sort: Sort::Counter,
            series,
        }
    }

    pub(crate) fn gauge((name, help): (&'static str, &'static str), series: Vec<Series>) -> Self {
        Self {
            name,
            help,
            sort: Sort::Gauge,
            series,
        }
    }

    /// Whole numbers without labels, each a metric of its own: counters first.
    pub(crate) fn numbers<const C: usize, const G: usize>(
        counters: [(Counter, u64); C],
        gauges: [((&'static str, &'static str), u64); G],
    ) -> Vec<Self> {
        let alone = |number| Series::alone(Value::Count(number));
        let counters = counters.map(|(counter, number)| Self::counter(counter, alone(number)));
        let gauges = gauges.map(|(gauge, number)| Self::gauge(gauge, alone(number)));
        counters.into_iter().chain(gauges).collect()
    }

    /// Writes it on the Prometheus page.
    pub(crate) fn encode(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let kind = match self.sort {
            Sort::Counter => MetricType::Counter,
            Sort::Gauge => MetricType::Gauge,
        };
        let mut family = encoder.encode_descriptor(self.name, self.help, None, kind)?;
        for Series { labels, value } in &self.series {
            let labels: Vec<(&str, &str)> = labels
                .iter()
                .map(|(name, value)| (*name, value.as_str()))
                .collect();
            let one = family.encode_family(&labels)?;
            match (self.sort, *value) {
                (Sort::Counter, Value::Count(count)) => ConstCounter::new(count).encode(one),
                (Sort::Counter, Value::Amount(amount)) => ConstCounter::new(amount).encode(one),
                (Sort::Gauge, Value::Count(count)) => {
                    ConstGauge::new(i64::try_from(count).unwrap_or(i64::MAX)).encode(one)
                }
                (Sort::Gauge, Value::Amount(amount)) => ConstGauge::new(amount).encode(one),
            }?;
        }
        Ok(())
    }
}

impl Series {
    pub(crate) fn new<const N: usize>(labels: [(&'static str, &str); N], value: Value) -> Self {
        let labels = labels.map(|(name, value)| (name, value.to_owned()));
        Self {
            labels: labels.into(),
            value,
        }
    }

    /// The one series of a metric without labels.
    pub(crate) fn alone(value: Value) -> Vec<Self> {
        vec![Self::new([], value)]
    }
}
