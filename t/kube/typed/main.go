// A client with types of its own, as a program made with controller-runtime is: it
// creates, watches and applies them, and objects of Kubernetes' own kinds.
// SPDX-License-Identifier: LGPL-3.0-only

// Command typed exits with 0 when a server does for it what it should.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var version = schema.GroupVersion{
	Group: "dataworkflowservices.github.io", Version: "v1alpha7"}

// Computes are the nodes of a job.
type Computes struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Data              []Compute `json:"data,omitempty"`
}

// Compute is one of them.
type Compute struct {
	Name string `json:"name"`
}

// ComputesList is a list of Computes.
type ComputesList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Computes `json:"items"`
}

// DeepCopyObject is what a scheme asks of its types.
func (c *Computes) DeepCopyObject() runtime.Object {
	out := &Computes{TypeMeta: c.TypeMeta, Data: append([]Compute(nil), c.Data...)}
	c.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return out
}

// DeepCopyObject is what a scheme asks of its types.
func (l *ComputesList) DeepCopyObject() runtime.Object {
	out := &ComputesList{TypeMeta: l.TypeMeta, ListMeta: l.ListMeta}
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].DeepCopyObject().(*Computes))
	}
	return out
}

func must(what string, err error) {
	if err != nil {
		fmt.Fprintf(os.Stderr, "typed: %s: %v\n", what, err)
		os.Exit(1)
	}
}

func expect(what string, holds bool) {
	if !holds {
		must(what, fmt.Errorf("it is not so"))
	}
}

// own writes objects of Kubernetes' own kinds, which are sent as protobuf.
func own(ctx context.Context, kube client.Client) {
	meta := metav1.ObjectMeta{Name: "typed", Namespace: "default"}
	secret := &corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"a": []byte("b")}}
	must("create a Secret", kube.Create(ctx, secret))
	secret.Data["c"] = []byte("d")
	must("update it", kube.Update(ctx, secret))
	must("get it", kube.Get(ctx, client.ObjectKeyFromObject(secret), secret))
	expect("it has two entries", len(secret.Data) == 2 && string(secret.Data["c"]) == "d")
	must("delete it", kube.Delete(ctx, secret))
	pod := &corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{
		NodeName:      "rabbit0",
		RestartPolicy: corev1.RestartPolicyNever,
		Containers: []corev1.Container{{
			Name: "one", Image: "none", Command: []string{"true"}}},
	}}
	must("create a Pod", kube.Create(ctx, pod))
	expect("it is on its node", pod.Spec.NodeName == "rabbit0")
	expect("it has its command", pod.Spec.Containers[0].Command[0] == "true")
	must("delete it", kube.Delete(ctx, pod, client.GracePeriodSeconds(0)))
}

// next waits for the next event of a watch.
func next(events watch.Interface, kind watch.EventType) *Computes {
	event, more := <-events.ResultChan()
	expect(fmt.Sprintf("%s comes, not %s", kind, event.Type), more && event.Type == kind)
	return event.Object.(*Computes)
}

// theirs creates, watches and applies objects of a custom kind.
func theirs(ctx context.Context, kube client.WithWatch) {
	meta := metav1.ObjectMeta{Name: "typed", Namespace: "default"}
	events, err := kube.Watch(ctx, &ComputesList{}, client.InNamespace("default"),
		client.MatchingFields{"metadata.name": "typed"})
	must("watch Computes", err)
	defer events.Stop()
	obj := &Computes{ObjectMeta: meta, Data: []Compute{{"node0"}}}
	must("create them", kube.Create(ctx, obj))
	expect("they come", next(events, watch.Added).Data[0].Name == "node0")
	before := obj.DeepCopyObject().(*Computes)
	obj.Labels = map[string]string{"a": "1"}
	must("patch them", kube.Patch(ctx, obj, client.MergeFrom(before)))
	expect("they have a label", next(events, watch.Modified).Labels["a"] == "1")
	applied := &Computes{ObjectMeta: meta, Data: []Compute{{"node1"}}}
	applied.SetGroupVersionKind(version.WithKind("Computes"))
	must("apply them", kube.Patch(ctx, applied, client.Apply,
		client.FieldOwner("typed"), client.ForceOwnership))
	found := next(events, watch.Modified)
	expect("both is there", found.Data[0].Name == "node1" && found.Labels["a"] == "1")
	list := &ComputesList{}
	must("list them", kube.List(ctx, list, client.MatchingLabels{"a": "1"}))
	expect("they are one", len(list.Items) == 1)
	must("delete them", kube.Delete(ctx, applied))
	next(events, watch.Deleted)
}

func main() {
	kubeconfig := flag.String("kubeconfig", "", "how to reach the API server")
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: *kubeconfig},
		&clientcmd.ConfigOverrides{CurrentContext: "admin"}).ClientConfig()
	must("read the kubeconfig", err)
	types := scheme.Scheme
	types.AddKnownTypes(version, &Computes{}, &ComputesList{})
	metav1.AddToGroupVersion(types, version)
	kube, err := client.NewWithWatch(config, client.Options{Scheme: types})
	must("make a client", err)
	own(ctx, kube)
	theirs(ctx, kube)
	fmt.Println("typed: all is as it should be")
}
