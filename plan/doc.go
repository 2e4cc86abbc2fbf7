// Package plan finds the best way to run a model on a cluster: degrees of parallelism, what
// replicas divide, micro-batches, the pipeline's schedule, recomputation and the order of
// ranks.
//
// Every setting of a space is bounded from below (package step: what computing alone takes,
// and the memory). Those that fit are priced, the most promising first, until no bound is below the worst
// plan that is kept: what is left out then cannot be better, so the answer is exact within the
// space and the model.
package plan
