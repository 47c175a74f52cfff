#!/bin/bash
# Where things go for a flux-core in /usr with lib64, as on RHEL and TOSS: looked at
# in a staged installation.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='a flux-core in /usr with lib64'
. "$(dirname "$0")/site.sh"

test_expect_success 'such a flux-core says where its parts are' '
	site_usr /usr/lib64 &&
	test "$(pkg-config --variable=fluxmoddir flux-core)" = /usr/lib64/flux/modules
'
test_expect_success 'it is not there to be asked, and the error says what to give' '
	quietly site_packages $SITE_BUILD_PACKAGES python3-cffi binutils &&
	test_must_fail meson setup none "$DWS_SRCDIR" --prefix=/usr -Dflux=system >out &&
	grep "no /usr/bin/flux to ask; give -Dfluxpython=" out
'
test_expect_success 'it is built and staged' '
	quietly meson setup build "$DWS_SRCDIR" --prefix=/usr --sysconfdir=/etc --libdir=lib64 \
		-Dflux=system -Dtests=false \
		-Dfluxpython=/usr/bin/python3 -Dfluxpydir=/usr/lib64/flux/python3.11 &&
	DESTDIR=$PWD/stage quietly meson install -C build &&
	(cd stage && find . ! -type d | sed "s/^\.//" | sort) >files
'
test_expect_success 'everything is where Flux and the system look for it' '
	cat >places <<-EOF &&
	/etc/bash_completion.d/flux-rabbit
	/etc/flux/cli/plugins/coral2_chassis.py
	/etc/flux/cli/plugins/dws_directives.py
	/etc/flux/modprobe/modprobe.d/dws.toml
	/etc/flux/modprobe/rc1.d/dws.py
	/etc/flux/rc1.d/01-rabbit-rc
	/usr/bin/flux-coral2-dws
	/usr/lib/systemd/system/flux-coral2-dws.service
	/usr/lib/systemd/system/flux.service.d/flux-dws.conf
	/usr/lib64/flux/job-manager/plugins/dws-jobtap.so
	/usr/lib64/flux/modules/dws.so
	/usr/lib64/flux/modules/sched-rabbit.py
	/usr/lib64/flux/shell/plugins/dws_environment.so
	/usr/libexec/flux-dws/atom-begin
	/usr/libexec/flux-dws/atom-end
	/usr/libexec/flux/cmd/flux-dws2jgf.py
	/usr/libexec/flux/cmd/flux-getrabbit.py
	/usr/libexec/flux/cmd/flux-rabbit.py
	/usr/libexec/flux/cmd/flux-rabbitmapping.py
	/usr/libexec/flux/epilog.d/start_nnf_clientmount.sh
	/usr/libexec/flux/prolog.d/zstop_nnf_clientmount.sh
	EOF
	grep -vE "^/usr/(share|lib64/flux/python3.11)/" files >actual &&
	test_cmp places actual
'
test_expect_success 'no binary has a path to libraries, and no file one to this machine' '
	find stage -name "*.so" -exec readelf -d {} + >dynamic &&
	test_must_fail grep -E "RPATH|RUNPATH" dynamic &&
	grep NEEDED.*libflux-hostlist dynamic &&
	test_must_fail grep -rlF -e "$FLUX_PREFIX" -e "$DWS_SRCDIR" -e "$PWD" stage \
		--include="*.py" --include="*.service" --include="*.toml" --include="atom-*" \
		--include="flux-coral2-dws"
'
test_expect_success 'the programs run the Python of that flux-core, with its packages' '
	for program in bin/flux-coral2-dws libexec/flux-dws/atom-begin; do
		head -n 1 stage/usr/$program | grep -Fx "#!/usr/bin/python3" &&
		grep -F /usr/lib64/flux/python3.11 stage/usr/$program || return 1
	done &&
	grep "^ExecStart=/usr/bin/flux-coral2-dws" \
		stage/usr/lib/systemd/system/flux-coral2-dws.service
'
# Now there is one to ask.
test_expect_success 'an RPM is built for it' '
	site_usr_command /usr/lib64 &&
	quietly site_packages rpm cpio &&
	quietly "$DWS_SRCDIR/packaging/rpm/build" . --nodeps &&
	rpm=$(ls flux-dws-*.rpm | grep -v src) &&
	mkdir unpacked &&
	(cd unpacked && rpm2cpio "../$rpm" | cpio -id) 2>cpio.log
'
# Files that flux-coral2 has, too, lie in a folder of their own in the package.
test_expect_success 'its files are where those of the staged installation are' '
	rpm -qp --list "$rpm" | grep -vE "^/usr/(share|lib64/flux/python3.11)/" >list &&
	while read -r file; do
		grep -Fx "$file" list || return 1
	done <places &&
	instead=unpacked/usr/libexec/flux-dws/instead &&
	while read -r file; do
		test -e unpacked$file || test -e $instead$file || return 1
	done <places &&
	test -e $instead/usr/lib64/flux/job-manager/plugins/dws-jobtap.so &&
	test_must_fail test -e unpacked/usr/lib64/flux/job-manager/plugins/dws-jobtap.so
'
test_expect_success 'its configuration files are that, and none else' '
	rpm -qp --configfiles "$rpm" | sort >actual &&
	grep ^/etc/ places | grep -v 01-rabbit-rc >expected &&
	test_cmp expected actual
'
if quietly site_packages rpmlint; then
	test_set_prereq RPMLINT
fi
test_expect_success RPMLINT 'rpmlint finds no error' '
	"$DWS_SRCDIR/packaging/rpm/spec" >flux-dws.spec &&
	quietly rpmlint -c "$DWS_SRCDIR/packaging/rpm/rpmlint.toml" flux-dws-*.rpm flux-dws.spec &&
	tail -n 1 quietly.log | grep " 2 packages and 1 specfiles checked; 0 errors,"
'
test_done
