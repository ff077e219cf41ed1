#!/usr/bin/env bash
# RabbitMQ: eight publishers, each with a durable queue of its own, that wait for the broker's
# confirmation of every persistent message.
# shellcheck source=prove/subjects/services/common.sh
source "$(dirname "$0")/common.sh"
messages=${SERVICE_WORK:-150}
port=${SERVICE_PORT:-25672}

sbin=$(echo /usr/lib/rabbitmq/lib/rabbitmq_server-*/sbin)
export HOME=$folder
export RABBITMQ_NODENAME=luc@localhost
export RABBITMQ_MNESIA_BASE=$folder/data RABBITMQ_LOG_BASE=$folder/logs
export RABBITMQ_ENABLED_PLUGINS_FILE=$folder/plugins RABBITMQ_CONFIG_FILE=$folder/rabbitmq
export RABBITMQ_CONF_ENV_FILE=$folder/environment
export RABBITMQ_NODE_IP_ADDRESS=127.0.0.1 RABBITMQ_NODE_PORT=$port
export RABBITMQ_DIST_PORT=$((port + 1)) ERL_EPMD_PORT=$((port + 2)) ERL_EPMD_ADDRESS=127.0.0.1

publish() {
	/usr/bin/python3 - "$port" "$1" "$messages" <<'END'
import sys
import pika

port, queue, messages = int(sys.argv[1]), "q" + sys.argv[2], int(sys.argv[3])
connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", port))
channel = connection.channel()
channel.queue_declare(queue, durable=True)
channel.confirm_delivery()
persistent = pika.BasicProperties(delivery_mode=2)
for _ in range(messages):
    # Returns when the broker has confirmed the message; raises if it refuses.
    channel.basic_publish("", queue, b"x" * 1000, persistent, mandatory=True)
found = channel.queue_declare(queue, durable=True, passive=True).method.message_count
channel.queue_delete(queue)
connection.close()
sys.exit(found != messages)
END
}

case $goal in
prepare)
	echo '[].' >"$folder/plugins"
	: >"$folder/rabbitmq.conf"
	: >"$folder/environment"
	;;
run)
	rm -rf "$folder/logs"
	# The port mapper of its own would stay behind as a daemon.
	start epmd -port "$ERL_EPMD_PORT" -address 127.0.0.1
	serve 1 "$sbin/rabbitmq-server" >"$folder/stdout" 2>&1
	await listens "$port"
	drive publish
	stop_all
	no_errors '\[(error|critical)\]|crash' "$folder"/logs/*.log
	;;
esac
