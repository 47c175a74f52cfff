#!/bin/bash
# How configuration files are read and merged.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='configuration: several files, merged, and what is refused'
. "$(dirname "$0")/../../t/sharness.sh"
test_under_flux 2

# conf NAME: standard input as a file of the directory conf.
conf () {
	mkdir -p conf &&
	cat >conf/$1
}

# same JSON: this is the configuration now.
same () {
	flux config get >config.out &&
	jq -S . <config.out >out &&
	echo "$1" | jq -S . >expected &&
	test_cmp expected out
}

test_expect_success 'config: files are merged table by table, in their order' '
	conf 10.toml <<-EOT &&
	top = 1
	[site]
	mapping = "first"
	list = [1, 2]
	policy = { x = 1 }
	[[plugins]]
	load = "a"
	EOT
	conf 9.toml <<-EOT &&
	[site]
	mapping = "second"
	kubeconfig = "k"
	list = [3]
	policy.y = 2
	[[plugins]]
	load = "b"
	EOT
	echo "no = TOML" | conf README &&
	echo "{\"json\": 1}" | conf 1.json &&
	echo "hidden = 1" | conf .hidden.toml &&
	flux config load conf &&
	same "{\"top\": 1, \"site\": {\"mapping\": \"second\", \"kubeconfig\": \"k\",
		\"list\": [3], \"policy\": {\"x\": 1, \"y\": 2}},
		\"plugins\": [{\"load\": \"b\"}]}"
'
test_expect_success 'config: so does flux start, and reload' '
	cat >again.sh <<-EOT &&
	flux config get >before &&
	printf "[site]\nlist = []\n" >conf/A.toml &&
	flux config reload &&
	flux config get >after &&
	flux getattr config.path >path &&
	printf "\n[site\n" >conf/a.toml &&
	! flux config reload 2>err
	EOT
	sed -i /plugins/,\$d conf/*.toml &&
	"$FLUX" start --config-path=conf sh again.sh &&
	jq -S -c . before after >out &&
	cat >expected <<-EOT &&
	{"site":{"kubeconfig":"k","list":[3],"mapping":"second","policy":{"x":1,"y":2}},"top":1}
	{"site":{"kubeconfig":"k","list":[],"mapping":"second","policy":{"x":1,"y":2}},"top":1}
	EOT
	test_cmp expected out &&
	test "$(cat path)" = conf &&
	grep "Config file error: conf/a.toml:2: " err
'
test_expect_success 'config: a table and a value take the place of each other' '
	rm -r conf &&
	echo "site = 5" | conf 1.toml &&
	echo "site.x = 1" | conf 2.toml &&
	flux config load conf &&
	same "{\"site\": {\"x\": 1}}" &&
	mv conf/1.toml conf/3.toml &&
	flux config load conf &&
	same "{\"site\": 5}"
'
test_expect_success 'config: times and large numbers' '
	flux config load <<-EOT &&
	t = 2026-01-01T10:00:00.5Z
	n = 9223372036854775808
	EOT
	same "{\"t\": {\"iso-8601-ts\": \"2026-01-01T10:00:00Z\"},
		\"n\": 9223372036854775808}"
'
test_expect_success 'config: what cannot be read is named, and nothing changes' '
	flux config get >before &&
	rm -r conf &&
	echo "a = 1" | conf 1.toml &&
	for text in "a = " "[a" "a = 1 1" "x = [1, \"a\"]" "x = [1, [2]]" "x = 2026-01-01" \
		"x = 07:30:00" "x = inf" "a = 1
a = 2"; do
		echo "$text" | conf 2.toml &&
		test_must_fail flux config load conf 2>err &&
		grep "^flux-config: Error parsing config: conf/2.toml:" err &&
		test_must_fail flux config load <conf/2.toml || return 1
	done &&
	rm conf/2.toml && ln -s nowhere conf/2.toml &&
	test_must_fail flux config load conf 2>err &&
	grep "conf/2.toml: No such file or directory" err &&
	rm conf/2.toml && mkdir conf/2.toml &&
	test_must_fail flux config load conf 2>err &&
	grep "conf/2.toml: Is a directory" err &&
	test_must_fail flux config load nowhere 2>err &&
	grep "stat: nowhere: No such file or directory" err &&
	echo "[1]" >list.json &&
	test_must_fail flux config load list.json 2>err &&
	grep "list.json: JSON must be an object" err &&
	test_must_fail flux config load <list.json &&
	echo "{" >half.json &&
	test_must_fail flux config load half.json 2>err &&
	grep "half.json:2: " err &&
	test_must_fail flux config load <half.json &&
	echo "{\"a\": 1}" >json &&
	test_must_fail flux config load json 2>err &&
	grep "json:1: " err &&
	flux config get >after &&
	test_cmp before after
'
test_done
