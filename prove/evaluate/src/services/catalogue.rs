//! The services, one entry each, with its script beside this file.

/// Approximate duration of each service's run without luc, s.
pub(super) const SECONDS: f64 = 4.5;

/// Name and text of a script.
type Script = (&'static str, &'static str);

/// Includes a script of this folder.
macro_rules! script {
    ($name:literal) => {
        ($name, include_str!($name))
    };
}

/// Script that all others source.
const COMMON: Script = script!("common.sh");

/// Scripts that those of mail servers source.
const MAIL: &[Script] = &[COMMON, script!("mail.sh")];

#[derive(Debug, Clone, Copy)]
pub(super) struct Service {
    pub(super) name: &'static str,
    pub(super) script: Script,
    /// Scripts that it sources from its folder.
    pub(super) shared: &'static [Script],
    /// Package that it is of.
    pub(super) package: &'static str,
    /// Number of servers, for the script.
    pub(super) instances: usize,
    /// Requests of each client that take about [`SECONDS`].
    pub(super) work: f64,
    /// Mean think time of the clients, ms; 0: back to back.
    pub(super) think_ms: u32,
    /// Whether it is run by root, or else by a user without rights.
    pub(super) as_root: bool,
    /// Whether no library can be loaded into it.
    pub(super) only_notified: bool,
}

impl Service {
    /// Returns the most frequent settings: eight servers run by root, whose clients send request after request.
    const fn new(name: &'static str, script: Script, work: f64) -> Self {
        Self {
            name,
            script,
            shared: &[COMMON],
            package: "",
            instances: 8,
            work,
            think_ms: 0,
            as_root: true,
            only_notified: false,
        }
    }
}

const ETCD: Service = Service {
    package: "etcd-server",
    only_notified: true,
    ..Service::new("etcd, 8 servers", script!("etcd.sh"), 130.0)
};

const REDIS: Service = Service {
    package: "redis-server",
    ..Service::new("Redis, 8 servers", script!("redis.sh"), 170.0)
};

/// All services, in the order in which they run.
pub(super) const SERVICES: [Service; 14] = [
    ETCD,
    Service { name: "etcd, 8 servers, thinking", think_ms: 10, work: 100.0, ..ETCD },
    REDIS,
    Service { name: "Redis, 8 servers, thinking", think_ms: 10, work: 135.0, ..REDIS },
    Service {
        shared: MAIL,
        package: "postfix",
        instances: 1,
        ..Service::new("Postfix and Dovecot, 8 clients", script!("postfix.sh"), 65.0)
    },
    Service {
        shared: MAIL,
        package: "dovecot-lmtpd",
        instances: 1,
        as_root: false,
        ..Service::new("Dovecot LMTP, 8 clients", script!("dovecot.sh"), 45.0)
    },
    Service {
        package: "docker-registry",
        instances: 1,
        only_notified: true,
        ..Service::new("Container registry, 8 clients", script!("registry.sh"), 16.0)
    },
    Service {
        package: "git",
        instances: 1,
        ..Service::new("git daemon, 8 clients", script!("git.sh"), 26.0)
    },
    Service {
        package: "nats-server",
        instances: 1,
        only_notified: true,
        ..Service::new("NATS JetStream, 8 publishers", script!("nats.sh"), 4000.0)
    },
    Service {
        package: "mariadb-server",
        instances: 1,
        ..Service::new("MariaDB, 8 clients", script!("mariadb.sh"), 280.0)
    },
    Service {
        package: "mariadb-server",
        ..Service::new("MariaDB, 8 servers", script!("mariadb.sh"), 240.0)
    },
    Service {
        package: "postgresql",
        ..Service::new("PostgreSQL, 8 servers", script!("postgresql.sh"), 210.0)
    },
    Service {
        package: "rabbitmq-server",
        instances: 1,
        ..Service::new("RabbitMQ, 8 publishers", script!("rabbitmq.sh"), 160.0)
    },
    Service { package: "sqlite3", ..Service::new("SQLite, 8 writers", script!("sqlite.sh"), 52.0) },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_script_prepares_and_runs_under_what_is_asked_for() {
        // The pages' flushes per request count them, too.
        assert!(COMMON.1.contains("\nclients=8\n"));
        for service in SERVICES {
            let text = service.script.1;
            for word in ["common.sh\"", "prepare)", "run)", "drive ", "serve "] {
                assert!(text.contains(word), "{}: {word}", service.name);
            }
            let sourced = text.matches("\nsource ").count();
            assert_eq!(service.shared.len(), sourced, "{}", service.name);
            for (name, _) in service.shared {
                let line = format!("\nsource \"$(dirname \"$0\")/{name}\"\n");
                assert!(text.contains(&line), "{}: {name}", service.name);
            }
        }
    }

    #[test]
    fn the_page_has_each_service() {
        let page = include_str!("../../../parts/services.toml");
        for Service { name, package, .. } in SERVICES {
            assert!(page.contains(&format!("[\"{name}\", \"{package}\"")), "{name}");
        }
    }

    #[test]
    fn clients_think_only_where_their_script_knows_how() {
        for service in SERVICES.iter().filter(|service| service.think_ms > 0) {
            assert!(service.script.1.contains("\n\t\tthink "), "{}", service.name);
        }
    }
}
