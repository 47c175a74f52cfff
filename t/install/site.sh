# shellcheck shell=bash
# The harness of t/install/*.t: a site that installs flux-dws into its flux-core.
# Each test file runs in a root of its own (see root), as root; with systemd as its first
# process if it sets DWS_SITE_BOOT.
# SPDX-License-Identifier: LGPL-3.0-only

DWS_SRCDIR=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
if test -z "$DWS_SITE"; then
    cd "$DWS_SRCDIR" || exit 1
    DWS_SITE=t exec t/install/root ${DWS_SITE_BOOT:+--boot} "$(realpath "$0")" "$@"
fi
. "$DWS_SRCDIR/t/install/machine.sh"
# Where ours is; and the environment of the instance, if it is in a prefix of its own.
SITE_PREFIX=$FLUX_PREFIX
SITE_ENVIRONMENT=
# Packages that the documentation names for Debian 12.
SITE_BUILD_PACKAGES="gcc pkg-config libjansson-dev python3-dev python3-docutils meson"
SITE_PACKAGES="python3-cffi python3-kubernetes python3-prometheus-client python3-pycurl"
export FLUX FLUX_PREFIX DWS_SRCDIR

# A site has only its own programs: the simulator is called by its path.
DWS_SIM=${FLUX_DWS_PREFIX:-$DWS_SRCDIR/.venv}/bin/dws-sim
PATH=$FLUX_PREFIX/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
unset FLUX_URI PYTHONPATH LD_LIBRARY_PATH FLUX_DWS_PREFIX

SHARNESS_TEST_DIRECTORY=$(mktemp -d /var/tmp/dws-site-XXXXXX)
chmod 755 "$SHARNESS_TEST_DIRECTORY"
SHARNESS_TEST_SRCDIR=$DWS_SRCDIR/t
export PATH SHARNESS_TEST_DIRECTORY SHARNESS_TEST_SRCDIR
cd "$SHARNESS_TEST_DIRECTORY" || exit 1
. "${SHARNESS_PATH:-/usr/share/sharness/sharness.sh}"
chain_lint=t
# Each test needs what those before it have done.
immediate=t

# site_users: the user of the instance, and one of its users.
site_users () {
    useradd --system --create-home --home-dir /var/lib/flux flux &&
    useradd --create-home alice
}

# site_packages NAME...: those of Debian.
site_packages () {
    { test -n "$(ls /var/lib/apt/lists/*Packages* 2>/dev/null)" || apt-get update; } &&
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@"
}

# site_flux_core_package: register the site's flux-core, which is in no package, with
# dpkg, so that its folders belong to another package. The package has one file,
# flux-core.pc.
site_flux_core_package () {
    mkdir -p flux-core/DEBIAN &&
    (cd / && find ".$FLUX_PREFIX" -type d) | (cd flux-core && xargs mkdir -p) &&
    site_pc=$(pkg-config --variable=pcfiledir flux-core)/flux-core.pc &&
    cp "$site_pc" "flux-core$site_pc" &&
    cat >flux-core/DEBIAN/control <<-EOF &&
	Package: flux-core
	Version: 0.88.0
	Architecture: all
	Maintainer: the site <root@node0>
	Description: the flux-core in $FLUX_PREFIX
	EOF
    dpkg-deb --build flux-core &&
    dpkg -i flux-core.deb
}

# site_next_version DIR: the sources of a later version than the one that VERSION names.
VERSION=$("$DWS_SRCDIR/packaging/version")
NEXT_VERSION=$VERSION.1
site_next_version () {
    "$DWS_SRCDIR/packaging/sources" "$1" &&
    sed -i "s/^  version: '$VERSION',/  version: '$NEXT_VERSION',/" "$1/meson.build" &&
    sed -i "1i # flux-dws $NEXT_VERSION (unreleased)\n" "$1/NEWS.md" &&
    test "$("$1/packaging/version")" = "$NEXT_VERSION"
}

