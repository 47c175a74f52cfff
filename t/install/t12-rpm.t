#!/bin/bash
# As an RPM, beside flux-coral2: built by one command, installed into a database of its
# own, started, removed. rpm is Debian's here, so what is needed beside it is not looked
# for among RPMs.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='the RPM'
. "$(dirname "$0")/site.sh"

ASIDE=$FLUX_PREFIX/libexec/flux-dws/flux-coral2
# Files of flux-coral2 for rabbits that flux-dws has, too; and files of flux-coral2 alone.
SHARED="etc/flux/rc1.d/01-rabbit-rc lib/flux/job-manager/plugins/dws-jobtap.so
lib/flux/python3.11/flux_k8s/__init__.py lib/flux/python3.11/flux_k8s/workflow.py
lib/systemd/system/flux-coral2-dws.service share/man/man1/flux-getrabbit.1.gz"
THEIRS="bin/coral2_dws.py etc/flux/cli/plugins/chassis.py"
# Files of flux-coral2 that are not for rabbits
OTHERS="etc/flux/rc1.d/01-coral2-rc lib/flux/shell/plugins/cray_pals.so"

# rpm_ARGS: as an admin, in the database of this root
site_rpm () {
	rpm --nodeps "$@"
}
# coral2_package VERSION: an RPM with files of those names
coral2_package () {
	cat >flux-coral2.spec <<-EOF &&
	Name: flux-coral2
	Version: $1
	Release: 1
	Summary: flux-coral2 for the flux-core of the site
	License: LGPL-3.0-only
	BuildArch: noarch
	%global __os_install_post %{nil}
	%description
	%{summary}
	%install
	for file in $(echo $SHARED $THEIRS $OTHERS); do
		mkdir -p \$(dirname %{buildroot}$FLUX_PREFIX/\$file)
		echo "flux-coral2 $1 \$file" >%{buildroot}$FLUX_PREFIX/\$file
	done
	%files
	$(printf "$FLUX_PREFIX/%s\n" $SHARED $THEIRS $OTHERS)
	EOF
	rpmbuild -bb --define "_topdir /var/tmp/coral2" flux-coral2.spec &&
	cp /var/tmp/coral2/RPMS/noarch/flux-coral2-$1-1.noarch.rpm .
}
# coral2_has VERSION FILE...: those files are that version's
coral2_has () {
	coral2_version=$1
	shift
	for file in "$@"; do
		echo "flux-coral2 $coral2_version $file" | cmp - "$FLUX_PREFIX/$file" || return 1
	done
}
# ours_in_place: ours are used, those of flux-coral2 are away
ours_in_place () {
	for file in $SHARED; do
		test "$(readlink "$FLUX_PREFIX/$file")" = \
			"$FLUX_PREFIX/libexec/flux-dws/instead$FLUX_PREFIX/$file" &&
		test -s "$FLUX_PREFIX/$file" || return 1
	done
	for file in $THEIRS; do
		test_must_fail test -e "$FLUX_PREFIX/$file" || return 1
	done
}

test_expect_success 'it is built by one command' '
	site_users &&
	quietly site_packages rpm $SITE_BUILD_PACKAGES python3-cffi &&
	quietly "$DWS_SRCDIR/packaging/rpm/build" . --nodeps &&
	ls flux-dws-*.src.rpm &&
	RPM=$(ls flux-dws-*.rpm | grep -v src) &&
	rpm -qp --list "$RPM" >contents
'
test_expect_success 'nothing of the simulator, the stand-ins or the engine is in it' '
	test_must_fail grep -E "sim|solo|standin" contents
'
test_expect_success 'it has the version of the project, and a changelog' '
	version=$("$DWS_SRCDIR/packaging/version") &&
	test "$(rpm -qp --queryformat "%{VERSION}" "$RPM")" = "$version" &&
	rpm -qp --changelog "$RPM" >changelog &&
	grep -F -e "- $version-1" changelog
'
test_expect_success 'it needs a package flux-core where there is one, and takes flux-coral2 from nobody' '
	"$DWS_SRCDIR/packaging/rpm/spec" >flux-dws.spec &&
	rpmspec -q --requires -D "flux_core_bare 0" flux-dws.spec >requires &&
	grep "flux-core >= 0.80" requires &&
	rpm -qp --requires "$RPM" >requires &&
	test_must_fail grep flux-core requires &&
	grep "python3.11dist(cffi)" requires && grep -x jq requires &&
	rpm -qp --conflicts --obsoletes "$RPM" >against &&
	test_must_be_empty against
'
test_expect_success 'its source package has the spec, which can be parsed' '
	rpm -qp --list flux-dws-*.src.rpm >source &&
	grep -x flux-dws.spec source &&
	grep -x "flux-dws-.*.tar.gz" source
