// The kube-apiserver of the Kubernetes project, built from its module.
// SPDX-License-Identifier: LGPL-3.0-only

// Command apiserver is kube-apiserver, for the kube tier of the tests.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

func main() {
	os.Exit(cli.Run(app.NewAPIServerCommand()))
}
