//! Simulates outages by the thousand and writes what they come to: `docs/concepts/outages.svg`, and the tables between the
//! marks of two pages. The same program gives the same bytes. `bench/run simulate` runs it.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::{fs, thread};

use fuseline_sim::{
    Cell, Scene, Study, Subject, Traffic, as_detection, as_markdown, as_ratios, as_svg,
};

/// Outages of each kind at each rate of traffic.
const RUNS: u32 = 40;
const SEED: u64 = 1;
const PAGE: &str = "concepts/outages.md";
const DECISION: &str = "decisions/0013-a-change-detector.md";
const TITLE: &str = "What callers lose in an incident, by kind of outage and settings";

/// A study's scenes with their cells.
type Played = Vec<(Scene, Vec<Cell>)>;

fn main() -> io::Result<()> {
    let busy = Traffic::recorded();
    let quiet = busy.thinned(20, SEED);
    for (name, traffic) in [("busy", &busy), ("quiet", &quiet)] {
        let systems = play(name, traffic, &Subject::systems())?;
        put(PAGE, &format!("systems, {name}"), &as_markdown(&systems))?;
        if name == "busy" {
            fs::write(
                docs("concepts/outages.svg"),
                as_svg(TITLE, &systems, "defaults"),
            )?;
        }
        let variants = play(name, traffic, &Subject::variants())?;
        put(PAGE, &format!("variants, {name}"), &as_ratios(&variants))?;
        let detectors = play(name, traffic, &Subject::detectors())?;
        put(
            DECISION,
            &format!("detectors, {name}"),
            &as_detection(&detectors),
        )?;
    }
    Ok(())
}

/// Every scene on a thread of its own.
fn play(name: &str, traffic: &Traffic, subjects: &[Subject]) -> io::Result<Played> {
    let scenes = Scene::all();
    let runs = scenes.len() * subjects.len() * RUNS as usize;
    writeln!(io::stderr().lock(), "{runs} runs over {name} traffic")?;
    let study = Study {
        traffic,
        subjects,
        runs: RUNS,
        seed: SEED,
    };
    thread::scope(|scope| {
        let play = |scene: Scene| scope.spawn(move || (study.play(&scene), scene));
        let playing: Vec<_> = scenes.into_iter().map(play).collect();
        let played = playing.into_iter().map(|scene| match scene.join() {
            Ok((cells, scene)) => Ok((scene, cells)),
            Err(_) => Err(io::Error::other("a scene broke off")),
        });
        played.collect()
    })
}

fn docs(page: &str) -> PathBuf {
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs");
    PathBuf::from(docs).join(page)
}

/// Puts a table in the place of the one between a page's marks.
fn put(page: &str, mark: &str, table: &str) -> io::Result<()> {
    let path = docs(page);
    let text = fs::read_to_string(&path)?;
    let (begin, end) = (
        format!("<!-- {mark} -->\n"),
        format!("<!-- end of {mark} -->"),
    );
    let missing = || io::Error::other(format!("{}: no mark {begin:?}", path.display()));
    let (before, rest) = text.split_once(&begin).ok_or_else(missing)?;
    let (_, after) = rest.split_once(&end).ok_or_else(missing)?;
    let table = table.trim_end();
    fs::write(&path, format!("{before}{begin}\n{table}\n\n{end}{after}"))
}
