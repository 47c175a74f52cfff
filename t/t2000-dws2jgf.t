#!/bin/bash
# flux dws2jgf: from R or configuration and rabbitmapping to a resource graph.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='flux dws2jgf'
. "$(dirname "$0")/sharness.sh"
test_under_flux 2

DATA=$SHARNESS_TEST_SRCDIR/data/rabbitmap

# vertices FILTER FILE: names of the vertices that a jq filter picks
vertices () {
	jq -r "(.scheduling // .).graph.nodes[].metadata | select($1)
		| .paths.containment" "$2"
}

cat >R <<-EOF
{"version":1,"execution":{"R_lite":[{"rank":"0-3","children":{"core":"0-1"}}],
"starttime":0,"expiration":0,"nodelist":["fig[1-3,9]"]},"scheduling":{"old":1}}
EOF

test_expect_success 'R comes out with the graph added' '
	flux dws2jgf --cluster-name=fig -c 4 $DATA/mapping.json <R >jgf &&
	jq -S "del(.scheduling)" R >R.in &&
	jq -S "del(.scheduling)" jgf >R.out &&
	test_cmp R.in R.out &&
	jq -e ".scheduling | keys == [\"graph\"]" jgf
'
test_expect_success 'it has chassis, ssds, nodes and cores' '
	vertices ".type == \"chassis\"" jgf >chassis &&
	printf "/fig/chassis%s\n" 0 1 >chassis.exp &&
	test_cmp chassis.exp chassis &&
	vertices ".type == \"ssd\"" jgf >ssd &&
	test $(wc -l <ssd) -eq 8 &&
	vertices ".type == \"node\"" jgf >node &&
	printf "/fig/%s\n" chassis0/fig1 chassis0/fig2 chassis1/fig3 fig9 >node.exp &&
	test_cmp node.exp node &&
	vertices ".type == \"core\"" jgf >core &&
	test $(wc -l <core) -eq 8
'
test_expect_success 'the capacity is split, and starts as down' '
	vertices ".type == \"ssd\" and .size == 1000 and .status == 1" jgf >ssd &&
	printf "/fig/chassis0/ssd%s\n" 0 1 2 3 >ssd.exp &&
	test_cmp ssd.exp ssd &&
	vertices ".type == \"ssd\" and .size == 500 and .status == 1" jgf >ssd &&
	test $(wc -l <ssd) -eq 4
'
test_expect_success '--only-sched leaves out R, 36 chunks are the default' '
	flux dws2jgf --only-sched $DATA/mapping.json <R >only &&
	jq -e "keys == [\"graph\"]" only &&
	vertices ".type == \"ssd\"" only >ssd &&
	test $(wc -l <ssd) -eq 72
'
test_expect_success '--from-config reads R and resource.exclude' '
	flux dws2jgf --no-validate --cluster-name=fig -c 1 \
		--from-config $DATA/resource.toml $DATA/mapping.json >conf &&
	vertices ".type == \"node\"" conf >node &&
	printf "/fig/%s\n" chassis0/fig1 chassis0/fig2 fig9 >node.exp &&
	test_cmp node.exp node &&
	vertices ".type == \"storage_node\"" conf >storage &&
	echo /fig/chassis0/fig101 >storage.exp &&
	test_cmp storage.exp storage &&
	vertices ".properties.batch == \"\" and .properties.big == \"\"" conf >prop &&
	printf "/fig/%s\n" chassis0/fig2 fig9 >prop.exp &&
	test_cmp prop.exp prop &&
	vertices ".type == \"gpu\"" conf >gpu &&
	test $(wc -l <gpu) -eq 4
'
test_expect_success 'resource.exclude of the instance is honoured' '
	cp $DWS_TMP/conf.d/test.toml saved.toml &&
	sed "s/^\[resource\]/&\nexclude = \"0\"/" saved.toml \
		>$DWS_TMP/conf.d/test.toml &&
	flux config reload &&
	flux dws2jgf --cluster-name=fig $DATA/mapping.json <R >excl &&
	cp saved.toml $DWS_TMP/conf.d/test.toml &&
	flux config reload &&
	vertices ".type == \"node\"" excl >node &&
	printf "/fig/%s\n" chassis0/fig2 chassis1/fig3 fig9 >node.exp &&
	test_cmp node.exp node
'
test_expect_success 'the mapping is found through rabbit.mapping' '
	test_must_fail flux dws2jgf <R 2>err &&
	grep rabbit.mapping err &&
	cp $DWS_TMP/conf.d/test.toml saved.toml &&
	printf "[rabbit]\nmapping = \"%s\"\n" $DATA/mapping.json \
		>>$DWS_TMP/conf.d/test.toml &&
	flux config reload &&
	flux dws2jgf --cluster-name=fig -c 4 <R >found &&
	cp saved.toml $DWS_TMP/conf.d/test.toml &&
	flux config reload &&
	test_cmp jgf found
'
test_expect_success 'compute nodes that R does not know need --no-validate' '
	sed "s/fig\[1-3,9\]/fig[1-2,8-9]/" R >R2 &&
	test_must_fail flux dws2jgf $DATA/mapping.json <R2 >out 2>err &&
	grep "not in R: fig3" err &&
	test_must_fail test -s out &&
	flux dws2jgf --no-validate $DATA/mapping.json <R2 >out
'
test_expect_success 'errors name the file and the key' '
	test_must_fail flux dws2jgf /nonexistent <R 2>err &&
	grep "/nonexistent: No such file" err &&
	echo "{\"computes\":{\"a\":\"b\"},\"rabbits\":{}}" >bad.json &&
	test_must_fail flux dws2jgf bad.json <R 2>err &&
	grep "bad.json: computes.a: rabbit b" err &&
	echo nonsense >bad.json &&
	test_must_fail flux dws2jgf bad.json <R 2>err &&
	grep "bad.json: " err &&
	test_must_fail flux dws2jgf $DATA/mapping.json <bad.json 2>err &&
	grep "standard input is not R" err &&
	test_must_fail flux dws2jgf --from-config bad.json $DATA/mapping.json \
		2>err &&
	grep "bad.json: " err &&
	test_must_fail flux dws2jgf -c 0 $DATA/mapping.json <R 2>err &&
	grep "0 chunks" err
'
test_expect_success 'it has --help' '
	flux dws2jgf --help >help &&
	grep chunks-per-nnf help
'
test_done
