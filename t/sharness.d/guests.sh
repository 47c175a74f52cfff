# Sends requests as the instance owner, and as guests.
# SPDX-License-Identifier: LGPL-3.0-only

# rpc TOPIC [PAYLOAD]: send a request, and print the response.
rpc () {
	dws_wait 300 flux python "$DWS_SRCDIR/t/scripts/rpc.py" "$@"
}

# as_guest COMMAND [ARGUMENT...]: run a command whose messages carry a guest's userid.
as_guest () {
	FLUX_HANDLE_USERID=${GUEST:-4242} FLUX_HANDLE_ROLEMASK=0x2 "$@"
}

# dws_guests: for dws_config. Guests may use the instance, and run jobs.
dws_guests () {
	cat <<-EOT
	[access]
	allow-guest-user = true
	[exec.testexec]
	allow-guests = true
	EOT
}

# dws_names: for dws_config. Users' names come from t/scripts/slow-names.c, which
# SLOW_NAMES tells what to do.
dws_names () {
	export SLOW_NAMES=$DWS_TMP/slow
	dws_preload slow-names
}
