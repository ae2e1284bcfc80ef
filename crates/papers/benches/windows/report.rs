//! The command line, and the table of results.

use std::process::Command;
use std::time::Duration;

pub struct Settings {
    filter: String,
    /// Entries in the window.
    pub n: usize,
    repeat: usize,
    pub rss: bool,
    /// The name of the one case to run, its figure to be printed and nothing else.
    alone: Option<String>,
    list: bool,
    json: Option<String>,
}

impl Settings {
    pub fn from_arguments() -> Self {
        let mut settings = Self {
            filter: String::new(),
            n: 1 << 22,
            repeat: 3,
            rss: false,
            alone: None,
            list: false,
            json: None,
        };
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            let mut value = || words.next().expect("a value behind the option");
            match word.as_str() {
                "--bench" => {}
                "--log-n" => settings.n = 1 << value().parse::<u32>().expect("a number"),
                "--repeat" => settings.repeat = value().parse().expect("a number"),
                "--rss" => settings.rss = true,
                "--alone" => settings.alone = Some(value()),
                "--list" => settings.list = true,
                "--json" => settings.json = Some(value()),
                _ => settings.filter = word,
            }
        }
        settings
    }
}

struct Line {
    name: String,
    unit: &'static str,
    median: f64,
    runs: Vec<f64>,
}

pub struct Report {
    pub settings: Settings,
    lines: Vec<Line>,
}

impl Report {
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            lines: Vec::new(),
        }
    }

    /// A case that gives the items it took and the time it spent.
    pub fn rate(&mut self, name: String, work: impl Fn() -> (usize, Duration)) {
        self.case(name, "M items/s", self.settings.repeat, || {
            let (items, spent) = work();
            items as f64 / spent.as_secs_f64() / 1e6
        });
    }

    /// A case that gives bytes. Nothing varies from run to run, so one will do.
    pub fn bytes(&mut self, name: String, unit: &'static str, work: impl Fn() -> f64) {
        match &self.settings.alone {
            Some(alone) if *alone == name => println!("{}", work()),
            Some(_) => {}
            None if self.settings.rss => {
                let n = self.settings.n;
                self.case(name.clone(), unit, 1, || in_own_process(&name, n));
            }
            None => self.case(name, unit, 1, work),
        }
    }

    fn case(&mut self, name: String, unit: &'static str, repeat: usize, run: impl Fn() -> f64) {
        if !name.contains(&self.settings.filter) {
            return;
        }
        if self.settings.list {
            println!("{name}");
            return;
        }
        let mut runs: Vec<f64> = (0..repeat.max(1)).map(|_| run()).collect();
        runs.sort_by(f64::total_cmp);
        let median = runs[runs.len() / 2];
        println!("{name:<44} {median:>8.1} {unit:<15} {runs:.1?}");
        self.lines.push(Line {
            name,
            unit,
            median,
            runs,
        });
    }

    pub fn write(&self) {
        let Some(path) = &self.settings.json else {
            return;
        };
        let lines: Vec<String> = self.lines.iter().map(Line::to_json).collect();
        let text = format!("[\n{}\n]\n", lines.join(",\n"));
        std::fs::write(path, text).expect("the record can be written");
    }
}

/// Resident memory is only meaningful where nothing was freed before.
fn in_own_process(name: &str, n: usize) -> f64 {
    let program = std::env::current_exe().expect("this program has a path");
    let log_n = n.ilog2().to_string();
    let done = Command::new(program)
        .args(["--rss", "--alone", name, "--log-n", &log_n])
        .output()
        .expect("this program can start itself");
    let text = String::from_utf8_lossy(&done.stdout);
    text.trim().parse().expect("the figure of that case")
}

impl Line {
    fn to_json(&self) -> String {
        let Self { name, unit, .. } = self;
        let (median, runs) = (self.median, &self.runs);
        format!(
            r#"  {{"case": "{name}", "unit": "{unit}", "median": {median:.2}, "runs": {runs:.2?}}}"#
        )
    }
}
