//! Callers' trace context as W3C describes it (Trace Context, level 1): reads `traceparent` and `tracestate` strictly and
//! hangs a request's span under the caller's. What is malformed is ignored, as the recommendation asks: the request is
//! served and a trace of its own begins. Server calls it with the headers of each request.

use opentelemetry::Context;
use opentelemetry::trace::{SpanContext, SpanId, TraceContextExt, TraceFlags, TraceId, TraceState};
use tracing_opentelemetry::OpenTelemetrySpanExt;

/// The most members of a `tracestate`.
const MEMBERS_MAX: usize = 32;

/// The longest `tracestate` that is taken over, in bytes.
const STATE_BYTES_MAX: usize = 512;

/// The caller's span, of which a request's span is a child.
#[derive(Debug, Clone, PartialEq)]
pub struct RemoteParent(SpanContext);

impl RemoteParent {
    /// The parent that a request's headers name: all values of `traceparent` (exactly one must be there) and all of
    /// `tracestate`, in order. `None` if there is no well-formed `traceparent`; a malformed `tracestate` is left out.
    pub fn from_headers<'h>(
        traceparent: impl IntoIterator<Item = &'h [u8]>,
        tracestate: impl IntoIterator<Item = &'h [u8]>,
    ) -> Option<RemoteParent> {
        let mut values = traceparent.into_iter();
        let (value, None) = (values.next()?, values.next()) else { return None };
        let (trace, span, flags) = parse_parent(trim(value))?;
        let state = parse_state(tracestate).unwrap_or_default();
        Some(RemoteParent(SpanContext::new(trace, span, flags, true, state)))
    }

    /// Makes `span` a child of this parent. Must come before `span` is entered; does nothing if spans are not exported.
    pub fn attach(&self, span: &tracing::Span) {
        // An error says that nobody exports this span, which is as it should be without a collector.
        let _ = span.set_parent(Context::new().with_remote_span_context(self.0.clone()));
    }
}

fn trim(value: &[u8]) -> &[u8] {
    value.trim_ascii()
}

/// `version "-" trace-id "-" parent-id "-" trace-flags`, in lower-case hexadecimal; later versions may go on after a `-`.
fn parse_parent(value: &[u8]) -> Option<(TraceId, SpanId, TraceFlags)> {
    let (known, rest) = value.split_at_checked(55)?;
    let [version, trace, span, flags] = split_fields(known)?;
    let version = hex(version, 2)?;
    let goes_on = !rest.is_empty();
    if version == 0xff || (version == 0 && goes_on) || (goes_on && rest.first() != Some(&b'-')) {
        return None;
    }
    let trace = TraceId::from(hex(trace, 32)?);
    let span = SpanId::from(u64::try_from(hex(span, 16)?).ok()?);
    if trace == TraceId::INVALID || span == SpanId::INVALID {
        return None;
    }
    // Level 1 knows one flag; the others are not ours to pass on.
    let flags = TraceFlags::new(u8::try_from(hex(flags, 2)?).ok()?) & TraceFlags::SAMPLED;
    Some((trace, span, flags))
}

fn split_fields(value: &[u8]) -> Option<[&[u8]; 4]> {
    let mut fields = value.split(|byte| *byte == b'-');
    let four = [fields.next()?, fields.next()?, fields.next()?, fields.next()?];
    fields.next().is_none().then_some(four)
}

/// The number that exactly `digits` lower-case hexadecimal digits stand for.
fn hex(text: &[u8], digits: usize) -> Option<u128> {
    let plain = text.len() == digits && text.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let text = std::str::from_utf8(text).ok().filter(|_| plain)?;
    u128::from_str_radix(text, 16).ok()
}

/// The members of all `tracestate` values together; `None` if any of it is malformed or it is too large.
fn parse_state<'h>(values: impl IntoIterator<Item = &'h [u8]>) -> Option<TraceState> {
    let mut members: Vec<(&str, &str)> = Vec::new();
    let mut bytes = 0_usize;
    for value in values {
        bytes = bytes.checked_add(value.len())?;
        for member in std::str::from_utf8(value).ok()?.split(',') {
            let member = member.trim_matches([' ', '\t']);
            if member.is_empty() {
                continue;
            }
            let (key, value) = member.split_once('=')?;
            let new = members.iter().all(|(other, _)| *other != key);
            if !(is_state_key(key) && is_state_value(value) && new) {
                return None;
            }
            members.push((key, value));
        }
    }
    if members.len() > MEMBERS_MAX || bytes > STATE_BYTES_MAX {
        return None;
    }
    TraceState::from_key_value(members).ok()
}

/// `lcalpha 0*255( lcalpha / DIGIT / "_" / "-"/ "*" / "/" )`, or a tenant of at most 241 and a system of at most 14 of these
/// with an `@` between; a tenant may begin with a digit.
fn is_state_key(key: &str) -> bool {
    let tail = |text: &str| {
        text.bytes().skip(1).all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'*' | b'/'))
    };
    let letter_first = |text: &str| text.as_bytes().first().is_some_and(u8::is_ascii_lowercase);
    match key.split_once('@') {
        None => key.len() <= 256 && letter_first(key) && tail(key),
        Some((tenant, system)) => {
            let digit_first = tenant.as_bytes().first().is_some_and(u8::is_ascii_digit);
            tenant.len() <= 241
                && system.len() <= 14
                && (letter_first(tenant) || digit_first)
                && tail(tenant)
                && letter_first(system)
                && tail(system)
        }
    }
}

/// 1 to 256 printable ASCII characters but `,` and `=`, the last not a blank.
fn is_state_value(value: &str) -> bool {
    (1..=256).contains(&value.len())
        && value.bytes().all(|byte| matches!(byte, b' '..=b'~') && !matches!(byte, b',' | b'='))
        && !value.ends_with(' ')
}

#[cfg(test)]
mod tests;