'
test_expect_success 'it is installed beside flux-coral2' '
	rpm --initdb &&
	quietly coral2_package 0.36 &&
	quietly coral2_package 0.37 &&
	site_rpm -i flux-coral2-0.36-1.noarch.rpm &&
	site_rpm -i "$RPM" &&
	ours_in_place &&
	coral2_has 0.36 $OTHERS
'
test_expect_success 'each of its files is as it was built' '
	rpm --verify --nodeps flux-dws >changed &&
	test_must_be_empty changed
'
test_expect_success 'flux-coral2 is upgraded, and ours stays in place' '
	site_rpm -U flux-coral2-0.37-1.noarch.rpm &&
	ours_in_place &&
	coral2_has 0.37 $OTHERS
'
test_expect_success 'so it does when ours is installed anew' '
	site_rpm -U --replacepkgs "$RPM" &&
	ours_in_place
'
test_expect_success 'removed, it gives all back' '
	site_rpm -e flux-dws &&
	coral2_has 0.37 $SHARED $THEIRS $OTHERS &&
	rpm --verify --nodeps flux-coral2 &&
	test_must_fail test -e "$FLUX_PREFIX/libexec/flux-dws"
'
test_expect_success 'flux-coral2 that goes first takes nothing of ours with it' '
	site_rpm -i "$RPM" &&
	ours_in_place &&
	site_rpm -e flux-coral2 &&
	ours_in_place &&
	test_must_fail test -e "$ASIDE"
'
test_expect_success 'one that comes later is put aside' '
	site_rpm -i flux-coral2-0.36-1.noarch.rpm &&
	ours_in_place &&
	site_rpm -e flux-coral2 &&
	ours_in_place
'
test_expect_success 'the unit can be enabled and disabled where it is a link' '
	mkdir -p units/etc/systemd/system units/usr/lib/systemd/system units$FLUX_PREFIX &&
	cp -a "$FLUX_PREFIX/libexec" units$FLUX_PREFIX &&
	cp -a "$FLUX_PREFIX/lib/systemd/system/"* units/usr/lib/systemd/system &&
	systemctl --root="$PWD/units" enable flux-coral2-dws.service &&
	test -L units/etc/systemd/system/flux.service.wants/flux-coral2-dws.service &&
	systemctl --root="$PWD/units" disable flux-coral2-dws.service &&
	test_must_fail test -L units/etc/systemd/system/flux.service.wants/flux-coral2-dws.service &&
	test -L units/usr/lib/systemd/system/flux-coral2-dws.service
'
test_expect_success 'an instance and the agent start from their units' '
	quietly site_packages $SITE_PACKAGES &&
	site_cluster &&
	site_configure &&
	site_start
'
test_expect_success 'flux rabbit selftest is all green' '
	site_as flux flux rabbit selftest
'
test_expect_success 'one of the next version is built' '
	site_next_version next &&
	mkdir newer &&
	quietly next/packaging/rpm/build newer --nodeps &&
	NEWER=$(ls newer/flux-dws-*.rpm | grep -v src)
'
test_expect_success 'a job runs and two wait' '
	site_jobs_begin
'
test_expect_success 'the package is upgraded: jobs and agent are where they were' '
	site_rpm -U "$NEWER" &&
	test "$(rpm -q --queryformat "%{VERSION}" flux-dws)" = "$NEXT_VERSION" &&
	rpm --verify --nodeps flux-dws &&
	kill -0 "$(cat agent.pid)" &&
	site_jobs_wait &&
	site_as flux flux rabbit selftest --types none >selftest &&
	grep "releases.*this command: $NEXT_VERSION.*module: $VERSION" selftest
'
test_expect_success 'the parts are loaded anew, as the page says' '
	site_as flux flux module reload dws &&
	site_as flux flux jobtap load --remove=dws-jobtap.so dws-jobtap.so &&
	kill "$(cat agent.pid)" && { wait "$(cat agent.pid)" || :; } &&
	site_start_agent &&
	site_as flux flux rabbit selftest --types none >selftest &&
	grep "all parts are of $NEXT_VERSION" selftest
'
test_expect_success 'all three jobs run to their end, and nothing of them is left' '
	site_jobs_end
'
test_expect_success 'removed, it disables its unit' '
	systemctl enable "$FLUX_PREFIX/lib/systemd/system/flux-coral2-dws.service" &&
	find /etc/systemd -name "flux-coral2-dws*" >enabled &&
	test -s enabled &&
	site_stop &&
	site_forget &&
	site_rpm -e flux-dws &&
	find /etc/systemd -name "flux-coral2-dws*" >enabled &&
	test_must_be_empty enabled
'
test_expect_success 'nothing is left' '
	site_gone
'
test_done
