# Configuration with rabbits as nodes of the instance.
# SPDX-License-Identifier: LGPL-3.0-only

# dws_config_queue BATCH RABBITS: for dws_config. The nodes of those ranks (idsets)
# are in a queue, which is the default; rabbits have the property "rabbit", are in
# none, and the frobnicator plugin lets jobs onto them.
dws_config_queue () {
	jq --arg batch "$1" --arg rabbit "$2" \
		'.execution.properties = {batch: $batch, rabbit: $rabbit}' \
		"$DWS_TMP/R" >"$DWS_TMP/R.new" &&
	mv "$DWS_TMP/R.new" "$DWS_TMP/R" &&
	cat <<-EOT
	[queues.batch]
	requires = ["batch"]
	[policy.jobspec.defaults.system]
	queue = "batch"
	[ingest.frobnicator]
	plugins = ["defaults", "constraints",
	           "$DWS_SRCDIR/src/python/frobnicator/rabbit.py"]
	EOT
}
