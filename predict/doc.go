// Package predict answers how long a collective takes on a cluster: which
// algorithm and protocol NCCL would take, how long that and the others last, what
// limits them, and what would be better.
//
// What NCCL believes comes from package nccl, what will happen from package sim;
// both are kept, for their difference is advice.
package predict
