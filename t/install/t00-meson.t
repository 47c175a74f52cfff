#!/bin/bash
# From sources into the prefix of a flux-core, by doc/admin/install.rst: an
# instance started from its own rc files, a job of each type, and back.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='meson install'
. "$(dirname "$0")/site.sh"

waits_for_nodes () {
	site_as flux flux rabbit show $(cat jobid) >show &&
	grep "nodes to come up" show
}

test_expect_success 'a site has a flux-core, and what is needed beside it' '
	site_users &&
	quietly site_packages $SITE_BUILD_PACKAGES $SITE_PACKAGES
'
test_expect_success 'it is built and installed' '
	quietly meson setup build "$DWS_SRCDIR" --prefix="$FLUX_PREFIX" -Dflux=system \
		-Dtests=false &&
	quietly meson install -C build
'
test_expect_success 'only what is ours is new, and no file of flux-core other' '
	grep "^/" build/meson-logs/install-log.txt | site_places >expected &&
	site_changed >actual &&
	test_cmp expected actual
'
test_expect_success 'nothing of the simulator, the stand-ins or the engine' '
	test_must_fail grep -E "sim|solo|standin" actual
'
test_expect_success 'Flux finds its own packages and ours' '
	flux python -c "import flux.constants, flux.job.frobnicator.plugins.defaults
import flux_k8s._dws, flux_rabbit.cli, flux_sched_rabbit.scheduler
import flux.job.frobnicator.plugins.rabbit"
'
test_expect_success 'every command has its help' '
	for command in rabbit dws2jgf rabbitmapping getrabbit; do
		flux $command --help >help.$command || return 1
	done &&
	flux-coral2-dws --help >help.agent
'
# Programs and man pages, which the units name, are where the links lead.
test_expect_success 'systemd can read the unit, and finds it restricted' '
	mkdir units &&
	cp "$FLUX_PREFIX"/lib/systemd/system/*.service units &&
	quietly site_packages systemd man-db &&
	MANPATH=$FLUX_PREFIX/share/man systemd-analyze verify ./units/flux-coral2-dws.service \
		>verify 2>&1 &&
	test_must_fail grep flux-coral2-dws verify &&
	systemd-analyze security --offline=true --threshold=20 --no-pager \
		./units/flux-coral2-dws.service
'
# As bash-completion has it: ours when bash starts, that of flux-core when it is needed.
test_expect_success 'bash completes flux rabbit, and the rest as before' '
	quietly site_packages bash-completion &&
	cat >complete.bash <<-EOF &&
	. /usr/share/bash-completion/bash_completion
	. $FLUX_PREFIX/etc/bash_completion.d/flux-rabbit
	while read -ra COMP_WORDS; do
		COMP_CWORD=\$((\${#COMP_WORDS[@]} - 1)) COMPREPLY=()
		COMP_LINE=\${COMP_WORDS[*]} COMP_POINT=\${#COMP_LINE}
		\$(complete -p flux | sed "s/.*-F \([^ ]*\).*/\1/") flux
		echo \${COMPREPLY[*]}
	done
	EOF
	XDG_DATA_DIRS=$FLUX_PREFIX/share bash --norc complete.bash >offered <<-EOF &&
	flux rabbit tim
	flux jobta
	flux rabbi
	flux module li
	flux rabbit drain --rea
	EOF
	cat >expected <<-EOF &&
	timeline
	jobtap
	rabbit rabbitmapping
	list
	--reason
	EOF
	test_cmp expected offered
'
test_expect_success 'every user has the options of flux batch, without being told' '
	site_as alice flux batch --help >help.batch && grep -e --dw-check help.batch &&
	printf "%s\n" "#!/bin/sh" "#DW jobdw type=xfs capacity=1GiB name=aa" >job.sh &&
	site_as alice flux batch -N1 --dry-run <job.sh >jobspec && grep capacity=1GiB jobspec
'
test_expect_success 'the instance is configured' '
	site_cluster &&
	site_configure
'
test_expect_success 'it starts from its units, with ours from rc1' '
	site_start &&
	flux module list >modules &&
	grep -E "^dws " modules &&
	grep sched-fluxion-resource modules &&
	flux jobtap list >plugins &&
	grep dws-jobtap.so plugins
'
test_expect_success 'flux rabbit selftest is all green' '
	site_as flux flux rabbit selftest
'
test_expect_success 'so it is after all has been started again, with a shorter R' '
	site_stop &&
	sed -i "s/\"rv1\"/\"rv1_shorthand\"/" "$SITE_CONF/conf.d/system.toml" &&
	grep rv1_shorthand "$SITE_CONF/conf.d/system.toml" &&
	site_start &&
	site_as flux flux rabbit selftest --types xfs
'
# Fluxion would end a job that comes to it while all nodes are drained.
test_expect_success 'so it is with all nodes drained: rabbit jobs stay in the queue' '
	site_as flux flux queue stop --nocheckpoint &&
	site_as flux flux submit -N1 -t 1m -S dw="#DW jobdw type=xfs capacity=1GiB name=scratch" \
		true >jobid &&
	flux job wait-event $(cat jobid) priority &&
	site_as flux flux resource drain 0 &&
	site_stop && site_start &&
	site_wait waits_for_nodes &&
	site_as flux flux resource undrain 0 &&
	site_as flux flux job attach $(cat jobid)
'
test_expect_success 'what was installed is removed, and nothing is left' '
	site_stop &&
	quietly ninja -C build uninstall &&
	site_forget &&
	site_changed >left &&
	test_must_be_empty left
'
test_done
