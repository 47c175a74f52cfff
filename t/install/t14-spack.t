#!/bin/bash
# By a real Spack, from a clone: all that is needed beside it is there already, so that
# only flux-dws is built. Loaded, started, and uninstalled.
# SPDX-License-Identifier: LGPL-3.0-only
#
# Environment: DWS_SPACK: the folder of a Spack; SPACK_PYTHON: a Python that has clingo
# for it.

test_description='Spack'
. "$(dirname "$0")/site.sh"

if ! SPACK=$(find_spack); then
	skip_all="no Spack; DWS_SPACK names the folder of one"
	test_done
fi
# Built files get paths below this folder, which cannot have blanks.
TREE=/opt/site
spack () {
	"$SPACK/bin/spack" -C $TREE/config "$@"
}
# debian_version NAME: of a Debian package, without the parts that are Debian's
debian_version () {
	dpkg-query -W -f "\${Version}" "$1" | sed -e "s/^[0-9]*://" -e "s/[-+~].*//"
}
# external NAME VERSION PREFIX: a line of packages.yaml for what is there already
external () {
	echo "  $1: { buildable: false, externals: [ { spec: \"$1@$2\", prefix: $3 } ] }"
}

test_expect_success 'a site has a flux-core, and what is needed beside it' '
	site_users &&
	quietly site_packages $SITE_BUILD_PACKAGES $SITE_PACKAGES git jq &&
	site_keep
'
test_expect_success 'Spack is told what is there' '
	export SPACK_DISABLE_LOCAL_CONFIG=1 SPACK_USER_CACHE_PATH=$TREE/cache &&
	mkdir -p $TREE/config &&
	cat >$TREE/config/config.yaml <<-EOF &&
	config:
	  install_tree: { root: $TREE/opt }
	  build_stage: $TREE/stage
	  source_cache: $TREE/cache/source
	EOF
	{
		echo packages: &&
		echo "  pkgconfig: { buildable: false }" &&
		external flux-core "$(pkg-config --modversion flux-core)" "$FLUX_PREFIX" &&
		external python "$(debian_version python3.11)" /usr &&
		external meson "$(debian_version meson)" /usr &&
		external ninja "$(debian_version ninja-build)" /usr &&
		external pkgconf "$(pkg-config --version)" /usr &&
		external jansson "$(debian_version libjansson-dev)" /usr &&
		external jq "$(debian_version jq)" /usr &&
		external py-docutils "$(debian_version python3-docutils)" /usr &&
		external py-cffi "$(debian_version python3-cffi)" /usr &&
		external py-kubernetes "$(debian_version python3-kubernetes)" /usr &&
		external py-prometheus-client "$(debian_version python3-prometheus-client)" /usr &&
		external py-pycurl "$(debian_version python3-pycurl)" /usr
	} >$TREE/config/packages.yaml &&
	quietly spack compiler find --scope site
'
# Spack 0.22's own recipe fails for a flux-core that Spack has not built; in Spack 1 this
# override changes nothing.
test_expect_success 'it has a recipe for a flux-core that it has not built' '
	mkdir -p $TREE/site/packages/flux-core &&
	printf "%s\n" "repo:" "  namespace: site" >$TREE/site/repo.yaml &&
	cat >$TREE/site/packages/flux-core/package.py <<-EOF &&
	from spack.package import *
	class FluxCore(Package):
	    """The flux-core of the site"""
	    version("$(pkg-config --modversion flux-core)")
	EOF
	quietly spack repo add --scope site $TREE/site
'
test_expect_success 'it takes the recipe from a clone' '
	"$DWS_SRCDIR/packaging/sources" $TREE/clone &&
	git init -q -b main $TREE/clone &&
	git -C $TREE/clone add --all &&
	git -C $TREE/clone -c user.name=admin -c user.email=root@node0 commit -qm all &&
	quietly spack repo add --scope site $TREE/clone/packaging/spack &&
	spack info flux-dws >info &&
	grep "main *\[git\] file://$TREE/clone on branch main" info
'
test_expect_success 'it finds no fault with the recipe' '
	quietly spack audit packages flux-dws
'
test_expect_success 'it is installed' '
	quietly spack install flux-dws &&
	SITE_PREFIX=$(spack location --install-dir flux-dws) &&
	ls -d $TREE/opt/*/*/*/ | sed "s,.*/\([a-z-]*\)-[^/]*/$,\1," >built &&
	# gcc-runtime is copied from the compiler, not built.
	grep -v gcc-runtime built >actual &&
	echo flux-dws-main >expected &&
	test_cmp expected actual &&
	site_changed >changed &&
	test_must_be_empty changed
'
test_expect_success 'spack load says to Flux what environment.sh says' '
	test_must_fail flux rabbit --help &&
	env -i PATH="$PATH" sh -c ". $SITE_PREFIX/share/flux-dws/environment.sh; env" |
		grep ^FLUX >expected &&
	test -s expected &&
	eval "$(spack load --sh flux-dws)" &&
	while read -r line; do
		env | grep -Fx "$line" || return 1
	done <expected &&
	flux rabbit --help >help &&
	flux-coral2-dws --help >help.agent
'
test_expect_success 'an instance and the agent start from their units' '
	site_environment &&
	site_cluster &&
	site_configure &&
	site_start
'
test_expect_success 'a job has its storage' '
	site_as flux flux run -N1 -n1 -S dw="#DW jobdw type=xfs capacity=1GiB name=aa" \
		sh -c "test -d \$DW_JOB_aa && echo \$DW_JOB_aa" >dir &&
	grep ^/ dir
'
test_expect_success 'flux rabbit selftest is all green' '
	site_as flux flux rabbit selftest
'
test_expect_success 'it is uninstalled, and nothing is left' '
	site_stop &&
	eval "$(spack unload --sh flux-dws)" &&
	env >actual &&
	test_must_fail grep -F "$SITE_PREFIX" actual &&
	quietly spack uninstall -y flux-dws &&
	find $TREE/opt -name "*flux-dws*" ! -path "*/.spack-db/*" >left &&
	test_must_be_empty left &&
	site_changed >changed &&
	test_must_be_empty changed
'
test_done
