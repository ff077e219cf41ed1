#!/usr/bin/env bash
# A mail server: Postfix, which takes mails by SMTP and hands them to Dovecot by LMTP, which delivers them to maildirs.
# Eight clients send mail after mail of 1 KiB, each to a user of its own; the run ends when all are delivered.
# shellcheck source=prove/subjects/services/common.sh
source "$(dirname "$0")/common.sh"
# shellcheck source=prove/subjects/services/mail.sh
source "$(dirname "$0")/mail.sh"
mails=${SERVICE_WORK:-50}
port=22525
printf -v text '%070d' 0

# Sends a command to the SMTP server and waits for the answer, which begins with $2.
say() {
	send "$1"$'\r\n'
	expect "$2"
}

send_mails() {
	local number body=
	for ((number = 0; number < 13; number++)); do body+=$text$'\r\n'; done
	draw_thinks "$1" "$mails"
	connect "$port"
	expect 220
	say 'HELO client.example.org' 250
	for ((number = 0; number < mails; number++)); do
		think "$number"
		say 'MAIL FROM:<a@example.org>' 250
		say "RCPT TO:<user$1@example.org>" 250
		say DATA 354
		say $'From: a@example.org\r\nTo: user'"$1"$'@example.org\r\nSubject: mail '"$number"$'\r\n\r\n'"$body." 250
	done
	say QUIT 221
	exec {to}>&-
	await delivered "$1"
}

# Whether all mails of client $1 are in its maildir.
delivered() {
	local files=("$folder/mail/user$1/new"/*)
	((${#files[@]} >= mails))
}

# Whether Postfix knows that all mails are delivered: else the next start delivers some of them once more.
queue_is_empty() {
	local files
	files=$(find "$folder/queue"/{incoming,active,deferred} -type f)
	[[ -z $files ]]
}

# Stops Postfix as its unit does: who has started it passes no signal on.
stop_postfix() {
	postfix -c "$folder/postfix" stop >/dev/null 2>&1 || true
	stop_all
}

case $goal in
prepare)
	mkdir "$folder/postfix" "$folder/queue" "$folder/data"
	chown postfix "$folder/data"
	cp /etc/postfix/dynamicmaps.cf /etc/postfix/postfix-files "$folder/postfix"
	# Debian's own services, with another port, and the log's.
	sed "s/^smtp  *inet /127.0.0.1:$port inet /" /usr/share/postfix/master.cf.dist >"$folder/postfix/master.cf"
	if ! grep -q ^postlog "$folder/postfix/master.cf"; then
		echo 'postlog unix-dgram n - n - 1 postlogd' >>"$folder/postfix/master.cf"
	fi
	cat >"$folder/postfix/main.cf" <<-END
		compatibility_level = 3.6
		queue_directory = $folder/queue
		data_directory = $folder/data
		command_directory = /usr/sbin
		daemon_directory = /usr/lib/postfix/sbin
		maillog_file = $folder/mail.log
		maillog_file_prefixes = $folder
		inet_interfaces = loopback-only
		inet_protocols = ipv4
		myhostname = mail.example.org
		mydestination =
		alias_maps =
		mynetworks = 127.0.0.0/8
		virtual_mailbox_domains = example.org
		virtual_transport = lmtp:unix:private/dovecot-lmtp
	END
	# What Debian's own start copies for programs in the chroot.
	mkdir "$folder/queue/etc"
	cp -L /etc/hosts /etc/resolv.conf /etc/services /etc/nsswitch.conf /etc/localtime "$folder/queue/etc"
	configure_dovecot nobody nogroup dovecot.log <<-END
		service lmtp {
		  unix_listener $folder/queue/private/dovecot-lmtp {
		    user = postfix
		    mode = 0600
		  }
		}
	END
	;;
run)
	rm -rf "$folder/mail" "$folder/base" "$folder"/*.log
	mkdir -m 777 "$folder/mail"
	trap stop_postfix EXIT
	serve postfix postfix -c "$folder/postfix" start-fg >"$folder/postfix-start.log" 2>&1
	await test -d "$folder/queue/private"
	serve dovecot dovecot -F -c "$folder/dovecot.conf"
	await test -S "$folder/queue/private/dovecot-lmtp"
	await listens "$port"
	drive send_mails
	await queue_is_empty
	stop_postfix
	no_errors '(Error|Fatal|Panic): |(warning|error|fatal|panic): ' "$folder"/*.log
	found=$(grep -rhE '^Subject: mail [0-9]+' "$folder/mail"/*/new | wc -l)
	if ((found != clients * mails)); then
		echo "$0: $found mails" >&2
		exit 1
	fi
	;;
esac
