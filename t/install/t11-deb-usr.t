#!/bin/bash
# The Debian package for a flux-core in /usr, as Debian's own would be, and what lintian
# says of it.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='the Debian package for /usr'
. "$(dirname "$0")/site.sh"

test_expect_success 'it is built' '
	quietly site_packages dpkg-dev debhelper $SITE_BUILD_PACKAGES python3-cffi &&
	libdir=/usr/lib/$(gcc -print-multiarch) &&
	site_usr "$libdir" &&
	site_usr_command "$libdir" &&
	quietly "$DWS_SRCDIR/packaging/deb" .
'
test_expect_success 'it has the version of the project, and a changelog' '
	version=$("$DWS_SRCDIR/packaging/version") &&
	test -e flux-dws_${version}_*.deb &&
	dpkg-deb --field flux-dws_*.deb Depends >depends && grep -w jq depends &&
	test_must_fail grep flux-core depends && # which is in no package
	dpkg-deb -x flux-dws_*.deb unpacked &&
	zcat unpacked/usr/share/doc/flux-dws/changelog.gz | grep "^flux-dws ($version)"
'
test_expect_success 'everything is where Flux and the system look for it' '
	for file in "$libdir/flux/modules/dws.so" "$libdir/flux/python3.11/flux_k8s/agent.py" \
		/usr/bin/flux-coral2-dws /usr/libexec/flux/cmd/flux-rabbit.py \
		/usr/lib/systemd/system/flux-coral2-dws.service /etc/bash_completion.d/flux-rabbit; do
		test -s "unpacked$file" || return 1
	done
'
if quietly site_packages lintian; then
	test_set_prereq LINTIAN
fi
test_expect_success LINTIAN 'lintian finds no error' '
	lintian --allow-root --fail-on error flux-dws_*.deb
'
test_done
