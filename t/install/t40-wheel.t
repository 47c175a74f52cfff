#!/bin/bash
# As a wheel, which has the embedded engine and is for trying: built from the sdist,
# installed with what it says it needs.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='the wheel'
. "$(dirname "$0")/site.sh"

test_expect_success 'sdist and wheel are built as pip does' '
	quietly site_packages $SITE_BUILD_PACKAGES python3-venv &&
	python3 -m venv builder &&
	quietly builder/bin/pip install build twine &&
	git clone -q --shared "$DWS_SRCDIR" clone &&
	quietly builder/bin/python3 -m build --outdir dist clone
'
test_expect_success 'an index takes them' '
	builder/bin/twine check --strict dist/*
'
test_expect_success 'they have the version of the project' '
	version=$("$DWS_SRCDIR/packaging/version") &&
	test -e dist/flux_dws-$version.tar.gz &&
	test -e dist/flux_dws-$version-*.whl
'
test_expect_success 'it is installed with what it needs' '
	python3 -m venv user &&
	quietly user/bin/pip install "$(echo dist/*.whl)[sim]" &&
	user/bin/pip check
'
test_expect_success 'its commands run, and a job does' '
	PATH=$PWD/user/bin:$PATH &&
	flux-coral2-dws --help >help.agent &&
	dws-sim --help >help.sim &&
	flux start flux run echo it runs >out &&
	echo it runs >expected &&
	test_cmp expected out
'
test_done
