# What the scripts of mail servers share: Dovecot, which delivers mails to maildirs.
# shellcheck shell=bash

# Writes FOLDER/dovecot.conf: mails come by LMTP alone and go to maildirs below FOLDER/mail, as user $1 of group $2. The log
# is FOLDER/$3. Further lines are read from standard input.
# shellcheck disable=SC2154 # from common.sh
configure_dovecot() {
	{
		cat <<-END
			protocols = lmtp
			base_dir = $folder/base
			state_dir = $folder/base
			log_path = $folder/$3
			ssl = no
			first_valid_uid = 1
			mail_location = maildir:%h
			passdb {
			  driver = static
			  args = nopassword=yes
			}
			userdb {
			  driver = static
			  args = uid=$1 gid=$2 home=$folder/mail/%n allow_all_users=yes
			}
		END
		cat
	} >"$folder/dovecot.conf"
}
