# shellcheck shell=bash
# Packages for systems with rpm. To be sourced by scripts/packages.sh, whose variables and functions it uses.
# shellcheck disable=SC2154

pack_rpm() {
	local root=$work/rpm
	stage "$root/files"
	rm "$root/files/usr/share/doc/luc/changelog.gz"
	cp CHANGELOG.md LICENSE "$root/files/usr/share/doc/luc/"
	stage_module "$root/files"
	stage_debug "$root/files" >/dev/null
	set_times "$root/files"
	{
		cat packaging/rpm/luc.spec
		printf '\n%%changelog\n* %s %s - %s-%s\n- LUC %s of %s; what changed is in CHANGELOG.md\n' \
			"$(date --utc --date="@$SOURCE_DATE_EPOCH" '+%a %b %d %Y')" "$maintainer" "$version" "$revision" \
			"$version" "$COMMIT"
	} >"$root/luc.spec"
	rpmbuild -bb --quiet --define "_topdir $root/top" --define "staged $root/files" \
		--define "luc_version $version" --define "luc_revision $revision" \
		--define "module_version $module_version" --define "packager $maintainer" \
		--define "_binary_payload w${compression}.xzdio" "$root/luc.spec"
	find "$root/top/RPMS" -name '*.rpm' -exec cp {} "$out/" ';'
}
