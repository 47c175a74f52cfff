// kubectl of the Kubernetes project, built from its module.
// SPDX-License-Identifier: LGPL-3.0-only

// Command kubectl is kubectl, for the kube tier of the tests.
package main

import (
	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

func main() {
	util.CheckErr(cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()))
}
