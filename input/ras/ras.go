// Package ras reads and asks NCCL's RAS service: which communicators a job has, how many collectives each rank has
// launched on them, and which processes do not answer. It reads the text of releases 2.24 to 2.30, plain and verbose,
// and the JSON of 2.28.7 and later, and asks a running job over TCP.
//
// Releases up to 2.28.9 write a missing rank without a comma in JSON, which is read with or without it.
package ras

import (
	"fmt"

	"busbar.dev/internal/lines"
)

// Report is one answer of the service.
type Report struct {
	Name      string // of the file, or the address that was asked
	Time      string // of the machine that answered, as it wrote it; only JSON has it
	JSON      bool
	Processes int // of the job, where the text says so
	Comms     []Comm
	Missing   []Process // of the job, from the text's list of errors: without data, or not to be reached
}

// Process is one process of the job.
type Process struct {
	Host string // an address as a rule
	PID  int
}

// Comm is a communicator.
type Comm struct {
	Hash    uint64
	Size    int    // 0 where a text does not say
	Ranks   []Rank // that answered: all of them in JSON, those that a text lists
	Missing []Rank // that did not
	Lags    []Lag  // of a text: how far ranks are that differ
}

// Rank is a rank of a communicator; its number is the communicator's own.
type Rank struct {
	Process
	Rank, GPU int
	Counts    [5]uint64 // launched collectives, by Ops; only JSON has them
	PeerGone  bool      // its asynchronous error is that a remote process exited
}

// Lag is how many operations some ranks of a communicator have launched.
type Lag struct {
	Op    string // "" is all collectives together, as 2.24 and 2.25 count
	Count uint64
	N     int
	Ranks []Rank // those that are listed
}

// Ops are the collectives that RAS counts, in the order of Counts.
var Ops = [5]string{"Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce"}

// Limits of what is kept of one report.
const (
	maxComms = 1 << 17
	maxRanks = 1 << 21
	maxBytes = 1 << 30
)

// Match reports an answer of the service.
func Match(data []byte) bool {
	if len(data) > 0 && data[0] >= 0x80 {
		return false // a pickle, of which a job has thousands
	}
	return matchJSON(data) || matchText(data)
}

func matchJSON(data []byte) bool {
	head := data[:min(len(data), 4096)]
	return lines.Has(head, `"nccl_version"`, `"communicators_count"`)
}

func matchText(data []byte) bool {
	head := data[:min(len(data), 1<<16)]
	return lines.Has(head, "NCCL version ", "Job summary") || lines.Has(head, "Communicators...", "=====")
}

// Read reads one answer.
func Read(name string, data []byte) (*Report, error) {
	var r *Report
	var err error
	switch {
	case len(data) > maxBytes:
		err = fmt.Errorf("%d bytes; at most %d are read", len(data), maxBytes)
	case matchJSON(data):
		r, err = readJSON(data)
	case matchText(data):
		r, err = readText(data)
	default:
		err = fmt.Errorf("not an answer of NCCL's RAS service; expected its text or its JSON")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	r.Name = name
	return r, nil
}
