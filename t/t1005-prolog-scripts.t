#!/bin/bash
# The prolog and epilog scripts: when nnf-clientmount is started and stopped.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Prolog and epilog scripts'

. "$(dirname "$0")/sharness.sh"
test_under_flux 2

# As the tests have a bin/flux of their own.
REAL_FLUX=$(command -v flux)
PROLOG=$DWS_SRCDIR/etc/prolog.d/zstop_nnf_clientmount.sh
EPILOG=$DWS_SRCDIR/etc/epilog.d/start_nnf_clientmount.sh
GOOD="#DW jobdw type=xfs capacity=10GiB name=scratch"

# prolog_timeout VALUE: from here on
prolog_timeout () {
	sed -i "s/^prolog_timeout = .*/prolog_timeout = \"$1\"/" \
		"$DWS_TMP/conf.d/test.toml" &&
	flux config reload
}
# Configured here, not from the start: then a flux-core would load the module and
# the plugin by itself.
test_expect_success 'configure rabbits' '
	cat >>"$DWS_TMP/conf.d/test.toml" <<-EOT &&
	[rabbit]
	mapping = "$DWS_SRCDIR/t/data/rabbitmap/mapping.json"
	prolog_timeout = "10m"
	EOT
	flux config reload
'
test_expect_success 'make a systemctl that only takes notes' '
	mkdir bin &&
	cat >bin/systemctl <<-EOT &&
	#!/bin/sh
	ulimit -S -f unlimited
	echo "\$@" >>"$PWD/calls"
	EOT
	chmod +x bin/systemctl &&
	PATH=$PWD/bin:$PATH
'
test_expect_success 'the prolog of an ordinary job stops nnf-clientmount' '
	jobid=$(flux submit true) &&
	FLUX_JOB_ID=$jobid $PROLOG &&
	echo "stop nnf-clientmount" >expected &&
	test_cmp expected calls
'
test_expect_success 'so does that of a job with an empty dw' '
	rm calls &&
	jobid=$(flux submit -S dw=" " true) &&
	FLUX_JOB_ID=$jobid $PROLOG &&
	test_cmp expected calls
