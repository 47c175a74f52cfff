#!/bin/bash
# flux rabbit selftest on a site with users: green, and what it says of a site on which
# root's part is wrong.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='flux rabbit selftest on a site with users'
. "$(dirname "$0")/site.sh"

IMP=$(dirname "$(dirname "$SITE_CONF")")/flux/imp/conf.d/imp.toml

# finds CHECK PATTERN: this check fails, with that text
finds () {
	as flux flux rabbit selftest --types none --json >json
	jq -r ".checks[] | select(.verdict == \"failed\")
		| .check + \": \" + .text + \"; \" + .hint" json >failed &&
	grep "^$1: .*$2" failed || { cat json; return 1; }
}

test_expect_success 'all is green, and nothing is left out' '
	{ as flux flux rabbit selftest >out || { cat out; false; }; } &&
	grep " 0 failed, 0 skipped" out
'
test_expect_success 'a plugin list without perilog.so' '
	as flux flux jobtap remove perilog.so &&
	finds "prolog and epilog" "perilog.so is not loaded: .*one list of job-manager.plugins" &&
	as flux flux jobtap load perilog.so
'
test_expect_success 'an epilog that runs nowhere' '
	cp "$SITE_CONF/conf.d/system.toml" system.toml &&
	sed "/^\[job-manager.epilog/,/per-rank/s/true/false/" system.toml \
		>"$SITE_CONF/conf.d/system.toml" &&
	as flux flux config reload &&
	finds "prolog and epilog" "job-manager.epilog has neither" &&
	cp system.toml "$SITE_CONF/conf.d/system.toml" &&
	as flux flux config reload
'
test_expect_success 'an IMP that hands no environment on' '
	cp "$IMP" imp.toml &&
	sed -i "/run.epilog/,\$s/\"FLUX_\*\"/\"FLUX_JOB_*\"/" "$IMP" &&
	finds IMP "run.epilog.allowed-environment of the IMP leaves FLUX_URI out" &&
	sed "/run.prolog/,/path/d" imp.toml >"$IMP" &&
	finds IMP "the IMP has no table run.prolog" &&
	cp imp.toml "$IMP"
'
test_expect_success 'a program where root does not find it' '
	mv /usr/bin/jq /usr/local/bin/jq && hash -r &&
	finds IMP "jq is not in .*: root.s scripts" &&
	mv /usr/local/bin/jq /usr/bin/jq && hash -r
'
test_expect_success 'no munged' '
	mv /run/munge/munge.socket.2 /run/munge/aside &&
	finds munge "munge.socket.2.*; systemctl start munge" &&
	mv /run/munge/aside /run/munge/munge.socket.2
'
test_expect_success 'all is green again' '
	{ as flux flux rabbit selftest --types xfs >out || { cat out; false; }; }
'
test_done
