#!/bin/bash
# An instance inside a rabbit job starts without the nodes that go without the
# job's file systems: etc/rc1.d/01-rabbit-rc.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Failed nodes are drained in an instance inside the job'
. "$(dirname "$0")/sharness.sh"
test_under_flux 4

RC=$DWS_SRCDIR/etc/rc1.d/01-rabbit-rc

# fail JOBID HOSTS: what the module tells a job that goes on without some.
fail () {
	flux job raise --type=dws-node-failure --severity=1 $1 "$2"
}
undrain_all () {
	nodes=$(flux resource drain -no "{nodelist}") &&
	test -z "$nodes" || flux resource undrain "$nodes"
}

# Where there are no instances inside jobs, this one takes the place of both:
# a front of flux says that it is inside $ENCLOSING.
test_expect_success 'a front that leads to the enclosing instance' '
	mkdir front &&
	cat >front/flux <<-EOF &&
	#!/bin/bash
	case "\$1 \$2" in
	"getattr jobid") test -n "\$ENCLOSING" && echo "\$ENCLOSING"; exit ;;
	"getattr rank") echo "\${RANK:-0}"; exit ;;
	"--parent job") shift ;;
	"hostlist --union")
		exec "$FLUX" python -c "import sys
	from flux.hostlist import Hostlist
	hosts = Hostlist(sys.stdin.read().split())
	hosts.uniq()
	print(hosts)" ;;
	esac
	exec "$FLUX" "\$@"
	EOF
	sed -i "s/^	//" front/flux &&
	chmod +x front/flux
'
rc () {
	PATH=$PWD/front:$PATH ENCLOSING=$1 RANK=${2:-0} bash "$RC"
}
test_expect_success 'an instance that is no job has nothing to drain' '
	rc "" &&
	test -z "$(flux resource drain -no "{nodelist}")"
'
test_expect_success 'nor has one in a job without failed nodes' '
	jobid=$(flux submit -N1 sleep inf) &&
	flux job raise --type=other --severity=2 $jobid node3 &&
	rc $jobid &&
	test -z "$(flux resource drain -no "{nodelist}")"
'
test_expect_success 'only rank 0 looks' '
	fail $jobid node1 &&
	rc $jobid 1 &&
	test -z "$(flux resource drain -no "{nodelist}")"
'
test_expect_success 'all failed nodes are drained, each once' '
	fail $jobid "node[1-2]" &&
	rc $jobid >out &&
	grep "draining node\[1-2\]" out &&
	dws_drained "node[1-2]" &&
	test "$(flux resource drain -no "{reason}")" = \
		"rabbit: file systems are missing"
'
test_expect_success 'so they are when it runs again, and another has failed' '
	flux resource undrain node2 && flux resource drain node2 "an admin" &&
	fail $jobid node3 &&
	rc $jobid &&
	dws_drained "node[1-3]" &&
	flux resource drain -no "{nodelist} {reason}" >drained &&
	grep "node2 an admin" drained &&
	undrain_all
'
test_expect_success 'a broker that cannot be asked is an error' '
	test_must_fail env FLUX_URI=local:///nowhere bash "$RC"
'
test_expect_success 'a job that cannot be asked about is an error' '
	test_must_fail rc fzzzzzzzz &&
	flux cancel $jobid
'
test_expect_success FLUX_CORE 'a real instance inside a job does the same' '
	mkfifo go &&
	cat >inner.sh <<-EOF &&
	cat "$PWD/go"
	bash "$RC" >"$PWD/out" &&
	flux resource drain -no "{nodelist}" >"$PWD/drained"
	EOF
	inner=$(flux submit -N3 -n3 flux broker bash "$PWD/inner.sh") &&
	dws_wait_event $inner start &&
	fail $inner node1 &&
	: >go &&
	dws_wait_event $inner clean &&
	flux job status $inner &&
	grep "draining node1" out &&
	test "$(cat drained)" = node1
'
test_done