# site_usr LIBDIR: pretend a flux-core in /usr with its parts in LIBDIR, to build for:
# with the flux-core.pc of the installed one and other folders. The linker still finds
# the installed libraries.
site_usr () {
    mkdir pc &&
    for site_lib in core idset hostlist; do
        sed -e "s,^\(prefix\)=.*,\1=/usr," \
            -e "s,^\(libdir\)=.*,\1=$1," \
            -e "s,=$FLUX_PREFIX/lib/,=$1/," \
            -e "s,=$FLUX_PREFIX/etc/,=/etc/," \
            -e "s,=$FLUX_PREFIX/,=/usr/," \
            -e "s,^Libs:.*-l,Libs: -L$FLUX_PREFIX/lib -l," \
            -e "s,^Cflags:.*,Cflags: -I$FLUX_PREFIX/include," \
            "$FLUX_PREFIX/lib/pkgconfig/flux-$site_lib.pc" >"pc/flux-$site_lib.pc" || return 1
    done
    export PKG_CONFIG_PATH="$PWD/pc"
}

# site_usr_command LIBDIR: its flux, as far as that is asked for its Python; and its
# libraries, for those who look what links with them.
site_usr_command () {
    mkdir -p "$1/flux" &&
    cp -RL "$FLUX_PREFIX/lib/flux/python3.11" "$1/flux" &&
    cp -a "$FLUX_PREFIX"/lib/lib*.so* "$1" &&
    cat >/usr/bin/flux <<-EOF &&
	#!/bin/sh
	shift
	PYTHONPATH=$1/flux/python3.11 exec /usr/bin/python3 "\$@"
	EOF
    chmod +x /usr/bin/flux
}

# site_run NAME UNIT [VARIABLE=VALUE...]: what the unit runs, as flux and under what the
# unit forbids, its output in NAME.log, its process in NAME.pid.
site_run () {
    site_name=$1 site_line=$(site_unit "$2") || return 1
    site_sandbox="$DWS_SRCDIR/t/install/sandbox $2"
    shift 2
    test -n "$site_line" || return 1
    # In the place of this shell, so that its process is that of the program.
    site_exec="exec $site_sandbox" site_as flux env -i --chdir / HOME=/var/lib/flux USER=flux "PATH=$PATH" "$@" \
        bash -c "exec $site_line" >"$site_name.log" 2>&1 &
    echo $! >"$site_name.pid"
}

# site_cluster: a simulated cluster with one rabbit, next to this host. Its mounts
# are where those of a node are.
site_cluster () {
    "$DWS_SIM" run --kubeconfig "$PWD/kubeconfig" --nodes node0 --nodes-per-rabbit 1 \
        --root / --log "$PWD/sim.log" &
    echo $! >sim.pid
    site_wait test -s kubeconfig
}

# site_configure: as doc/admin/install.rst says, for Fluxion.
site_configure () {
    mkdir -p "$SITE_CONF/conf.d" &&
    install -o flux -m 600 kubeconfig "$SITE_CONF/kubeconfig" &&
    flux rabbitmapping --kubeconfig "$SITE_CONF/kubeconfig" >"$SITE_CONF/rabbitmapping.json" &&
    flux R encode --local >R.local &&
    flux dws2jgf "$SITE_CONF/rabbitmapping.json" <R.local >"$SITE_CONF/R.json" &&
    sed -e "s,/etc/flux/system,$SITE_CONF," -e "s,^#kubeconfig,kubeconfig," \
        "$SITE_PREFIX/share/doc/flux-dws/examples/rabbit.toml" >"$SITE_CONF/conf.d/rabbit.toml" &&
    cat >"$SITE_CONF/conf.d/system.toml" <<-EOF
	[access]
	allow-guest-user = true
	allow-root-owner = true
	[resource]
	path = "$SITE_CONF/R.json"
	[sched-fluxion-resource]
	match-format = "rv1"
	EOF
}

# site_forget: what site_configure has written.
site_forget () {
    (cd "$SITE_CONF" && rm -r conf.d kubeconfig rabbitmapping.json R.json)
}

# site_start_flux: the instance, by its unit.
site_start_flux () {
    quietly site_packages python3-seccomp systemd &&
    mkdir -p /run/flux && chown flux: /run/flux &&
    site_run flux "$FLUX_PREFIX/lib/systemd/system/flux.service" STATE_DIRECTORY=/var/lib/flux \
        ${SITE_ENVIRONMENT:+$(cat "$SITE_ENVIRONMENT")} &&
    site_wait env FLUX_URI=local:///run/flux/local flux uptime &&
    export FLUX_URI=local:///run/flux/local
}

