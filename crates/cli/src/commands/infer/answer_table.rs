//! An answer as a table for people: each output with its type, shape and first values, the likeliest classes of a
//! distribution, and where the time went. It only makes text.

use std::fmt::Write;
use std::time::Duration;

use serde_json::Value;

use super::answer::{InferAnswer, OutputTensor};
use crate::printer::HEADING;

/// The most elements of an output that are shown.
const ELEMENTS_SHOWN: usize = 16;
/// The most characters of a text element that are shown.
const TEXT_SHOWN: usize = 40;
/// The most rows whose likeliest classes are shown, and how many of each.
const ROWS_RANKED: usize = 4;
const CLASSES_RANKED: usize = 3;

/// Where an answer's time went.
#[derive(Debug, Clone)]
pub struct Timings<'a> {
    /// What the server measured: (name, milliseconds).
    pub server: Vec<(&'a str, f64)>,
    /// From the request's first byte to the answer's last one, seen from here.
    pub round_trip: Duration,
}

/// The whole table; each line ends with a line break.
pub fn render(answer: &InferAnswer, request_id: Option<&str>, timings: &Timings<'_>) -> String {
    let version =
        answer.model_version.as_deref().map_or(String::new(), |version| format!(" version {}", shown(version)));
    let request = request_id.map_or(String::new(), |id| format!(", request {}", shown(id)));
    let mut rows = vec![["output", "type", "shape", "values"].map(str::to_owned)];
    for output in &answer.outputs {
        let cells =
            [shown(&output.name), shown(&output.datatype), format!("{:?}", output.shape), first_elements(output)];
        rows.push(cells);
        rows.extend(ranking(output).into_iter().map(|line| [String::new(), String::new(), String::new(), line]));
    }
    format!("{}{version}{request}\n{}{}\n", shown(&answer.model_name), columns(&rows), timing_line(timings))
}

/// `rows` in columns; the first one is the heading.
fn columns(rows: &[[String; 4]]) -> String {
    let mut widths = [0; 3];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    let mut text = String::new();
    for (index, row) in rows.iter().enumerate() {
        let style = if index == 0 { HEADING } else { anstyle::Style::new() };
        let mut line = String::new();
        for (cell, width) in row.iter().zip(widths) {
            let _ = write!(line, "{cell:width$}  ");
        }
        let _ = writeln!(text, "{style}{line}{}{style:#}", row[3]);
    }
    text
}

fn first_elements(output: &OutputTensor) -> String {
    let elements = output.elements();
    let is_real = output.is_real();
    let mut words: Vec<String> =
        elements.iter().take(ELEMENTS_SHOWN).map(|element| element_text(element, is_real)).collect();
    if elements.len() > ELEMENTS_SHOWN {
        words.push(format!("... ({} in all)", elements.len()));
    }
    words.join(" ")
}

fn element_text(element: &Value, is_real: bool) -> String {
    match element {
        Value::Number(number) if is_real => number.as_f64().map_or_else(|| number.to_string(), six_digits),
        Value::String(text) if text.chars().nth(TEXT_SHOWN).is_some() => {
            format!("{:?}...", text.chars().take(TEXT_SHOWN).collect::<String>())
        }
        Value::String(text) => format!("{text:?}"),
        other => other.to_string(),
    }
}

/// `value` with up to six significant digits.
fn six_digits(value: f64) -> String {
    let magnitude = if value == 0.0 { 0.0 } else { value.abs().log10().floor() };
    if !(-4.0..6.0).contains(&magnitude) {
        return format!("{value:.5e}");
    }
    let decimals = (5.0 - magnitude) as usize;
    let digits = format!("{value:.decimals$}");
    if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.').to_owned() } else { digits }
}

/// The likeliest classes of each row, when the output is made of distributions.
fn ranking(output: &OutputTensor) -> Vec<String> {
    let Some(rows) = output.distributions() else { return Vec::new() };
    let many = rows.len() > 1;
    let mut lines: Vec<String> = rows
        .iter()
        .take(ROWS_RANKED)
        .enumerate()
        .map(|(index, row)| {
            let row_name = if many { format!(" of row {index}") } else { String::new() };
            format!("top {}{row_name}: {}", CLASSES_RANKED.min(row.len()), likeliest(row))
        })
        .collect();
    if rows.len() > ROWS_RANKED {
        lines.push(format!("... ({} rows in all)", rows.len()));
    }
    lines
}

