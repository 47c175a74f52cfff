#!/bin/bash
# In a prefix of its own, beside a flux-core whose prefix cannot be written to: an
# instance that is told where ours is, jobs, and back.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='a prefix of its own'
. "$(dirname "$0")/site.sh"

OWN=/opt/own/flux-dws
# bare COMMAND...: as user flux, who has not been told where ours is
bare () {
	site_as flux env -i PATH="$PATH" HOME=/var/lib/flux FLUX_URI="$FLUX_URI" "$@"
}
plugin_is_ours () {
	flux jobtap query dws-jobtap.so >plugin &&
	test "$(jq -r .path plugin)" = $OWN/lib/flux/job-manager/plugins/dws-jobtap.so
}

test_expect_success 'a site has a flux-core, and what is needed beside it' '
	site_users &&
	quietly site_packages $SITE_BUILD_PACKAGES $SITE_PACKAGES &&
	site_keep
'
test_expect_success 'the prefix of flux-core is not one of our own' '
	test_must_fail meson setup none "$DWS_SRCDIR" --prefix="$FLUX_PREFIX" -Dflux=system \
		-Downprefix=true -Dtests=false >out &&
	grep "is the prefix of flux-core: -Downprefix=true needs another" out
'
test_expect_success 'it is built and installed' '
	quietly meson setup build "$DWS_SRCDIR" --prefix=$OWN --libdir=lib -Dflux=system \
		-Downprefix=true -Dtests=false &&
	quietly meson install -C build
'
test_expect_success 'everything is below its prefix, and flux-core as it was' '
	grep "^/" build/meson-logs/install-log.txt | site_places >installed &&
	test_must_fail grep -v "^$OWN/" installed &&
	site_changed >changed &&
	test_must_be_empty changed
'
test_expect_success 'it lies there as the parts of Flux lie below theirs' '
	while read -r file; do
		test -s "$OWN/$file" || return 1
	done <<-EOF
	bin/flux-coral2-dws
	etc/bash_completion.d/flux-rabbit
	etc/flux/cli/plugins/coral2_chassis.py
	etc/flux/cli/plugins/dws_directives.py
	etc/flux/modprobe/modprobe.d/dws.toml
	etc/flux/modprobe/rc1.d/dws.py
	etc/flux/rc1.d/01-rabbit-rc
	lib/flux/job-frobnicator/plugins/rabbit.py
	lib/flux/job-manager/plugins/dws-jobtap.so
	lib/flux/modules/dws.so
	lib/flux/modules/sched-rabbit.py
	lib/flux/python3.11/flux_k8s/agent.py
	lib/flux/shell/plugins/dws_environment.so
	lib/systemd/system/flux-coral2-dws.service
	lib/systemd/system/flux.service.d/flux-dws.conf
	libexec/flux-dws/atom-begin
	libexec/flux/cmd/flux-rabbit.py
	libexec/flux/epilog.d/start_nnf_clientmount.sh
	libexec/flux/prolog.d/zstop_nnf_clientmount.sh
	share/doc/flux-dws/examples/rabbit.toml
	share/flux-dws/environment.sh
	share/man/man1/flux-rabbit.1
	EOF
'
test_expect_success 'nothing of it hides a package of Flux' '
	test_must_fail test -e $OWN/lib/flux/python3.11/flux
'
test_expect_success 'Flux has to be told where it is' '
	test_must_fail flux rabbit --help &&
	. $OWN/share/flux-dws/environment.sh &&
	SITE_PREFIX=$OWN &&
	site_environment
'
test_expect_success 'what was there before stays, after ours' '
	(FLUX_RC_EXTRA=/a FLUX_EXEC_PATH_PREPEND=/b:/c MANPATH=/d &&
	. $OWN/share/flux-dws/environment.sh &&
	echo $FLUX_RC_EXTRA $FLUX_EXEC_PATH_PREPEND $MANPATH) >actual &&
	echo "$OWN/etc/flux:/a $OWN/libexec/flux/cmd:/b:/c $OWN/share/man:/d" >expected &&
	test_cmp expected actual
'
test_expect_success 'every command has its help, and the agent, which nobody tells' '
	for command in rabbit dws2jgf rabbitmapping getrabbit; do
		flux $command --help >help.$command || return 1
	done &&
	env -i PATH="$PATH" $OWN/bin/flux-coral2-dws --help >help.agent &&
	quietly site_packages man-db &&
	test "$(man -w flux-getrabbit)" = $OWN/share/man/man1/flux-getrabbit.1
'
test_expect_success 'flux batch has its options' '
	printf "%s\n" "#!/bin/sh" "#DW jobdw type=xfs capacity=1GiB name=aa" >job.sh &&
	site_as alice flux batch -N1 --dry-run <job.sh >jobspec && grep capacity=1GiB jobspec
'
test_expect_success 'the instance is configured' '
	site_cluster &&
	site_configure &&
	cat >"$SITE_CONF/conf.d/ingest.toml" <<-EOF
	[ingest.frobnicator]
	plugins = [ "defaults", "constraints", "$OWN/lib/flux/job-frobnicator/plugins/rabbit.py" ]
	EOF
'
test_expect_success 'it starts from its units, with ours from rc1' '
	site_start &&
	flux module list >modules &&
	grep -E "^dws " modules &&
	grep sched-fluxion-resource modules &&
	plugin_is_ours &&
	grep "running $OWN/etc/flux/rc1.d/01-rabbit-rc" flux.log
'
test_expect_success 'flux rabbit selftest is all green' '
	site_as flux flux rabbit selftest
'
test_expect_success 'the job of a user who was told nothing has its storage' '
	bare flux run -N1 -n1 -S dw="#DW jobdw type=xfs capacity=1GiB name=aa" \
		sh -c "test -d \$DW_JOB_aa && echo \$DW_JOB_aa" >dir &&
	grep ^/ dir
'
test_expect_success 'the frobnicator has our plugin' '
	id=$(site_as flux flux submit -N1 --requires=host:node0 --urgency=hold \
		-S dw="#DW jobdw type=xfs capacity=1GiB name=aa" -S allow_rabbits=true true) &&
	site_as flux flux job info $id jobspec >jobspec &&
	site_as flux flux cancel $id &&
	site_as flux flux job wait-event $id clean &&
	echo rabbit >expected &&
	jq -r ".attributes.system.constraints.or[1].properties[]" <jobspec >actual &&
	test_cmp expected actual
'
test_expect_success 'it starts again, with our scheduler, and the plugin from rc1' '
	site_stop &&
	sed -i "/^\[job-manager\]/,\$d" "$SITE_CONF/conf.d/rabbit.toml" &&
	test_must_fail grep dws-jobtap "$SITE_CONF/conf.d/rabbit.toml" &&
	cat >"$SITE_CONF/conf.d/modules.toml" <<-EOF &&
	[modules]
	alternatives.sched = "sched-rabbit"
	alternatives.feasibility = "sched-rabbit"
	EOF
	site_start &&
	flux module list >modules &&
	grep -E "^sched-rabbit" modules &&
	plugin_is_ours &&
	site_as flux flux rabbit selftest --types none,xfs
'
test_expect_success 'it is removed, and nothing is left' '
	site_stop &&
	quietly ninja -C build uninstall &&
	find $OWN ! -type d ! -name "*.pyc" >left &&
	test_must_be_empty left &&
	site_changed >changed &&
	test_must_be_empty changed
'
test_done
