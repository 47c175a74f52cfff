#!/bin/bash
# With systemd as the first process: our unit is started, stopped, killed and restarted by
# systemd itself, and the package is upgraded and removed as the pages say, under jobs.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='units under systemd, and an upgrade under jobs'
DWS_SITE_BOOT=t
. "$(dirname "$0")/site.sh"

AGENT=flux-coral2-dws
UNITS=$SITE_PREFIX/lib/systemd/system
export FLUX_URI=local:///run/flux/local

# property UNIT NAME: as systemd says
property () {
	systemctl show --value --property "$2" "$1"
}
# is UNIT NAME VALUE
is () {
	test "$(property "$1" "$2")" = "$3"
}
# restarted PID: the agent has another process than that, and works
restarted () {
	! is $AGENT MainPID "$1" && is $AGENT ActiveState active && site_ready
}
# status_says PATTERN: what an admin looks at first
status_says () {
	systemctl status --no-pager --full $AGENT >status
	grep -e "$1" status
}
# override UNIT LINE...: as systemctl edit does. With a RestartSec of a second systemd would
# give a unit up that fails five times in ten.
override () {
	mkdir -p /run/systemd/system/$1.service.d &&
	printf "%s\n" "[Unit]" StartLimitIntervalSec=0 "[Service]" "${@:2}" >"/run/systemd/system/$1.service.d/test.conf" &&
	systemctl daemon-reload
}
# no_override UNIT
no_override () {
	rm "/run/systemd/system/$1.service.d/test.conf" &&
	systemctl daemon-reload
}

test_expect_success 'packages of two versions are built' '
	site_users &&
	quietly site_packages dpkg-dev debhelper $SITE_BUILD_PACKAGES python3-cffi &&
	quietly site_flux_core_package &&
	quietly "$DWS_SRCDIR/packaging/deb" . &&
	site_next_version next &&
	quietly next/packaging/deb .
'
test_expect_success 'the first is installed, and Flux and the agent start as the page says' '
	quietly site_packages "./flux-dws_$VERSION"_*.deb &&
	systemctl enable "$FLUX_PREFIX/lib/systemd/system/flux.service" &&
	mkdir -p /etc/systemd/system/flux.service.d &&
	ln -s "$UNITS/flux.service.d/flux-dws.conf" /etc/systemd/system/flux.service.d &&
	cat >/etc/systemd/system/nnf-clientmount.service <<-EOF &&
	[Service]
	ExecStart=/bin/sleep infinity
	EOF
	systemctl daemon-reload &&
	site_cluster &&
	site_configure &&
	quietly systemctl restart flux &&
	quietly systemctl enable --now "$UNITS/$AGENT.service" &&
	site_wait site_ready
'
test_expect_success 'flux.service has started nnf-clientmount' '
	is nnf-clientmount ActiveState active
'
test_expect_success 'systemd has nothing to say about the units' '
	systemd-analyze verify $AGENT.service >verify 2>&1 &&
	test_must_be_empty verify &&
	systemd-analyze security --no-pager --threshold=30 $AGENT >security
'
test_expect_success 'a killed agent is started by systemd' '
	override $AGENT RestartSec=1s &&
	pid=$(property $AGENT MainPID) &&
	kill -KILL "$pid" &&
	site_wait restarted "$pid" &&
	is $AGENT NRestarts 1
'
test_expect_success 'one that hangs is, too' '
	override $AGENT RestartSec=1s WatchdogSec=5s &&
	quietly systemctl restart $AGENT &&
	site_wait site_ready &&
	pid=$(property $AGENT MainPID) &&
	kill -STOP "$pid" &&
	site_wait restarted "$pid" &&
	journalctl -u $AGENT >journal &&
	grep -i "watchdog timeout" journal
'
test_expect_success 'one with a wrong option is not, and status says what it is' '
	override $AGENT RestartSec=1s ExecStart= "ExecStart=$SITE_PREFIX/bin/$AGENT --no-such" &&
	test_must_fail systemctl restart $AGENT &&
	is $AGENT ActiveState failed &&
	status_says "unrecognized arguments: --no-such" &&
	no_override $AGENT &&
	quietly systemctl restart $AGENT &&
	site_wait site_ready
'
test_expect_success 'a kubeconfig that is none: status names it, and the agent goes on when it is mended' '
	override $AGENT RestartSec=1s &&
	cp "$SITE_CONF/kubeconfig" kubeconfig.good &&
	echo "nonsense" >"$SITE_CONF/kubeconfig" &&
	{ systemctl restart $AGENT || :; } &&
	site_wait status_says "$SITE_CONF/kubeconfig" &&
	cp kubeconfig.good "$SITE_CONF/kubeconfig" &&
	site_wait site_ready
'
test_expect_success 'an API server that is away: status names it, and the agent goes on when it is back' '
	kill -STOP "$(cat sim.pid)" &&
	quietly systemctl restart --no-block $AGENT &&
	site_wait status_says "API server\|Kubernetes" &&
	kill -CONT "$(cat sim.pid)" &&
	site_wait site_ready
'
test_expect_success 'the agent stops and starts with Flux' '
	quietly systemctl stop flux &&
	is $AGENT ActiveState inactive &&
	quietly systemctl start flux &&
	site_wait site_ready
'
test_expect_success 'a broker that is killed is started by systemd, and the agent with it' '
	override flux RestartSec=1s &&
	pid=$(property flux MainPID) &&
	agent=$(property $AGENT MainPID) &&
	systemctl stop nnf-clientmount &&
	kill -KILL "$pid" &&
	site_wait restarted "$agent" &&
	is nnf-clientmount ActiveState active
'
test_expect_success 'a job runs and two wait' '
	site_jobs_begin
'
test_expect_success 'the package is upgraded: jobs and agent are where they were' '
	agent=$(property $AGENT MainPID) &&
	quietly site_packages "./flux-dws_$NEXT_VERSION"_*.deb &&
	is $AGENT MainPID "$agent" &&
	site_jobs_wait &&
	is $AGENT NeedDaemonReload no &&
	site_as flux flux rabbit selftest --types none >selftest &&
	grep "releases.*this command: $NEXT_VERSION.*module: $VERSION" selftest
'
test_expect_success 'the parts are loaded anew, as the page says' '
	site_as flux flux module reload dws &&
	site_as flux flux jobtap load --remove=dws-jobtap.so dws-jobtap.so &&
	quietly systemctl restart $AGENT &&
	site_wait site_ready &&
	site_as flux flux rabbit selftest --types none >selftest &&
	grep "all parts are of $NEXT_VERSION" selftest
'
test_expect_success 'all three jobs run to their end, and nothing of them is left' '
	site_jobs_end
'
test_expect_success 'flux rabbit selftest is all green' '
	site_as flux flux rabbit selftest
'
test_expect_success 'it is removed as the page says, and Flux starts without it' '
	quietly systemctl disable --now $AGENT &&
	rm "$SITE_CONF/conf.d/rabbit.toml" /etc/systemd/system/flux.service.d/flux-dws.conf &&
	quietly apt-get purge -y flux-dws &&
	quietly systemctl restart flux &&
	site_wait site_as flux flux run true
'
test_expect_success 'systemd knows nothing of it any more' '
	is flux ActiveState active &&
	is $AGENT LoadState not-found &&
	find /etc/systemd -name "*flux-coral2*" -o -name flux-dws.conf >left &&
	test_must_be_empty left &&
	systemctl list-units --failed --no-legend >failed &&
	test_must_be_empty failed
'
test_done