fn likeliest(row: &[f64]) -> String {
    let mut classes: Vec<(usize, f64)> = row.iter().copied().enumerate().collect();
    classes.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
    let ranked = classes.iter().take(CLASSES_RANKED).map(|(class, share)| format!("{class} ({:.2} %)", share * 100.0));
    ranked.collect::<Vec<_>>().join(", ")
}

fn timing_line(timings: &Timings<'_>) -> String {
    let mut parts: Vec<String> =
        timings.server.iter().map(|(name, milliseconds)| format!("{name} {milliseconds:.2} ms")).collect();
    parts.push(format!("round trip {:.2} ms", timings.round_trip.as_secs_f64() * 1e3));
    format!("time: {}", parts.join(", "))
}

/// A server's text without what could steer a terminal.
fn shown(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(answer: &str) -> String {
        let timings =
            Timings { server: vec![("queue", 0.05), ("device", 1.5)], round_trip: Duration::from_micros(2500) };
        let text = render(&InferAnswer::read(answer.as_bytes()).unwrap(), Some("0193"), &timings);
        anstream::adapter::strip_str(&text).to_string()
    }

    #[test]
    fn an_answer_reads_as_a_table() {
        let answer = r#"{"model_name": "digits", "model_version": "1", "outputs": [
            {"name": "probabilities", "datatype": "FP32", "shape": [1, 4], "data": [0.0000123456789, 0.98, 0.0199876543, 0]},
            {"name": "digit", "datatype": "INT64", "shape": [1], "data": [1]}]}"#;
        let expected = "\
digits version 1, request 0193
output         type   shape   values
probabilities  FP32   [1, 4]  1.23457e-5 0.98 0.0199877 0
                              top 3: 1 (98.00 %), 2 (2.00 %), 0 (0.00 %)
digit          INT64  [1]     1
time: queue 0.05 ms, device 1.50 ms, round trip 2.50 ms
";
        assert_eq!(table(answer), expected);
    }

    #[test]
    fn long_outputs_are_cut_and_say_so() {
        let data: Vec<String> = (0..1000).map(|index| index.to_string()).collect();
        let answer = format!(
            r#"{{"model_name": "m", "outputs": [{{"name": "y", "datatype": "INT32", "shape": [1000], "data": [{}]}}]}}"#,
            data.join(",")
        );
        let table = table(&answer);
        assert!(table.contains("14 15 ... (1000 in all)\n"), "{table}");
    }

    #[test]
    fn every_row_of_a_batch_is_ranked_up_to_four() {
        let data = ["0.9,0.1"; 6].join(",");
        let answer = format!(
            r#"{{"model_name": "m", "outputs": [{{"name": "p", "datatype": "FP32", "shape": [6, 2], "data": [{data}]}}]}}"#
        );
        let table = table(&answer);
        assert!(table.contains("top 2 of row 3: 0 (90.00 %), 1 (10.00 %)\n"), "{table}");
        assert!(!table.contains("row 4") && table.contains("... (6 rows in all)"), "{table}");
    }

    #[test]
    fn texts_and_absent_numbers_are_shown_harmlessly() {
        let answer = r#"{"model_name": "m\u001b[2J", "outputs": [
            {"name": "y", "datatype": "BYTES", "shape": [2], "data": ["a\u001b[31m", null]}]}"#;
        let timings = Timings { server: vec![], round_trip: Duration::ZERO };
        let text = render(&InferAnswer::read(answer.as_bytes()).unwrap(), None, &timings);
        assert!(!anstream::adapter::strip_str(&text).to_string().contains('\u{1b}'), "{text:?}");
        assert!(text.contains(r#""a\u{1b}[31m" null"#), "{text:?}");
        assert!(text.starts_with("m[2J\n"), "{text:?}");
    }

    #[test]
    fn numbers_have_six_digits() {
        for (value, text) in [
            (0.0, "0"),
            (1.0, "1"),
            (-2.5, "-2.5"),
            (100_000.0, "100000"),
            (123_456.7, "123457"),
            (1e6, "1.00000e6"),
            (0.1 + 0.2, "0.3"),
        ] {
            assert_eq!(six_digits(value), text);
        }
    }
}
