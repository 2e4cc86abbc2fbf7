package ras

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/internal/words"
)

// withCommas puts in what releases 2.28.7 to 2.28.9 leave out in a missing rank: the comma before its status.
func withCommas(data []byte) []byte {
	status := []byte(`"status":`)
	parts := bytes.Split(data, status)
	for i, p := range parts[:len(parts)-1] {
		if p = bytes.TrimRight(p, " \t\r\n"); len(p) > 0 && p[len(p)-1] != ',' && p[len(p)-1] != '{' {
			parts[i] = append(slices.Clip(p), ',')
		}
	}
	return bytes.Join(parts, status)
}

// maxObjects bounds what an answer may list: a rank has three of them.
const maxObjects = 1 << 22

// readJSON reads the JSON.
func readJSON(data []byte) (*Report, error) {
	data = withCommas(data[max(bytes.IndexByte(data, '{'), 0):])
	if n := bytes.Count(data, []byte("{")); n > maxObjects {
		return nil, fmt.Errorf("%d objects in JSON; at most %d are read", n, maxObjects)
	}
	var doc reportDoc
	d := json.NewDecoder(bytes.NewReader(data))
	if err := d.Decode(&doc); err != nil {
		return nil, fmt.Errorf("JSON, byte %d: %w; expected the whole answer of NCCL's RAS service; ask again",
			d.InputOffset(), words.JSON(err))
	}
	r := &Report{JSON: true, Time: doc.Time}
	for _, c := range doc.Comms {
		hash, _ := strconv.ParseUint(strings.TrimPrefix(c.Hash, "0x"), 16, 64)
		r.Comms = append(r.Comms, Comm{hash, min(c.Size, maxRanks), ranks(c.Ranks), ranks(c.Missing), nil})
	}
	if len(r.Comms) < doc.Announced {
		return r, fmt.Errorf("the answer is cut off: it announces %d communicators and lists %d; ask again", doc.Announced,
			len(r.Comms))
	}
	return r, nil
}

// reportDoc is what is used of an answer.
type reportDoc struct {
	Time      string `json:"timestamp"`
	Announced int    `json:"communicators_count"`
	Comms     []struct {
		Hash    string    `json:"hash"`
		Size    int       `json:"size"`
		Ranks   []rankDoc `json:"ranks"`
		Missing []rankDoc `json:"missing_ranks"`
	} `json:"communicators"`
}

// remoteError is NCCL's ncclRemoteError.
const remoteError = 6

// rankDoc is a rank, of those that answered or of those that are missing.
type rankDoc struct {
	Rank   int    `json:"rank"`
	PID    int    `json:"pid"`
	Host   string `json:"host"`
	GPU    int    `json:"cuda_dev"`
	Status struct {
		Async int `json:"async_error"`
	}
	Counts map[string]uint64 `json:"collective_counts"`
}

func ranks(docs []rankDoc) (list []Rank) {
	for _, x := range docs {
		r := Rank{
			Process: Process{x.Host, x.PID}, Rank: x.Rank, GPU: x.GPU, PeerGone: x.Status.Async == remoteError,
		}
		for i, op := range Ops {
			r.Counts[i] = x.Counts[op]
		}
		list = append(list, r)
	}
	return list
}
