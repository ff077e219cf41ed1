#!/usr/bin/env bash
# Dovecot's LMTP: eight clients that deliver mails of 1 KiB to a user each. It starts its programs
# with an environment of its own, but for what `import_environment` names, so that the instance's
# configuration has to name the gate's variables; nothing else of it is about the gate.
# shellcheck source=prove/subjects/services/common.sh
source "$(dirname "$0")/common.sh"
# shellcheck source=prove/subjects/services/mail.sh
source "$(dirname "$0")/mail.sh"
mails=${SERVICE_WORK:-150}
# Mails are never delivered as root: all of Dovecot runs as the user who calls.
user=$(id -un)
group=$(id -gn)

deliver() {
	/usr/bin/python3 - "$folder/base/lmtp" "user$1" "$mails" <<'END'
import smtplib
import sys

address, user, mails = sys.argv[1], sys.argv[2], int(sys.argv[3])
text = "From: a@example.org\r\nTo: %s\r\nSubject: mail %d\r\n\r\n" + "x" * 70 + "\r\n"
body = ("x" * 70 + "\r\n") * 13
with smtplib.LMTP(address) as client:
    for number in range(mails):
        # Raises if the mail is refused.
        client.sendmail("a@example.org", [user], text % (user, number) + body)
END
}

case $goal in
prepare) ;;
run)
	rm -rf "$folder/base" "$folder/mail" "$folder/log" "$folder/sockets"
	mkdir -p "$folder/mail"
	configure_dovecot "$user" "$group" log <<-END
		default_internal_user = $user
		default_internal_group = $group
		default_login_user = $user
		service anvil {
		  chroot =
		}
		service stats {
		  chroot =
		}
		service lmtp {
		  user = $user
		  process_min_avail = $clients
		  unix_listener lmtp {
		    mode = 0600
		  }
		}
		import_environment = TZ LD_PRELOAD LUC_GATE_ROUNDS LUC_GATE_POLICY LUC_GATE_RUN \
		  LUC_GATE_LONGEST_WAIT_NS LUC_GATE_FILTERS LUC_GATE_COUNT_ONLY LUC_GATE_NOTIFIED
	END
	serve 1 dovecot -F -c "$folder/dovecot.conf"
	await test -S "$folder/base/lmtp"
	drive deliver
	stop_all
	no_errors '(Error|Fatal|Panic):' "$folder/log"
	count=$(find "$folder/mail" -path '*/new/*' -type f | wc -l)
	if ((count != clients * mails)); then
		echo "$0: $count mails" >&2
		exit 1
	fi
	;;
esac
