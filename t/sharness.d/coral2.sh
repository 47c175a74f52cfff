# Runs flux-coral2 as a site does, for tests of the migration from it.
# SPDX-License-Identifier: LGPL-3.0-only

. "$DWS_SRCDIR/scripts/lib/engines.sh"

# coral2_found: is there one, for this flux-core, with a package kubernetes
# that it can use?
coral2_found () {
	dws_has_fluxion && CORAL2=$(find_flux_coral2) &&
	CORAL2_CLIENT=$(find_coral2_client "$DWS_SRCDIR") && export CORAL2 CORAL2_CLIENT
}

# coral2_configure: a graph of flux-coral2 for Fluxion, and the table [rabbit].
coral2_configure () {
	dws_configure &&
	flux kvs get resource.R >R &&
	coral2_graph <R >R.graph &&
	dws_use_fluxion R.graph
}

# coral2_packages: print a PYTHONPATH with its packages in place of ours.
coral2_packages () {
	mkdir -p coral2 &&
	ln -sfn "$CORAL2"/lib/python3*/site-packages/flux_k8s coral2/flux_k8s &&
	echo "$PWD/coral2:$CORAL2_CLIENT:$PYTHONPATH"
}

# coral2_graph <R: print R with the resource graph of its program.
coral2_graph () {
	env PYTHONPATH="$(coral2_packages)" "$FLUX" python \
		"$CORAL2"/libexec/flux/cmd/flux-dws2jgf.py --no-validate --cluster-name=c mapping.json
}

# coral2_start: load its plugin and start its service. Returns when that serves.
coral2_start () {
	flux jobtap load "$CORAL2/lib/flux/job-manager/plugins/dws-jobtap.so" &&
	coral2_service
}
# A round of its watches takes 2 s, and it does not look at requests if the next is due.
coral2_service () {
	env PYTHONPATH="$(coral2_packages)" flux python \
		"$CORAL2/bin/coral2_dws.py" -w 4 -vv >>coral2.log 2>&1 &
	echo $! >"$DWS_TMP/coral2.pid"
	dws_until coral2_serves
}
coral2_serves () {
	timeout 10 flux python "$DWS_SRCDIR/t/scripts/rpc.py" dws.status >/dev/null 2>&1
}

# coral2_stop: end the service as systemd does. SIGCONT is for a service stopped with
# SIGSTOP; any other may be gone by then.
coral2_stop () {
	kill -TERM "$(cat "$DWS_TMP/coral2.pid")" &&
	{ kill -CONT "$(cat "$DWS_TMP/coral2.pid")" || :; } &&
	{ wait "$(cat "$DWS_TMP/coral2.pid")" || :; } &&
	rm "$DWS_TMP/coral2.pid"
}

# coral2_ended <LINES: the jobs of the crowd end as LINES say, and leave nothing.
coral2_ended () {
	cat >expected &&
	dws_crowd outcome >outcome &&
	diff -u expected outcome &&
	dws_wait_status ".jobs == 0"
}

# coral2_workflows FILTER: print each workflow through jq's FILTER.
coral2_workflows () {
	dws_k8s get workflows >list.out && jq -r ".items[] | $1" list.out
}

# coral2_labelled: all workflows have flux-dws' labels.
coral2_labelled () {
	flux kvs get dws.instance >instance.out &&
	coral2_workflows ".metadata.labels.\"flux-framework.org/instance\"" >labels &&
	test "$(sort -u labels)" = "$(tr -d \" <instance.out)"
}
