//! The services in a guest, and their settings.

use super::super::catalogue::{SERVICES, Service, Way};
use crate::error::EvaluateError;
use crate::harness::missing;

pub(super) struct Inside {
    pub(super) name: &'static str,
    /// Packages that it needs beside its own.
    pub(super) more: &'static [&'static str],
    /// Requests of each client, if they differ from those on this machine.
    pub(super) work: Option<f64>,
    /// Factor of the work. A service that goes on spends a smaller part in luc.ko's learning.
    pub(super) times: u32,
}

impl Inside {
    pub(super) const fn new(name: &'static str) -> Self {
        Self { name, more: &[], work: None, times: 1 }
    }

    pub(super) fn title(&self) -> String {
        if self.times == 1 {
            self.name.to_owned()
        } else {
            format!("{}, {} times the work", self.name, self.times)
        }
    }

    /// The service on this machine that has the same name.
    pub(super) fn service(&self) -> Result<&'static Service, EvaluateError> {
        let found = SERVICES.iter().find(|service| service.name == self.name);
        found.ok_or_else(|| missing(self.name))
    }

    /// Requests of each client.
    pub(super) fn work(&self) -> Result<f64, EvaluateError> {
        Ok(self.work.unwrap_or(self.service()?.work) * f64::from(self.times))
    }

    /// Returns its packages and these.
    pub(super) fn packages(
        &self,
        more: &[&'static str],
    ) -> Result<Vec<&'static str>, EvaluateError> {
        let own = self.service()?.package;
        Ok([&[own], self.more, more].concat())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GuestSetting {
    Stock,
    Kernel,
    /// Under `luc run`, which chooses the library or notifications.
    Run,
    /// Under `luc run --reach notify`.
    Notified,
}

impl GuestSetting {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Stock => "stock",
            Self::Kernel => "luc.ko",
            Self::Run => "luc run",
            Self::Notified => "luc run --reach notify",
        }
    }

    /// Parameters of `luc.ko`; empty if it is not loaded.
    pub(super) const fn module(self) -> &'static str {
        match self {
            Self::Kernel => "policy=auto copy_out=auto",
            _ => "",
        }
    }

    /// Way in which `luc run` reaches programs, if it is used.
    pub(super) const fn way(self) -> Option<Way> {
        match self {
            Self::Stock | Self::Kernel => None,
            Self::Run => Some(Way::Auto),
            Self::Notified => Some(Way::Notified),
        }
    }
}

/// Services and settings that a part compares.
pub(super) struct Comparison {
    pub(super) services: &'static [Inside],
    /// Settings of each service beside stock.
    pub(super) others: &'static [GuestSetting],
    /// Packages that luc needs in the system.
    pub(super) more: &'static [&'static str],
}

impl Comparison {
    /// Returns the settings of this service. A program that no library can be loaded into has one way less.
    pub(super) fn settings(&self, inside: &Inside) -> Result<Vec<GuestSetting>, EvaluateError> {
        let ways = Way::of(inside.service()?);
        let is_one = |setting: &GuestSetting| setting.way().is_none_or(|way| ways.contains(&way));
        let others = self.others.iter().copied().filter(is_one);
        Ok(std::iter::once(GuestSetting::Stock).chain(others).collect())
    }
}
