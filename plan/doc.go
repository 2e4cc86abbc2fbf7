// Package plan finds the best way to run a model on a cluster: degrees of parallelism, what
// replicas divide, micro-batches, the pipeline's schedule, recomputation and the order of
// ranks.
//
// Settings are bounded from below in groups and one by one (package step: what computing and the
// traffic inside layers take, and the memory). What has the least bound is looked at next, until no bound is
// below the worst plan that is kept: what is left out then cannot be better, so the answer is
// exact within the space and the model. docs/manual/plan.md has the space and the bounds.
//
// # Stability
//
// Exported names keep their meaning within a version of the module. The same query has the same answer and counts on
// every machine. NewSpace may come to have more values to try; plans change with the figures of package step.
package plan
