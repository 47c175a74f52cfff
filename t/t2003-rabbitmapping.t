#!/bin/bash
# flux rabbitmapping against a simulated cluster.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='flux rabbitmapping'
. "$(dirname "$0")/sharness.sh"
test_under_flux 4

# Where the Python of Flux has no Kubernetes client, that of the tests may do:
# it comes last, so that it adds packages and replaces none.
if ! flux python -c 'import kubernetes' 2>/dev/null; then
	for dir in "$DWS_PREFIX"/lib/python3*/site-packages; do
		PYTHONPATH=$PYTHONPATH:$dir
	done
	export PYTHONPATH
fi
if flux python -c 'import kubernetes' 2>/dev/null; then
	test_set_prereq KUBERNETES
fi

test_expect_success 'start the simulated cluster' '
	dws_start_sim
'
test_expect_success KUBERNETES 'the mapping is that of the cluster' '
	flux rabbitmapping -k kubeconfig >map &&
	jq -S . map >actual &&
	jq -S . mapping.json >expected &&
	test_cmp expected actual
'
# drives NAME: [bytes of all drives of a rabbit, what storage can have of it]
drives () {
	dws_k8s get storages $1 >storage.out &&
	jq -c "[.status.devices[].capacity] |
		[add, (sort | .[2] / 4096 | floor * 65536)]" <storage.out
}
test_expect_success KUBERNETES 'with what storage can have of a rabbit, or --raw' '
	flux rabbitmapping -k kubeconfig --raw >raw &&
	jq -sc "map(.rabbits.rabbit0.capacity)" raw map >actual &&
	drives rabbit0 >expected &&
	test_cmp expected actual
'
test_expect_success KUBERNETES 'what is allocated changes neither' '
	flux rabbitmapping -k kubeconfig --ignore-external-allocations >map2 &&
	test_cmp map map2
'
test_expect_success KUBERNETES 'KUBECONFIG is the default' '
	KUBECONFIG=$PWD/kubeconfig flux rabbitmapping >map2 &&
	test_cmp map map2
'
test_expect_success KUBERNETES '--indent and --nosort' '
	flux rabbitmapping -k kubeconfig -i 2 >map2 &&
	jq --indent 2 -S . map >expected &&
	test_cmp expected map2 &&
	flux rabbitmapping -k kubeconfig --nosort >map2 &&
	jq -S . map2 >actual &&
	jq -S . map >expected &&
	test_cmp expected actual
'
test_expect_success KUBERNETES 'other tools take it' '
	flux dws2jgf --no-validate --only-sched map >jgf <<-EOF &&
	{"version":1,"execution":{"R_lite":[{"rank":"0","children":{}}],
	"starttime":0,"expiration":0,"nodelist":["node0"]}}
	EOF
	jq -e ".graph.nodes | length > 36" jgf
'
test_expect_success 'a kubeconfig that is not there is named' '
	test_must_fail flux rabbitmapping -k /nonexistent 2>err
'
test_expect_success KUBERNETES 'by file name' '
	grep /nonexistent err
'
test_expect_success KUBERNETES 'a cluster that is gone is an error' '
	dws_stop_sim &&
	test_must_fail flux rabbitmapping -k kubeconfig 2>err &&
	grep "Kubernetes API" err
'
test_done