# site_start: the instance and the agent, by their units.
site_start () {
    site_start_flux &&
    site_start_agent
}
site_start_agent () {
    site_run agent "$SITE_PREFIX/lib/systemd/system/flux-coral2-dws.service" &&
    site_wait site_ready
}
site_ready () {
    test "$(site_as flux flux rabbit status --json | jq ".synced and .agent.synced")" = true
}

site_stop () {
    kill "$(cat agent.pid)" && { wait "$(cat agent.pid)" || :; } &&
    site_stop_flux
}
site_stop_flux () {
    site_as flux flux shutdown --skip-gc >shutdown.out 2>&1
    wait "$(cat flux.pid)"
    test $? = 42 # broker.exit-norestart of the unit
}

# site_jobs_begin: submit three jobs with storage, each on the whole node. The first runs
# until site_jobs_end, the others wait for it; site_jobs_list checks that.
site_jobs_begin () {
    touch /var/tmp/hold &&
    for site_job in running queued waiting; do
        site_as flux flux submit -N1 --exclusive --job-name "$site_job" \
            -S dw="#DW jobdw type=xfs capacity=10GiB name=data" \
            bash -c "echo $site_job >\$DW_JOB_data/file &&
                until ! test -e /var/tmp/hold; do sleep 0.1; done &&
                cat \$DW_JOB_data/file" >"$site_job.job" || return 1
    done &&
    site_as flux flux job wait-event -t "$SITE_LIMIT" "$(cat running.job)" start &&
    site_wait site_jobs_wait
}
site_jobs_list () {
    site_as flux flux jobs -no "{name}:{state}" | sort
}
site_jobs_wait () {
    test "$(echo $(site_jobs_list))" = "queued:SCHED running:RUN waiting:SCHED"
}

# site_jobs_end: they end well, and nothing is left of their storage.
site_jobs_end () {
    rm /var/tmp/hold &&
    for site_job in running queued waiting; do
        test "$(site_as flux timeout "$SITE_LIMIT" flux job attach "$(cat "$site_job.job")")" = \
            "$site_job" || return 1
    done &&
    "$DWS_SIM" ctl --kubeconfig kubeconfig wait-idle --timeout "$SITE_LIMIT" &&
    site_as flux flux resource drain -no "{nodelist}" >drained &&
    test_must_be_empty drained
}

# site_changed: the files below the prefix of flux-core that are new, or other than
# the site had them; but for what site_flux_core_package has put there.
site_changed () {
    (cd /run/changed && find ".$FLUX_PREFIX" ! -type d ! -name "*.pyc" ! -name flux-core.pc) | sed "s/^\.//" | sort
}

# site_places <PATHS: without the symbolic links on the way to each, and the folders.
site_places () {
    while read -r site_path; do
        test -d "$site_path" || echo "$(realpath "$(dirname "$site_path")")/$(basename "$site_path")"
    done | sort
}

# site_keep: from now on the prefix of flux-core cannot be written to, but for what a site
# configures.
site_keep () {
    mount --bind "$FLUX_PREFIX" "$FLUX_PREFIX" &&
    mount -o remount,bind,ro "$FLUX_PREFIX" &&
    mount -t tmpfs -o mode=755 tmpfs "$SITE_CONF" &&
    mkdir "$SITE_CONF/cron.d"
}

# site_environment: that of the instance, as doc/admin/install.rst says.
site_environment () {
    SITE_ENVIRONMENT=$SITE_CONF/environment
    env | grep -E "^FLUX_(.*PATH|RC_EXTRA)" >"$SITE_ENVIRONMENT"
}

# site_gone: nothing of a package is left, in this root and by name below Flux' prefix.
site_gone () {
    find "$FLUX_PREFIX" | sort >after &&
    site_changed >left &&
    test_must_be_empty left &&
    test_must_fail grep -E "flux_(k8s|rabbit|atom|sched_rabbit)|flux-dws" after
}
