//! Decides who is served: processes of services that `luc enable` has enabled, by their cgroups. Groups and users of
//! processes say nothing: a service may run as any user, also as one that is made for it.

use std::fs;
use std::os::unix::net::UnixStream;

use luc_notify::service_notifier::peer;

use crate::drop_in::UnitDropIn;

/// User of the process that has connected; `None` if the system does not tell.
pub(super) fn user(connection: &UnixStream) -> Option<u32> {
    let peer = rustix::net::sockopt::socket_peercred(connection).ok()?;
    Some(peer.uid.as_raw())
}

/// The unit and the process at the other end of a connection. The error says why it is not served.
pub(super) fn admit(connection: &UnixStream) -> Result<(String, u32), String> {
    let peer =
        peer(connection).map_err(|error| format!("it is not known who connects: {error}"))?;
    let path = format!("/proc/{}/cgroup", peer.number);
    let groups = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    // What was read is the peer's only if it has not ended before.
    if !peer.is_there() {
        return Err(format!("process {} has ended", peer.number));
    }
    let unit =
        unit_of(&groups).ok_or_else(|| format!("process {} belongs to no service", peer.number))?;
    match UnitDropIn::of(&unit).read() {
        Ok(Some(_)) => Ok((unit, peer.number)),
        Ok(None) => Err(format!("{unit} is not enabled: `luc enable {unit}` does that")),
        Err(error) => Err(error.to_string()),
    }
}

/// The service of a process, by the lines of `/proc/PID/cgroup` of systemd's own hierarchy.
fn unit_of(groups: &str) -> Option<String> {
    let of_systemd = |line: &str| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        ["", "name=systemd"].contains(&controllers).then(|| path.to_owned())
    };
    let paths = groups.lines().filter_map(of_systemd);
    // The outermost one: what is below it was made by the service itself.
    let mut units = paths.filter_map(|path| {
        let mut parts = path.split('/').filter(|part| part.ends_with(".service"));
        parts.next().map(|unit| unit.strip_prefix('_').unwrap_or(unit).to_owned())
    });
    units.next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_service_of_a_process_is_that_of_its_cgroup() {
        for (groups, unit) in [
            ("0::/system.slice/redis-server.service\n", Some("redis-server.service")),
            (
                "0::/system.slice/system-postgresql.slice/postgresql@15-main.service\n",
                Some("postgresql@15-main.service"),
            ),
            ("0::/system.slice/docker.service/x/evil.service\n", Some("docker.service")),
            (
                "4:memory:/evil.service\n1:name=systemd:/system.slice/a.service\n0::/\n",
                Some("a.service"),
            ),
            ("0::/user.slice/user-1000.slice/session-1.scope\n", None),
            ("", None),
        ] {
            assert_eq!(unit_of(groups).as_deref(), unit, "{groups}");
        }
    }
}
