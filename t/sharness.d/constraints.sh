# Constraints that flux submit has no options for.
# SPDX-License-Identifier: LGPL-3.0-only

# dws_submit_with CONSTRAINTS [OPTION...]: submit a job of a minute with these
dws_submit_with () {
	with=$1
	shift
	flux submit -n1 -t 1m --dry-run "$@" true >base.json &&
	base=$(jq -c ".attributes.system.constraints = \"here\"" base.json) &&
	echo "${base/\"here\"/$with}" >job.json &&
	flux python "$DWS_SRCDIR/t/scripts/submit_json.py" job.json
}

# dws_nested DEPTH: print constraints nested this deep, which all nodes meet
dws_nested () {
	before= after=
	for i in $(seq $1); do
		before="{\"and\":[$before" after="$after]}"
	done
	echo "$before{\"properties\":[\"^zz\"]}$after"
}
