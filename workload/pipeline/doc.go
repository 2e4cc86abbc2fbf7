// Package pipeline says what every rank of a pipeline-parallel job does in which order, plays
// that order with given times, and counts the micro-batches that a rank holds meanwhile. What a
// pipeline costs follows from the play; there is no formula for its bubble here but in tests.
//
// # Stability
//
// Exported names keep their meaning within a version of the module; schedules may be added.
package pipeline
