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
test_expect_success 'nnf-clientmount that is not there, has failed, or is started by nobody' '
	echo LoadState=not-found >/nodes/node1/run/shown &&
	finds nnf-clientmount "no unit nnf-clientmount on node1; .*Alias=" &&
	echo ActiveState=failed >/nodes/node1/run/shown &&
	cp /nodes/node1/run/shown /nodes/node2/run/shown &&
	finds nnf-clientmount "is failed on node\[1-2\] without a job; .*systemctl status" &&
	echo WantedBy= >/nodes/node2/run/shown &&
	rm /nodes/node1/run/shown &&
	finds nnf-clientmount "nothing starts nnf-clientmount when node2 boots" &&
	rm /nodes/node2/run/shown
'
test_expect_success 'nnf-clientmount that mounts for another node, or asks another API server' '
	echo "ExecStart={ path=/d ; argv[]=/d --node-name=node9 ; ignore_errors=no ; }" \
		>/nodes/node3/run/shown &&
	finds nnf-clientmount "on node3 has the node name node9" &&
	echo "Environment=KUBERNETES_SERVICE_HOST=192.0.2.1" >/nodes/node3/run/shown &&
	as flux flux rabbit selftest --types none >out &&
	grep "nnf-clientmount .*on node3 its API server is 192.0.2.1:443, that of the agent" out &&
	rm /nodes/node3/run/shown
'
test_expect_success 'all is green again' '
	{ as flux flux rabbit selftest --types xfs >out || { cat out; false; }; }
'
test_done
