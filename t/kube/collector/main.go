// Kubernetes' garbage collector by itself: a cluster without a
// controller-manager still deletes what is owned by what has been deleted.
// SPDX-License-Identifier: LGPL-3.0-only

// Command collector collects garbage until it gets SIGTERM.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/controller-manager/pkg/informerfactory"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
)

const (
	workers = 4
	// how often to look for kinds that are new, and how long to wait for
	// the first list of every kind
	period = time.Second
	// requests a second: two for each deletion
	rate = 400
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "how to reach the API server")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(),
		syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx, *kubeconfig); err != nil {
		fmt.Fprintln(os.Stderr, "collector:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, path string) error {
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return err
	}
	config.QPS, config.Burst = rate, rate
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	objects, err := metadata.NewForConfig(config)
	if err != nil {
		return err
	}
	gc, started, err := build(ctx, config, client, objects)
	if err != nil {
		return err
	}
	go gc.Run(ctx, workers, period)
	go gc.Sync(ctx, client.Discovery(), period)
	close(started)
	<-ctx.Done()
	return nil
}

func build(ctx context.Context, config *rest.Config, client kubernetes.Interface,
	objects metadata.Interface) (*garbagecollector.GarbageCollector,
	chan struct{}, error) {
	found, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, nil, err
	}
	started := make(chan struct{})
	gc, err := garbagecollector.NewGarbageCollector(ctx, client, objects,
		restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(found)),
		garbagecollector.DefaultIgnoredResources(),
		informerfactory.NewInformerFactory(
			informers.NewSharedInformerFactory(client, 0),
			metadatainformer.NewSharedInformerFactory(objects, 0)),
		started)
	return gc, started, err
}
