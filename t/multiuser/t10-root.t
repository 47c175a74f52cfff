#!/bin/bash
# Prolog and epilog run as root through the IMP: for every job, by what the site says, and
# not by what a user has put into his environment, his folders or his storage.
# SPDX-License-Identifier: LGPL-3.0-only

test_description="root's prolog and epilog"
. "$(dirname "$0")/site.sh"

DIRECTIVE="#DW jobdw type=xfs capacity=10GiB name=mine"
SITE_PROLOG=$SITE_CONF/prolog.d
# Without the blank that is in the name of this test's folder.
TRAPS=$(mktemp -d /var/tmp/traps-XXXXXX)
chmod 755 "$TRAPS"

# forget: what units were told on all nodes
forget () {
	for node in node0 node1 node2 node3; do
		: >/nodes/$node/run/units.log || return 1
	done
}
# reloaded SED: the configuration of all brokers, changed so
reloaded () {
	sed -i "$1" "$SITE_CONF/conf.d/system.toml" &&
	as flux flux config reload
}

test_expect_success 'they run on each node of a plain job, which waits for nothing' '
	forget &&
	jobid=$(as alice flux submit -N4 true) &&
	wait_event $jobid clean &&
	name=$(flux job id --to=f58plain $jobid) &&
	for node in node0 node1 node2 node3; do
		test_cmp - /nodes/$node/run/units.log <<-EOF || return 1
		start flux-prolog@$name
		stop nnf-clientmount
		start flux-epilog@$name
		stop flux-prolog@$name
		start nnf-clientmount
		EOF
	done
'
test_expect_success 'that of a job with directives lets nnf-clientmount mount them first' '
	forget &&
	as alice flux run -N2 -S dw="$DIRECTIVE" true &&
	cat /nodes/node*/run/units.log >all &&
	grep -v flux- all >actual &&
	printf "%s nnf-clientmount\n" start stop start start stop start >expected &&
	test_cmp expected actual
'
test_expect_success 'a user cannot have the IMP run them' '
	for what in prolog epilog; do
		test_must_fail as alice $FLUX_PREFIX/libexec/flux/flux-imp run $what 2>err &&
		grep "permission denied\|not permitted\|not in allowed" err ||
			{ cat err && return 1; }
	done
'
# Traps that record each user who runs them.
test_expect_success 'a user lays out what root might run' '
	mkdir $TRAPS/bin &&
	cat >$TRAPS/note <<-EOF &&
	touch $TRAPS/notes/\$(/usr/bin/id -u)
	EOF
	for name in flux jq systemctl awk python3 printenv id bash; do
		(echo "#!/bin/sh" && cat $TRAPS/note) >$TRAPS/bin/$name || return 1
	done &&
	chmod 755 $TRAPS/bin/* &&
	for name in json flux os; do
		echo "import subprocess; subprocess.run([\"/bin/sh\", \"$TRAPS/note\"])" \
			>$TRAPS/$name.py || return 1
	done &&
	cat >note.c <<-EOF &&
	#include <fcntl.h>
	#include <stdio.h>
	#include <unistd.h>
	__attribute__ ((constructor)) static void note (void)
	{
	    char path[256];
	    snprintf (path, sizeof (path), "$TRAPS/notes/%u", geteuid ());
	    close (open (path, O_CREAT | O_WRONLY, 0644));
	}
	EOF
	gcc -shared -fPIC -o $TRAPS/note.so note.c &&
	mkdir -m 1777 $TRAPS/notes &&
	as alice env LD_PRELOAD=$TRAPS/note.so true &&
	test -e $TRAPS/notes/2001 && rm $TRAPS/notes/2001
'
test_expect_success 'nothing of his environment or folder reaches them' '
	mkdir -p $SITE_PROLOG &&
	printf "%s\n" "#!/bin/sh" "env >/run/prolog.env" "id -u >/run/prolog.id" \
		>$SITE_PROLOG/look.sh &&
	chmod 755 $SITE_PROLOG/look.sh &&
	jobid=$(as alice flux submit -N1 --requires=host:node0 --cwd=$TRAPS \
		--env=LD_PRELOAD=$TRAPS/note.so --env=BASH_ENV=$TRAPS/note \
		--env=ENV=$TRAPS/note --env=PYTHONPATH=$TRAPS \
		--env=PATH=$TRAPS/bin:/usr/bin --env=FLUX_URI=local:///nowhere \
		--env=FLUX_EXEC_PATH=$TRAPS/bin --env=FLUX_JOB_ID=1 \
		-S dw="$DIRECTIVE" /bin/true) &&
	wait_event $jobid clean &&
	as flux flux job eventlog $jobid >eventlog &&
	test_must_fail grep exception eventlog &&
	test -e $TRAPS/notes/2001 &&
	echo 2001 >expected &&
	ls $TRAPS/notes >actual &&
	test_cmp expected actual &&
	echo 0 >expected &&
	test_cmp expected /nodes/node0/run/prolog.id &&
	test_must_fail grep "$TRAPS\|nowhere" /nodes/node0/run/prolog.env &&
	grep "^FLUX_JOB_ID=$(flux job id --to=f58plain $jobid)\$" /nodes/node0/run/prolog.env &&
	rm $SITE_PROLOG/look.sh
'
test_expect_success 'links in his storage lead root nowhere' '
	mkdir -m 700 $TRAPS/kept && echo kept >$TRAPS/kept/file &&
	as alice flux run -N1 -S dw="$DIRECTIVE" bash -c "
		cd \$DW_JOB_mine && ln -sf $TRAPS/kept link && ln -sf / all && ln -sf /etc/shadow shadow" &&
	dws_ctl wait-idle --timeout 30 &&
	test -s $TRAPS/kept/file && test -s /etc/shadow &&
	test "$(stat -c %U:%a $TRAPS/kept)" = root:700
'
test_expect_success 'without allow-root-owner plain jobs run all the same' '
	reloaded "s/^allow-root-owner = true/allow-root-owner = false/" &&
	test_must_fail on node0 root flux config get rabbit.no-such-key &&
	as alice flux run -N4 true &&
	test -z "$(as flux flux resource drain -no "{nodelist}")"
'
test_expect_success 'those with directives fail, and the script names the key' '
	jobid=$(as alice flux submit -N1 --requires=host:node1 -S dw="$DIRECTIVE" true) &&
	wait_event $jobid clean &&
	as flux flux job eventlog $jobid >eventlog &&
	grep "exception type=\"prolog\"" eventlog &&
	journal=/nodes/node1/run/journal/flux-prolog@$(flux job id --to=f58plain $jobid) &&
	grep "root needs access.allow-root-owner = true" $journal &&
	test "$(as flux flux resource drain -no "{nodelist}")" = node1
'
test_expect_success 'with it they run again' '
	reloaded "s/^allow-root-owner = false/allow-root-owner = true/" &&
	as flux flux resource undrain node1 &&
	as alice flux run -N4 -S dw="$DIRECTIVE" true
'
test_expect_success 'nothing is left' '
	all_clean
'
test_done
