//! Renders all metrics as text: in OpenMetrics 1.0 for scrapers that ask for it, else in Prometheus' format 0.0.4. It only
//! chooses the format and writes families; what they hold is in [`super::families`].

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeCounterValue, EncodeGaugeValue, EncodeLabelSet, NoLabelSet, prometheus_text, text,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

use super::histogram::HistogramFigures;
use super::{Metrics, families};

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A rendered scrape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exposition {
    /// The `Content-Type` of the answer.
    pub content_type: &'static str,
    /// The text.
    pub body: String,
}

pub(super) fn render(metrics: &Metrics, accept: Option<&str>) -> Exposition {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Scrape(metrics.clone())));
    let mut body = String::new();
    let wants_openmetrics = accept.is_some_and(accepts_openmetrics);
    let (written, content_type) = if wants_openmetrics {
        (text::encode(&mut body, &registry), OPENMETRICS)
    } else {
        (prometheus_text::encode(&mut body, &registry), prometheus_text::CONTENT_TYPE)
    };
    // A `String` takes whatever is written to it.
    debug_assert!(written.is_ok());
    Exposition { content_type, body }
}

/// Whether the media ranges of an `Accept` header name OpenMetrics with a quality above zero. Prometheus names it first, and
/// whoever does not know it does not name it, so the order of qualities need not be weighed.
fn accepts_openmetrics(accept: &str) -> bool {
    accept.split(',').any(|range| {
        let mut parts = range.split(';').map(str::trim);
        let named = parts.next().is_some_and(|media| media.eq_ignore_ascii_case("application/openmetrics-text"));
        let refused = parts.filter_map(|part| part.strip_prefix("q=")).any(|quality| quality.parse() == Ok(0.0));
        named && !refused
    })
}

#[derive(Debug)]
struct Scrape(Metrics);

impl Collector for Scrape {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        families::write(&self.0, &mut FamilyWriter(encoder))
    }
}

/// Writes one family after the other.
pub(super) struct FamilyWriter<'a>(DescriptorEncoder<'a>);

impl FamilyWriter<'_> {
    /// A counter with labels. `name` is without `_total`.
    pub(super) fn counters<L: EncodeLabelSet, V: EncodeCounterValue>(
        &mut self,
        (name, help): (&str, &str),
        series: impl IntoIterator<Item = (L, V)>,
    ) -> fmt::Result {
        let mut family = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (labels, value) in series {
            family.encode_family(&labels)?.encode_counter::<NoLabelSet, V, f64>(&value, None)?;
        }
        Ok(())
    }

    /// A gauge with labels.
    pub(super) fn gauges<L: EncodeLabelSet, V: EncodeGaugeValue>(
        &mut self,
        (name, help): (&str, &str),
        series: impl IntoIterator<Item = (L, V)>,
    ) -> fmt::Result {
        let mut family = self.0.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (labels, value) in series {
            family.encode_family(&labels)?.encode_gauge(&value)?;
        }
        Ok(())
    }

    /// A gauge without labels; left out where there is no value.
    pub(super) fn gauge<V: EncodeGaugeValue>(&mut self, (name, help): (&str, &str), value: Option<V>) -> fmt::Result {
        let Some(value) = value else { return Ok(()) };
        self.0.encode_descriptor(name, help, None, MetricType::Gauge)?.encode_gauge(&value)
    }

    /// A histogram with labels.
    pub(super) fn histograms<L: EncodeLabelSet>(
        &mut self,
        (name, help): (&str, &str),
        series: impl IntoIterator<Item = (L, HistogramFigures)>,
    ) -> fmt::Result {
        let mut family = self.0.encode_descriptor(name, help, None, MetricType::Histogram)?;
        for (labels, figures) in series {
            let mut metric = family.encode_family(&labels)?;
            metric.encode_histogram::<NoLabelSet>(figures.sum, figures.count, &figures.buckets, None)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn openmetrics_goes_to_those_who_ask_for_it() {
        let prometheus = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.1";
        assert!(accepts_openmetrics(prometheus));
        assert!(accepts_openmetrics("text/html, Application/OpenMetrics-Text"));
        for other in ["", "*/*", "text/plain", "application/openmetrics-text;q=0", "application/openmetrics-textual"] {
            assert!(!accepts_openmetrics(other), "{other:?}");
        }
    }
}
