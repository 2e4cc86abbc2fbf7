// Package inspector reads what NCCL's Inspector plugin writes: one JSON line for every completed collective and
// point-to-point operation, with its size and time. Operations that never complete are not in it: a hang shows as a
// communicator that stops earlier than the rest, ranks that disagree about a size show under one number.
package inspector

import (
	"bytes"
	"encoding/json"
	"strings"

	"busbar.dev/internal/lines"
)

// Record is one completed operation of one rank.
type Record struct {
	Comm   string // the communicator's hash, cut to 14 digits
	Host   string
	Op     string // AllReduce
	Time   int64  // µs since 1970, when the line was written
	Bytes  int64
	Rank   int32 // of the communicator
	Ranks  int32
	PID    int32
	Seq    int32 // counts the operations of this name on this communicator
	ExecUs float32
	P2P    bool
	Line   int32
}

const maxRecords = 1 << 21

type line struct {
	Header struct {
		ID     string `json:"id"`
		Rank   int32  `json:"rank"`
		NRanks int32  `json:"n_ranks"`
	} `json:"header"`
	Meta struct {
		Time int64  `json:"dump_timestamp_us"`
		Host string `json:"hostname"`
		PID  int32  `json:"pid"`
	} `json:"metadata"`
	Coll *struct {
		Op    string  `json:"coll"`
		Seq   int32   `json:"coll_sn"`
		Bytes int64   `json:"coll_msg_size_bytes"`
		Exec  float32 `json:"coll_exec_time_us"`
	} `json:"coll_perf"`
	P2P *struct {
		Op    string  `json:"p2p"`
		Seq   int32   `json:"p2p_sn"`
		Bytes int64   `json:"p2p_msg_size_bytes"`
		Exec  float32 `json:"p2p_exec_time_us"`
	} `json:"p2p_perf"`
}

// Match reports Inspector's lines.
func Match(data []byte) bool {
	head := data[:min(len(data), 1<<14)]
	return lines.Has(head, `"inspector_output_format_version"`, `_perf"`)
}

// Read reads the lines of one file. Lines that are cut off, as a killed process leaves them, are passed over.
func Read(data []byte) []Record {
	var list []Record
	words := map[string]string{}
	keep := func(s string) string {
		if w, ok := words[s]; ok {
			return w
		}
		w := strings.Clone(s[:min(len(s), 256)])
		words[w] = w
		return w
	}
	n := int32(0)
	for text := range bytes.Lines(data) {
		n++
		if len(list) >= maxRecords {
			break
		}
		at := bytes.IndexByte(text, '{')
		if at < 0 || len(text) > 1<<20 {
			continue
		}
		var l line
		if json.Unmarshal(bytes.TrimSpace(text[at:]), &l) != nil {
			continue
		}
		r := Record{
			Comm: keep(l.Header.ID), Host: keep(l.Meta.Host), Time: l.Meta.Time, Rank: l.Header.Rank, Ranks: l.Header.NRanks,
			PID: l.Meta.PID, Line: n,
		}
		switch {
		case l.Coll != nil:
			r.Op, r.Seq, r.Bytes, r.ExecUs = keep(l.Coll.Op), l.Coll.Seq, l.Coll.Bytes, l.Coll.Exec
		case l.P2P != nil:
			r.Op, r.Seq, r.Bytes, r.ExecUs, r.P2P = keep(l.P2P.Op), l.P2P.Seq, l.P2P.Bytes, l.P2P.Exec, true
		default:
			continue
		}
		list = append(list, r)
	}
	return list
}
