# Preloads libraries in all processes of an instance.
# SPDX-License-Identifier: LGPL-3.0-only

# dws_preload NAME: for dws_config. Builds t/scripts/NAME.c and preloads it. By default
# flux-core lets modules resolve symbols in the C library before preloaded ones.
dws_preload () {
	${CC:-cc} -shared -fPIC -o "$DWS_TMP/$1.so" \
		"$DWS_SRCDIR/t/scripts/$1.c" -ldl >&2 || exit 1
	export FLUX_LOAD_WITH_DEEPBIND=0
	export LD_PRELOAD=${LD_PRELOAD:+$LD_PRELOAD:}$DWS_TMP/$1.so
}
