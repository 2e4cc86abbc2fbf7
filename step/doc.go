// Package step predicts how long one training step takes and where the time goes: the tasks of
// package workload priced on a GPU, the collectives of its groups priced by package predict on
// the cluster, both on a timeline as frameworks run them.
//
//	r, err := step.Step(job, gpu, step.NewFabric(cluster, layout, job.Split, nccl.Newest))
//
// Who asks about many settings of one job prepares them on one Fabric (With, On), which remembers what it priced, and
// bounds them first (Bounds): a bound is never above the price.
//
// # Stability
//
// Exported names keep their meaning within a version of the module. Times follow from fitted figures (Default), which
// change from release to release; that the parts of a Result add up to its Step does not change. docs/steps.md has the
// model and how far off it is on published runs; tools/fit keeps a third of their clusters out of every fit.
package step
