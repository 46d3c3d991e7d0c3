//! Figures: panels of horizontal bars as SVG. Lengths are logarithmic, since what is compared differs by orders of
//! magnitude; each bar says its value.

use std::fmt::Write as _;

/// Bars under a title.
#[derive(Clone, Debug)]
#[expect(
    clippy::exhaustive_structs,
    reason = "plain data that callers write out"
)]
pub struct Panel {
    /// What the bars compare.
    pub title: String,
    /// In their order from above.
    pub bars: Vec<Bar>,
}

/// One bar.
#[derive(Clone, Debug)]
#[expect(
    clippy::exhaustive_structs,
    reason = "plain data that callers write out"
)]
pub struct Bar {
    /// What it stands for.
    pub label: String,
    /// Its length; 0 or more.
    pub value: f64,
    /// The value as a reader would write it.
    pub text: String,
    /// Whether it is the one that the figure is about.
    pub stands_out: bool,
}

const LONGEST: f64 = 180.0;
/// For the value behind a bar.
const VALUE: f64 = 90.0;
/// A letter, roughly.
const LETTER: f64 = 7.0;
const ROW: f64 = 20.0;
const HEAD: f64 = 34.0;

const STYLE: &str = "text{font:13px system-ui,sans-serif;fill:#222}.title{font-weight:600}\
    .label{text-anchor:end}.bar{fill:#9aa5b1}.ours{fill:#c2410c}\
    @media(prefers-color-scheme:dark){text{fill:#e5e7eb}.bar{fill:#6b7280}.ours{fill:#fb923c}}";

/// The panels in two columns, as a whole document. `title` is for readers who do not see it.
///
/// ```
/// use fuseline_sim::chart::{Bar, Panel, svg};
///
/// let bar = Bar { label: "a < b".into(), value: 3.0, text: "3 s".into(), stands_out: true };
/// let figure = svg("Waits", &[Panel { title: "hard down".into(), bars: vec![bar] }]);
/// assert!(figure.starts_with("<svg ") && figure.contains("a &lt; b"));
/// ```
pub fn svg(title: &str, panels: &[Panel]) -> String {
    let columns = panels.len().clamp(1, 2);
    let height = |row: &[Panel]| {
        let bars = row.iter().map(|panel| panel.bars.len()).max();
        HEAD + ROW * bars.unwrap_or(0) as f64 + 16.0
    };
    let rows = panels.chunks(columns);
    let tall: f64 = rows.clone().map(height).sum();
    let letters = panels.iter().flat_map(|panel| &panel.bars);
    let letters = letters.map(|bar| bar.label.chars().count()).max();
    let label = 20.0 + LETTER * letters.unwrap_or(0) as f64;
    let width = label + LONGEST + VALUE;
    let wide = width * columns as f64;
    let most = panels.iter().flat_map(|panel| &panel.bars);
    let most = most.map(|bar| bar.value).fold(1.0, f64::max);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {wide} {tall}\" width=\"{wide}\" role=\"img\">\n\
         <title>{}</title>\n<style>{STYLE}</style>\n",
        escaped(title)
    );
    let mut top = 0.0;
    for row in rows {
        for (column, panel) in row.iter().enumerate() {
            draw(&mut out, panel, width * column as f64 + label, top, most);
        }
        top += height(row);
    }
    out.push_str("</svg>\n");
    out
}

/// Draws a panel whose bars begin at `x`.
fn draw(out: &mut String, panel: &Panel, x: f64, top: f64, most: f64) {
    let y = top + 22.0;
    let title = escaped(&panel.title);
    // Writing to a text cannot fail.
    let _ = writeln!(
        out,
        "<text class=\"title\" x=\"{x}\" y=\"{y}\">{title}</text>"
    );
    for (place, bar) in panel.bars.iter().enumerate() {
        let y = top + HEAD + ROW * place as f64;
        let length = (LONGEST * bar.value.max(0.0).ln_1p() / most.ln_1p()).round();
        let class = if bar.stands_out { "bar ours" } else { "bar" };
        let (label, text) = (escaped(&bar.label), escaped(&bar.text));
        let _ = writeln!(
            out,
            "<text class=\"label\" x=\"{}\" y=\"{}\">{label}</text>\
             <rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{length}\" height=\"14\" rx=\"2\"/>\
             <text x=\"{}\" y=\"{}\">{text}</text>",
            x - 6.0,
            y + 12.0,
            x + length + 6.0,
            y + 12.0
        );
    }
}

/// A text as XML takes it.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for sign in text.chars() {
        match sign {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            sign if sign.is_control() => out.push('?'),
            sign => out.push(sign),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_bar_is_the_longest_and_zero_has_none() {
        let bar = |value: f64| Bar {
            label: String::new(),
            value,
            text: String::new(),
            stands_out: false,
        };
        let panel = Panel {
            title: "\u{7}<script>".to_owned(),
            bars: vec![bar(0.0), bar(9.0), bar(99.0)],
        };
        let figure = svg("t", &[panel.clone(), panel]);
        for width in ["\"0\"", "\"90\"", "\"180\""] {
            assert_eq!(
                figure.matches(&format!("width={width}")).count(),
                2,
                "{figure}"
            );
        }
        assert!(figure.contains("?&lt;script&gt;") && !figure.contains("<script"));
    }
}
