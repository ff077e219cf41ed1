//! A folder with a plan and a directory that stands for /sys.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use tempfile::TempDir;

use crate::common::LUC;

pub(crate) const CPU: &str = "sys/devices/system/cpu";

/// A folder with a plan, a directory to work in, and a /sys.
pub(crate) struct SweepFolder {
    pub(crate) folder: TempDir,
}

impl SweepFolder {
    /// `$HERE` in the plan is the folder.
    pub(crate) fn new(plan: &str) -> Self {
        let folder = TempDir::new().expect("a folder");
        let place = Self { folder };
        let here = place.folder.path().display().to_string();
        for name in ["work", "sys"] {
            fs::create_dir(place.path(name)).expect("made");
        }
        fs::write(place.path("plan.toml"), plan.replace("$HERE", &here)).expect("written");
        place
    }

    /// With two processors as intel_pstate has them.
    pub(crate) fn with_processors(plan: &str) -> Self {
        let place = Self::new(plan);
        for number in 0..2 {
            for (name, value) in [
                ("scaling_driver", "intel_pstate"),
                ("scaling_available_governors", "performance powersave"),
                ("cpuinfo_min_freq", "800000"),
                ("cpuinfo_max_freq", "4500000"),
                ("base_frequency", "3000000"),
                ("scaling_min_freq", "800000"),
                ("scaling_max_freq", "4500000"),
                ("scaling_governor", "powersave"),
                ("scaling_cur_freq", "1234567"),
            ] {
                place.put(&format!("{CPU}/cpufreq/policy{number}/{name}"), value);
            }
            let cpu = place.path(&format!("{CPU}/cpu{number}"));
            fs::create_dir(&cpu).expect("made");
            symlink(format!("../cpufreq/policy{number}"), cpu.join("cpufreq")).expect("linked");
        }
        place.put(&format!("{CPU}/intel_pstate/no_turbo"), "0");
        place.put(&format!("{CPU}/smt/control"), "on");
        place
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn put(&self, name: &str, value: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, format!("{value}\n")).expect("written");
    }

    pub(crate) fn get(&self, name: &str) -> String {
        let text = fs::read_to_string(self.path(name)).expect(name);
        text.trim().to_owned()
    }

    /// It is killed if the test is, and its cleanup process clears up.
    fn command(&self) -> Command {
        let mut command = Command::new("setpriv");
        command
            .args(["--pdeathsig", "KILL", LUC])
            .args(["sweep", "plan.toml", "--out", "out", "--json", "--sysfs"])
            .arg(self.path("sys"))
            .current_dir(self.folder.path())
            .env("LUC_RUN_DIR", self.path("run"))
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self) -> Output {
        self.command().output().expect("luc runs")
    }

    /// Runs a sweep that finds no notes of other sweeps, so that it restores nothing.
    pub(crate) fn sweep_without_restoring(&self) -> Output {
        let mut command = self.command();
        let output = command.env("LUC_RUN_DIR", self.path("other run")).output();
        output.expect("luc runs")
    }

    pub(crate) fn start(&self) -> Child {
        let mut command = self.command();
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().expect("luc starts")
    }

    /// The settings of every processor, and of all.
    pub(crate) fn settings(&self) -> Vec<String> {
        let mut all: Vec<String> = ["intel_pstate/no_turbo", "smt/control"]
            .iter()
            .map(|name| self.get(&format!("{CPU}/{name}")))
            .collect();
        for number in 0..2 {
            for name in ["scaling_min_freq", "scaling_max_freq", "scaling_governor"] {
                all.push(self.get(&format!("{CPU}/cpufreq/policy{number}/{name}")));
            }
        }
        all
    }

    pub(crate) fn assert_as_before(&self) {
        let one = ["800000", "4500000", "powersave"];
        assert_eq!(self.settings(), [&["0", "on"][..], &one, &one].concat());
        assert!(!self.path("out/processors.json").exists());
    }
}
