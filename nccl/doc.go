// Package nccl is NCCL's tuning model: what a release of NCCL would decide on a
// cluster. It builds the topology NCCL sees, searches the rings, trees and heads
// NCCL would find, joins them across nodes, computes NCCL's table of latencies
// and bandwidths, and chooses algorithm, protocol and channels per size.
//
// It follows the rules of the releases from 2.18 on, and the estimates of those
// from 2.8 on; data/releases.csv lists them. What releases differ in is
// data/rules.csv, by release and with its source: constants, limits and which rules
// hold; code asks the struct rules and compares no versions. Figures are NCCL's own constants, not measurements: what
// NCCL believes and what happens are two things.
//
// NCCL's nodes are not hosts: an NVLink domain of several hosts is one node, and a
// host whose GPUs reach each other slower than their NICs, or not at all, is
// several. Any topology ends in rings that visit every rank once and trees that
// span them, or in an error that says what is in the way; a search ends after a
// counted amount of work.
//
// Comments cite NCCL's source by release and file: "NCCL 2.28 src/graph/tuning.cc" is
// that file at tag v2.28.9-1 of github.com/NVIDIA/nccl. Where releases differ, the
// files of the same name in the tags from v2.18.1-1 to the last of data/releases.csv
// were compared.
//
// Nothing is remembered: the same code that reproduces a log of one cluster
// decides for every other. The fusion of NICs on different cards is outside its
// scope.
//
// On AMD's GPUs the library is RCCL, which knows the rings of some kinds of nodes
// and has tables of its own; its rules are those of RCCL 2.21 and, for releases
// from 2.26 on, of 2.28 (github.com/ROCm/rccl and ROCm/rocm-systems). Plan.RCCL
// says so.
package nccl