'
test_expect_success 'a prolog_timeout of 0 is none' '
	cat >bin/flux <<-EOF &&
	#!/bin/sh
	case "\$*" in
	"job wait-event"*) echo "\$@" >>"$PWD/waits" ;;
	*) exec "$REAL_FLUX" "\$@" ;;
	esac
	EOF
	chmod +x bin/flux &&
	# Without the plugin flux submit refuses directives.
	flux submit --dry-run -S dw=" #DW persistentdw name=aa" true >dw.json &&
	jobid=$(flux python -c "import flux, flux.job
print(flux.job.submit(flux.Flux(), open(\"dw.json\").read()).f58)") &&
	for limit in 0 0s 0.0m; do
		prolog_timeout $limit &&
		FLUX_JOB_ID=$jobid $PROLOG || return 1
	done &&
	prolog_timeout 0.05m &&
	FLUX_JOB_ID=$jobid $PROLOG &&
	prolog_timeout 10m &&
	FLUX_JOB_ID=$jobid $PROLOG &&
	rm bin/flux && hash -r &&
	# The rest of a limit is slightly shorter than the limit.
	sed "s/.* -t \([^ ]*\) .*/\1/; s/^2[0-9][0-9][0-9]ms/3000ms/" waits >parts &&
	test_cmp - parts <<-EOF
	10000ms
	10000ms
	10000ms
	3000ms
	10000ms
	EOF
'
test_expect_success 'it waits on with the bash of RHEL 8 and a clock that is set back' '
	cat >bin/flux <<-EOF &&
	#!/bin/sh
	case "\$*" in
	"job wait-event"*)
		echo wait >>"$PWD/looks"
		test \$(wc -l <"$PWD/looks") -gt 2 || exec "$REAL_FLUX" "\$@"
		;;
	*) exec "$REAL_FLUX" "\$@" ;;
	esac
	EOF
	chmod +x bin/flux &&
	held=$(flux python -c "import flux, flux.job
print(flux.job.submit(flux.Flux(), open(\"dw.json\").read(), urgency=0).f58)") &&
	for clock in "unset EPOCHREALTIME" "unset EPOCHREALTIME; EPOCHREALTIME=5,000000"; do
		rm -f looks &&
		echo "$clock" >env.sh &&
		sed "s/part=10000/part=100/" "$PROLOG" >prolog &&
		FLUX_JOB_ID=$held BASH_ENV=$PWD/env.sh bash prolog 2>err &&
		{ grep -v "timeout.* event" err >other; test_must_be_empty other; } &&
		test $(wc -l <looks) = 3 || return 1
	done &&
	rm bin/flux && hash -r &&
	flux cancel $held
'
test_expect_success 'that of a rabbit job fails when the mounts do not come' '
	rm calls &&
	flux jobtap load $DWS_PLUGINS/dws-jobtap.so &&
	flux module load --name=dws $DWS_SRCDIR/t/scripts/fake-dws.py &&
	prolog_timeout 0.1s &&
	jobid=$(flux submit -N1 -S dw="$GOOD" true) &&
	test_must_fail env FLUX_JOB_ID=$jobid $PROLOG &&
	prolog_timeout 10m &&
	printf "start nnf-clientmount\nstop nnf-clientmount\n" >expected &&
	test_cmp expected calls &&
	flux job wait-event -t 300 -m type=prolog-timeout -m severity=0 \
		$jobid exception &&
	rpc job-manager.dws.epilog-remove "{\"id\": \"$jobid\"}" &&
	flux job wait-event -t 300 $jobid clean
'
test_expect_success 'that of a rabbit job with its mounts succeeds' '
	rm calls &&
	flux module remove dws &&
	flux module load --name=dws $DWS_SRCDIR/t/scripts/fake-dws.py auto &&
	jobid=$(flux submit -N1 -S dw="$GOOD" true) &&
	flux job wait-event -t 300 $jobid clean &&
	FLUX_JOB_ID=$jobid $PROLOG &&
	test_cmp expected calls
'
test_expect_success 'required daemons run while the job does' '
	rm calls &&
	flux kvs put $(flux job id --to=kvs $jobid).rabbit_daemons="[\"a.service\",\"b.service\"]" &&
	FLUX_JOB_ID=$jobid $PROLOG &&
	printf "%s\n" "start nnf-clientmount" "start a.service" \
		"start b.service" "stop nnf-clientmount" >daemons.exp &&
	test_cmp daemons.exp calls &&
	rm calls &&
	FLUX_JOB_ID=$jobid $EPILOG &&
	printf "%s\n" "stop flux-prolog@$jobid" "stop a.service" "stop b.service" \
		"start nnf-clientmount" >daemons.exp &&
	test_cmp daemons.exp calls
'
# The bash of RHEL 8 writes here-documents to files, as newer ones do for BASH_COMPAT.
test_expect_success 'so they do on a node whose file systems are full' '
	rm calls &&
	(
		ulimit -S -f 0 &&
		export FLUX_JOB_ID=$jobid BASH_COMPAT=50 &&
		$PROLOG && $EPILOG
	) &&
	test_cmp - calls <<-EOF
	start nnf-clientmount
	start a.service
	start b.service
	stop nnf-clientmount
	stop flux-prolog@$jobid
	stop a.service
	stop b.service
	start nnf-clientmount
	EOF
'
# Only a flux-core has a KVS, which may lag, on other ranks.
test_expect_success FLUX_CORE 'on a rank whose KVS lags rank 0 is asked' '
	rm calls &&
	flux exec -r 1 flux module remove job-info &&
	flux exec -r 1 flux module load --name=job-info \
		"$DWS_SRCDIR/t/scripts/deaf-job-info.py" &&
	prolog_timeout 1s &&
	flux exec -r 1 env FLUX_JOB_ID=$jobid PATH="$PATH" $PROLOG &&
	printf "%s\n" "start nnf-clientmount" "start a.service" \
		"start b.service" "stop nnf-clientmount" >daemons.exp &&
	test_cmp daemons.exp calls &&
	prolog_timeout 10m &&
	flux exec -r 1 flux module remove job-info &&
	flux exec -r 1 flux module load job-info
'
# unreadable: nobody says which daemons a job requires
unreadable () {
	cat >bin/flux <<-EOF &&
	#!/bin/sh
	case "\$*" in
	"job info "*" rabbit_daemons") echo "flux-job: lost connection" >&2; exit 1 ;;
	*) exec "$REAL_FLUX" "\$@" ;;
	esac
	EOF
	chmod +x bin/flux
}
test_expect_success 'a job does not start without them because nobody can say so' '
	unreadable &&
	rm calls &&
	test_must_fail env FLUX_JOB_ID=$jobid $PROLOG 2>err &&
	grep "lost connection" err &&
	grep "could not read which daemons $jobid requires" err &&
	printf "%s\n" "start nnf-clientmount" "stop nnf-clientmount" >daemons.exp &&
	test_cmp daemons.exp calls
'
test_expect_success 'nor is it silent that they go on, and unmounting begins' '
	rm calls &&
	test_must_fail env FLUX_JOB_ID=$jobid $EPILOG 2>err &&
	grep "lost connection" err &&
	grep "could not read which daemons $jobid requires" err &&
	printf "%s\n" "stop flux-prolog@$jobid" "start nnf-clientmount" >daemons.exp &&
	test_cmp daemons.exp calls &&
	rm bin/flux && hash -r
'
test_expect_success 'what is no list of daemons is an error as well' '
	daemons=$(flux job id --to=kvs $jobid).rabbit_daemons &&
	flux kvs put $daemons=5 &&
	test_must_fail env FLUX_JOB_ID=$jobid $PROLOG &&
	test_must_fail env FLUX_JOB_ID=$jobid $EPILOG &&
	flux kvs unlink $daemons &&
	rm calls &&
	FLUX_JOB_ID=$jobid $EPILOG &&
	printf "%s\n" "stop flux-prolog@$jobid" "start nnf-clientmount" >daemons.exp &&
	test_cmp daemons.exp calls
'
test_expect_success 'an unknown job is an error' '
	rm calls &&
	test_must_fail env FLUX_JOB_ID=1 $PROLOG &&
	test_must_fail env -u FLUX_JOB_ID $PROLOG &&
	test_must_fail test -e calls
'
test_expect_success 'the epilog starts nnf-clientmount' '
	rm -f calls &&
	$EPILOG &&
	echo "start nnf-clientmount" >expected &&
	test_cmp expected calls
'
# no_flux COMMAND...: run it where there is a PATH without flux
no_flux () {
	mkdir -p others &&
	for name in bash env dirname jq awk; do
		ln -sf "$(command -v $name)" others || return 1
	done &&
	ln -sf "$PWD/bin/systemctl" others &&
	PATH=$PWD/others "$@"
}
test_expect_success 'a Flux that cannot be asked is an error, and unmounting begins' '
	rm calls &&
	test_must_fail env FLUX_URI=local:///nowhere FLUX_JOB_ID=$jobid $PROLOG 2>err &&
	grep "could not ask Flux for rabbit.mapping" err &&
	test_must_fail no_flux env FLUX_JOB_ID=$jobid $PROLOG 2>err &&
	grep "flux: command not found" err &&
	test_must_fail test -e calls &&
	test_must_fail env FLUX_URI=local:///nowhere $EPILOG 2>err &&
	grep "could not ask Flux for rabbit.mapping" err &&
	test_must_fail no_flux $EPILOG 2>err &&
	grep "flux: command not found" err &&
	printf "start nnf-clientmount\n%.0s" 1 2 >expected &&
	test_cmp expected calls
'
test_expect_success 'without [rabbit] both leave it alone' '
	rm calls &&
	echo "{}" >conf.json &&
	flux config load conf.json &&
	FLUX_JOB_ID=$jobid $PROLOG &&
	$EPILOG &&
	test_must_fail test -e calls
'
test_expect_success 'unload' '
	flux module remove dws &&
	flux jobtap remove dws-jobtap.so
'
test_done
