#!/bin/bash
# As a Debian package: built by one command, installed with what it depends on,
# started, removed.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='the Debian package'
. "$(dirname "$0")/site.sh"

test_expect_success 'it is built by one command' '
	site_users &&
	quietly site_packages dpkg-dev debhelper $SITE_BUILD_PACKAGES python3-cffi &&
	quietly site_flux_core_package &&
	quietly "$DWS_SRCDIR/packaging/deb" . &&
	dpkg-deb -c flux-dws_*.deb >contents
'
test_expect_success 'nothing of the simulator, the stand-ins or the engine is in it' '
	test_must_fail grep -E "sim|solo|standin" contents
'
test_expect_success 'it needs the package of the flux-core that it was built for' '
	dpkg-deb --field flux-dws_*.deb Depends >depends &&
	grep "flux-core (>= 0.80)" depends
'
test_expect_success 'it is installed with the Python packages that it needs' '
	quietly site_packages ./flux-dws_*.deb &&
	dpkg -l python3-kubernetes python3-prometheus-client python3-pycurl
'
test_expect_success 'its files are the only ones that are new' '
	dpkg -L flux-dws | site_places | grep "^$FLUX_PREFIX/" >expected &&
	site_changed >actual &&
	test_cmp expected actual
'
test_expect_success 'its Python is compiled' '
	test -e "$FLUX_PREFIX"/lib/flux/python3*/flux_rabbit/__pycache__/cli.*.pyc
'
test_expect_success 'an instance and the agent start from their units' '
	site_cluster &&
	site_configure &&
	site_start
'
test_expect_success 'flux rabbit selftest is all green' '
	site_as flux flux rabbit selftest
'
test_expect_success 'it is removed as the page says, and Flux starts without it' '
	site_stop &&
	rm "$SITE_CONF/conf.d/rabbit.toml" &&
	quietly apt-get purge -y flux-dws &&
	site_start_flux &&
	site_wait site_as flux flux run true &&
	site_stop_flux
'
test_expect_success 'nothing is left' '
	site_forget &&
	site_gone
'
test_done
