#!/bin/bash
# Beside flux-coral2: its rabbit part is put aside, what it has for Slingshot, PALS and
# PMI stays, and all of it is back when flux-dws is removed.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='beside flux-coral2'
. "$(dirname "$0")/site.sh"

if ! CORAL2=$(find_flux_coral2); then
	skip_all='no flux-coral2 (DWS_CORAL2)'
	test_done
fi

# coral2_package: flux-coral2 as a package for this flux-core.
coral2_package () {
	mkdir -p "coral2$FLUX_PREFIX" coral2/DEBIAN &&
	cp -a "$CORAL2/." "coral2$FLUX_PREFIX" &&
	rm "coral2$FLUX_PREFIX/LICENSE" &&
	cat >coral2/DEBIAN/control <<-EOF &&
	Package: flux-coral2
	Version: 0.36.0
	Architecture: amd64
	Maintainer: the site <root@node0>
	Description: flux-coral2 for the flux-core in $FLUX_PREFIX
	EOF
	dpkg-deb --build coral2 &&
	dpkg -i coral2.deb
}
# contents: what each file of flux-coral2 is, wherever it is. Bytecode is a cache: Python
# writes it anew from whichever source lies beside it.
contents () {
	dpkg -L flux-coral2 | grep -v "\.pyc$" | while read -r file; do
		test -d "$file" && ! test -L "$file" && continue
		if test -L "$file"; then
			echo "$file -> $(readlink "$file")"
		else
			sha256sum "$file"
		fi
	done
}

# Its plugins do not say where the libraries of flux-core are; the loader knows.
test_expect_success 'a site has flux-coral2' '
	site_users &&
	echo "$FLUX_PREFIX/lib" >/etc/ld.so.conf.d/flux.conf &&
	ldconfig &&
	quietly site_packages dpkg-dev debhelper $SITE_BUILD_PACKAGES python3-cffi &&
	quietly site_flux_core_package &&
	quietly coral2_package &&
	contents >before &&
	grep flux_k8s/workflow.py before &&
	flux run --help >help &&
	grep coral2-chassis help
'
test_expect_success 'flux-dws is built and installed beside it' '
	quietly "$DWS_SRCDIR/packaging/deb" . &&
	quietly site_packages ./flux-dws_*.deb
'
test_expect_success 'each of its own files is in its place, and none of the other is' '
	dpkg --verify flux-dws >changed &&
	test_must_be_empty changed &&
	test_must_fail test -e "$FLUX_PREFIX/bin/coral2_dws.py" &&
	test_must_fail test -e "$FLUX_PREFIX/etc/flux/cli/plugins/chassis.py" &&
	flux python -c "import flux_k8s.kube; from flux_k8s.workflow import job_pages"
'
test_expect_success 'what is not for rabbits is untouched' '
	dpkg -L flux-coral2 | grep -E "cray|slingshot|pals|coral2.py|coral2-rc" >others &&
	test $(wc -l <others) -ge 12 &&
	while read -r file; do
		grep -F "$file" before | sha256sum -c - || return 1
	done <others
'
test_expect_success 'the options of flux run are there once' '
	flux run --help >help &&
	grep coral2-rabbit-cores help &&
	test $(grep -c -e "--coral2-chassis=" help) = 1
'
test_expect_success 'instance and agent start, with the PMI plugin of flux-coral2' '
	site_cluster &&
	site_configure &&
	site_start &&
	flux jobtap list >plugins &&
	grep dws-jobtap.so plugins &&
	grep cray-pmi-bootstrap.so plugins
'
test_expect_success 'flux rabbit selftest is all green' '
	site_as flux flux rabbit selftest
'
test_expect_success 'selftest names what is put back beside it' '
	cp "$CORAL2/etc/flux/cli/plugins/chassis.py" "$FLUX_PREFIX/etc/flux/cli/plugins" &&
	test_expect_code 3 site_as flux flux rabbit selftest --types none >out &&
	grep "leftovers.*etc/flux/cli/plugins/chassis.py" out &&
	rm "$FLUX_PREFIX/etc/flux/cli/plugins/chassis.py"
'
test_expect_success 'flux-dws is removed, and flux-coral2 is as it was' '
	site_stop &&
	site_forget &&
	quietly apt-get purge -y flux-dws &&
	contents >after &&
	test_cmp before after &&
	dpkg-divert --list >diversions &&
	test_must_fail grep flux-dws diversions &&
	find /usr/share -path "*flux-dws*" >rest &&
	test_must_be_empty rest
'
test_done
