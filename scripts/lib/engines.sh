# shellcheck shell=bash
# Finds foreign engines on this machine. Sourced by the programs that run tests; the
# functions print nothing but their result.
# SPDX-License-Identifier: LGPL-3.0-only

# find_flux_core: the flux command of a flux-core: FLUX, unless that is of the
# embedded engine, else the first such on PATH, else the default place.
# Status 1: there is none.
find_flux_core () {
    local path
    for path in "${FLUX:-}" $(type -aP flux) /opt/flux/bin/flux; do
        if test -x "$path" && [[ $("$path" --version) == *libflux-core* ]]; then
            echo "$path"
            return 0
        fi
    done
    return 1
}

# flux_core_pc FLUX: the folders that may have its flux-core.pc, for PKG_CONFIG_PATH.
flux_core_pc () {
    local prefix
    prefix=$(cd "$(dirname "$1")/.." && pwd)
    echo "$prefix/lib/pkgconfig:$prefix/lib64/pkgconfig"
}

# find_nnf_rig: the folder with the controllers of DWS and NNF: DWS_NNF_RIG,
# else the default place. Status 1: there is none.
find_nnf_rig () {
    local path=${DWS_NNF_RIG:-/opt/nnf-rig}
    test -x "$path/up" && echo "$path"
}

# find_openpbs: the folder with the programs of a PBS cluster: DWS_PBS, else the
# default place. Status 1: there is none.
find_openpbs () {
    local path=${DWS_PBS:-/opt/openpbs}
    test -x "$path/pbs-cluster" && echo "$path"
}

# find_flux_coral2: the folder with flux-coral2 as it was installed for the flux-core,
# apart from that: DWS_CORAL2, else the default place. Status 1: there is none.
find_flux_coral2 () {
    local path=${DWS_CORAL2:-/opt/flux-coral2}
    test -x "$path/bin/coral2_dws.py" && echo "$path"
}

# find_spack: the folder of a Spack: DWS_SPACK. Status 1: there is none.
find_spack () {
    test -x "${DWS_SPACK:-}/bin/spack" && echo "$DWS_SPACK"
}

# find_coral2_client TOP: the folder of the checkout TOP with the package kubernetes for
# flux-coral2, from scripts/setup --tests. Versions above 32 reject its arguments.
# Status 1: there is none.
find_coral2_client () {
    local path=$1/.venv/coral2-client
    test -d "$path/kubernetes" && echo "$path"
}
