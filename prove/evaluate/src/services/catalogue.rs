//! The services, one entry each, with its script beside this file.

/// Approximate duration of each service's run without luc, s.
pub(super) const SECONDS: f64 = 4.5;

/// Number of clients of each service. The scripts have the same number.
pub(super) const CLIENTS: f64 = 8.0;

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
    /// Description of the work, for the page.
    pub(super) about: &'static str,
    /// Description of the service's own batching, which leaves less to gain.
    pub(super) own_batching: &'static str,
    pub(super) script: Script,
    /// Scripts that it sources from its folder.
    pub(super) shared: &'static [Script],
    /// Package whose version is shown.
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
            about: "",
            own_batching: "none between servers",
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
    about: "each client puts keys with values of 1 KiB into a server of its own",
    own_batching: "none between servers; each appends to a preallocated log, and writes its database beside",
    package: "etcd-server",
    only_notified: true,
    ..Service::new("etcd, 8 servers", script!("etcd.sh"), 130.0)
};

const REDIS: Service = Service {
    about: "`appendfsync always`; each client sets keys in a server of its own",
    package: "redis-server",
    ..Service::new("Redis, 8 servers", script!("redis.sh"), 170.0)
};

/// All services, in the order of the page.
pub(super) const SERVICES: [Service; 14] = [
    ETCD,
    Service {
        name: "etcd, 8 servers, thinking",
        about: "the same; each client thinks for 10 ms before each key (mean; exponential)",
        think_ms: 10,
        work: 100.0,
        ..ETCD
    },
    REDIS,
    Service {
        name: "Redis, 8 servers, thinking",
        about: "the same; each client thinks for 10 ms before each key (mean; exponential)",
        think_ms: 10,
        work: 135.0,
        ..REDIS
    },
    Service {
        about: "each client sends mails of 1 KiB by SMTP to a user of its own, until Dovecot has delivered all by LMTP \
                to maildirs",
        own_batching: "none: each mail is put into the queue by a process, and delivered by another",
        shared: MAIL,
        package: "postfix",
        instances: 1,
        ..Service::new("Postfix and Dovecot, 8 clients", script!("postfix.sh"), 65.0)
    },
    Service {
        about: "each client delivers mail after mail of 1 KiB to a maildir",
        own_batching: "none: each client has a process",
        shared: MAIL,
        package: "dovecot-lmtpd",
        instances: 1,
        as_root: false,
        ..Service::new("Dovecot LMTP, 8 clients", script!("dovecot.sh"), 45.0)
    },
    Service {
        about: "each client uploads layers of 2 KiB to an image of its own",
        own_batching: "none: each request synchronizes the files that it writes",
        package: "docker-registry",
        instances: 1,
        only_notified: true,
        ..Service::new("Container registry, 8 clients", script!("registry.sh"), 16.0)
    },
    Service {
        about: "each client pushes commits of 120 small files to a repository of its own",
        own_batching: "none: each push has processes of its own, which synchronize its pack and index",
        package: "git",
        instances: 1,
        ..Service::new("git daemon, 8 clients", script!("git.sh"), 26.0)
    },
    Service {
        about: "each client publishes messages of 1 KiB to a stream in files and waits for the acknowledgement of each",
        own_batching: "it acknowledges what it has written, and synchronizes its files every 2 minutes",
        package: "nats-server",
        instances: 1,
        only_notified: true,
        ..Service::new("NATS JetStream, 8 publishers", script!("nats.sh"), 4000.0)
    },
    Service {
        about: "one server; each client inserts row after row, a transaction each",
        own_batching: "one client at a time writes the log and synchronizes it for all that wait; mostly no other \
                       caller is there to share a flush with",
        package: "mariadb-server",
        instances: 1,
        ..Service::new("MariaDB, 8 clients", script!("mariadb.sh"), 280.0)
    },
    Service {
        about: "the same, each client with a server of its own",
        own_batching: "none between servers; each overwrites its log in place",
        package: "mariadb-server",
        ..Service::new("MariaDB, 8 servers", script!("mariadb.sh"), 240.0)
    },
    Service {
        about: "started by `pg_ctlcluster`; each client inserts row after row into a server of its own, a transaction \
                each",
        own_batching: "none between servers; each overwrites its log in place (segments are used again), and a \
                       checkpoint may run beside",
        package: "postgresql",
        ..Service::new("PostgreSQL, 8 servers", script!("postgresql.sh"), 210.0)
    },
    Service {
        about: "each publishes persistent messages to a durable queue and waits for the confirmation of each",
        own_batching: "none between queues: each has a process and a journal",
        package: "rabbitmq-server",
        instances: 1,
        ..Service::new("RabbitMQ, 8 publishers", script!("rabbitmq.sh"), 160.0)
    },
    Service {
        about: "each inserts row after row into a database of its own, a transaction each, rollback journal",
        own_batching: "none",
        package: "sqlite3",
        ..Service::new("SQLite, 8 writers", script!("sqlite.sh"), 52.0)
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_script_prepares_and_runs_under_what_is_asked_for() {
        assert!(COMMON.1.contains(&format!("\nclients={CLIENTS}\n")));
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
    fn clients_think_only_where_their_script_knows_how() {
        for service in SERVICES.iter().filter(|service| service.think_ms > 0) {
            assert!(service.script.1.contains("\n\t\tthink "), "{}", service.name);
        }
    }
}
