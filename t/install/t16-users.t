#!/bin/bash
# A fresh machine becomes a site with users by the text of doc/admin/install.rst: what is
# typed and written here is in its blocks, or is the part of flux-core's own guide.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='a site with users, by the page'
DWS_SITE_BOOT=t
. "$(dirname "$0")/site.sh"

export FLUX_URI=local:///run/flux/local
ETC=${SITE_CONF%/system}

# page HEADING LANGUAGE NUMBER: that block below that heading, for this flux-core
page () {
	awk -v heading="$1" -v block=".. code-block:: $2" -v number="$3" '
		$0 == heading { under = 1; next }
		!under { next }
		inside && /^[^ ]/ { exit }
		inside && !/:class:/ { print }
		$0 ~ "^ *[.][.] code-block::" { inside = (index ($0, block) && ++seen == number) }
	' "$DWS_SRCDIR/doc/admin/${4:-install}.rst" |
		sed -e "s/^   //" -e "s/^\\$ //" -e "s/^> *//" \
			-e "s,/etc/flux/,$ETC/,g" -e "s,/opt/flux/,$FLUX_PREFIX/,g" \
			-e "s,/usr/libexec/flux/,$FLUX_PREFIX/libexec/flux/,g" \
			-e "s,/usr/share/doc/,$FLUX_PREFIX/share/doc/,g" >block &&
	grep -q . block && cat block
}
# typed HEADING NUMBER: as root, in the sources
typed () {
	page "$1" console "$2" $3 >typed.sh && cat typed.sh &&
	quietly env --chdir="$PWD/src" bash -e "$PWD/typed.sh"
}

test_expect_success 'the site has a flux-core, by its guide: users, munge, IMP, units' '
	echo "APT::Get::Assume-Yes \"true\";" >/etc/apt/apt.conf.d/90yes &&
	quietly site_packages jq &&
	site_users &&
	quietly systemctl start munge &&
	chmod u+s "$FLUX_PREFIX/libexec/flux/flux-imp" &&
	mkdir -p "$SITE_CONF/conf.d" "$ETC/imp/conf.d" &&
	cat >"$ETC/imp/conf.d/imp.toml" <<-EOF &&
	[exec]
	allowed-users = [ "flux" ]
	allowed-shells = [ "$FLUX_PREFIX/libexec/flux/flux-shell" ]
	EOF
	cat >"$SITE_CONF/conf.d/exec.toml" <<-EOF &&
	[exec]
	imp = "$FLUX_PREFIX/libexec/flux/flux-imp"
	EOF
	quietly systemctl enable "$FLUX_PREFIX/lib/systemd/system/flux.service"
'
test_expect_success 'it has rabbits, a kubeconfig, and nnf-clientmount' '
	site_cluster &&
	cat >/etc/systemd/system/nnf-clientmount.service <<-EOF
	[Service]
	ExecStart=/bin/sleep infinity
	EOF
'
test_expect_success 'Build and install: the package' '
	"$DWS_SRCDIR/packaging/sources" src &&
	cp kubeconfig src &&
	typed "Build and install" 1
'
test_expect_success 'A site with users' '
	page "A site with users" toml 1 >"$SITE_CONF/conf.d/users.toml" &&
	page "A site with users" toml 2 >>"$ETC/imp/conf.d/imp.toml" &&
	typed "A site with users" 1
'
test_expect_success 'Configure' '
	typed Configure 1 &&
	typed Configure 2 &&
	sed -i -e "s,/etc/flux/,$ETC/,g" -e "s,^#kubeconfig,kubeconfig," -e "/^\[job-manager/,\$d" \
		"$SITE_CONF/conf.d/rabbit.toml" &&
	page Configure toml 1 >>"$SITE_CONF/conf.d/rabbit.toml"
'
test_expect_success 'Fluxion, by the page on schedulers; and the check' '
	typed Fluxion 1 schedulers &&
	page Fluxion toml 1 schedulers >"$SITE_CONF/conf.d/scheduler.toml" &&
	typed Configure 3
'
test_expect_success 'Start' '
	typed Start 2 &&
	site_wait site_ready
'
test_expect_success 'flux rabbit selftest is all green, and nothing is left out' '
	page Start console 3 >command && cat command &&
	grep "^sudo -u flux flux rabbit selftest\$" command &&
	{ site_as flux flux rabbit selftest >out || { cat out && false; }; } &&
	grep " 0 failed, 0 skipped" out
'
test_expect_success 'a user has storage, and root has mounted it' '
	site_as alice flux run -N1 -S dw=scratch \
		bash -c "id -un && touch \$DW_JOB_scratch/file && stat -L -c %U \$DW_JOB_scratch/" >out &&
	test "$(sort -u out)" = alice &&
	journalctl -u "flux-prolog@*" >journal && grep -i "finished\|deactivated" journal &&
	journalctl -u nnf-clientmount >journal && grep Stopped journal
'
test_done
