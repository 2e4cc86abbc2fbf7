// Package schema holds the manifests that busbar writes against the types of Kubernetes and JobSet themselves. It
// is a module of its own, so that their dependencies do not become busbar's: cd launch/schema && go test.
package schema
