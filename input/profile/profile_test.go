package profile

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"
	"time"

	"busbar.dev/unit"
)

func sample() *Ring {
	began := time.Unix(1_800_000_000, 0)
	return &Ring{
		PID: 4711, Host: "node3", Job: "42", Rank: 3, LocalRank: 1, World: 8, Created: began,
		Comms: []Comm{
			{Hash: 0xabc, Rank: 3, Ranks: 8, Nodes: 2, Name: "dp"}, {Hash: 0xdef, Rank: 0, Ranks: 2, Nodes: 1, Ended: true},
		},
		Ops: []Op{
			{
				Function: "AllReduce", Sequence: 7, Type: "Bfloat16", Count: 1 << 20, Algo: "ring", Proto: "simple", Channels: 8,
				Launched: began, Ended: true, GPU: true, Took: 90 * time.Microsecond,
			},
			{
				Function: "AllGather", Comm: 1, Sequence: 1, Type: "Int8", Count: 4096, Algo: "nvls", Proto: "ll128", Channels: 2,
				Launched: began, Started: true,
			},
			{Function: "Send", Type: "Float32", Count: 10, Peer: 5, Channels: 1, Launched: began},
		},
	}
}

func TestRead(t *testing.T) {
	data := Encode(sample())
	r, err := Read("x", data, 0)
	if err != nil || !Match(data) {
		t.Fatal(err)
	}
	if r.PID != 4711 || r.Host != "node3" || r.Job != "42" || r.Rank != 3 || r.World != 8 || len(r.Comms) != 2 ||
		r.Comms[0] != sample().Comms[0] || !r.Comms[1].Ended || len(r.Ops) != 3 {
		t.Fatalf("%+v", r)
	}
	a, g, s := r.Ops[0], r.Ops[1], r.Ops[2]
	if a.Bytes != 2*unit.MiB || a.Took != 90*time.Microsecond || !a.Ended || !a.GPU || a.Algo != "ring" ||
		a.Type != "Bfloat16" || a.Sequence != 7 {
		t.Errorf("%+v", a)
	}
	if g.Bytes != 8192 || g.Ended || !g.Started || g.Took != 0 || s.Started || s.Peer != 5 || s.Function != "Send" {
		t.Errorf("%+v\n%+v", g, s)
	}
}

// TestOverwritten leaves out what the process overwrote while the ring was read.
func TestOverwritten(t *testing.T) {
	r, err := Read("x", Encode(sample()), 66) // two more than the ring holds
	if err != nil || len(r.Ops) != 1 || r.Ops[0].Function != "Send" {
		t.Errorf("%v %+v", err, r.Ops)
	}
}

func TestDamaged(t *testing.T) {
	data := Encode(sample())
	if _, err := Read("x", data[:40000], 0); err == nil {
		t.Error("a ring that is cut off is read")
	}
	binary.LittleEndian.PutUint64(data[headSize+maxComms*commSize+16:], 1<<62) // a count
	if r, err := Read("x", data, 0); err != nil || len(r.Ops) != 2 {
		t.Error(err, "a count that no buffer has is kept")
	}
	data[8] = 9
	if _, err := Read("x", data, 0); err == nil {
		t.Error("another version is read")
	}
}

func FuzzRead(f *testing.F) {
	f.Add(Encode(sample()), uint64(0))
	f.Fuzz(func(_ *testing.T, data []byte, next uint64) {
		if r, err := Read("x", data, next); err == nil && len(r.Ops) > maxRecords {
			panic("more records than bounds allow")
		}
	})
}

// TestDamagedParts overwrites parts of a ring: it is named as damaged, not read as one without operations.
func TestDamagedParts(t *testing.T) {
	ring := &Ring{
		PID: 7, Host: "a", World: 4, Created: time.Unix(1_800_000_000, 0), Comms: []Comm{{Hash: 1, Ranks: 4, Nodes: 1}},
	}
	for i := range 64 {
		ring.Ops = append(ring.Ops, Op{
			Function: "AllReduce", Type: "Float32", Sequence: uint64(i), Count: 1024, Launched: ring.Created, Channels: 1,
		})
	}
	whole := Encode(ring)
	if r, err := Read("x", whole, 0); err != nil || len(r.Ops) != 64 {
		t.Fatal(err)
	}
	records := headSize + maxComms*commSize
	for name, at := range map[string]int{
		"sizes": 16, "operations": nextAt, "lost": nextAt + 8, "state of a communicator": headSize + 20,
		"number": records + 3*recordSize, "communicator": records + 64,
	} {
		data := slices.Clone(whole)
		for i := range 8 {
			data[at+i] ^= 0xa7
		}
		if _, err := Read("x", data, 0); err == nil || !strings.Contains(err.Error(), "damaged") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Encode is ringfile.Encode.
var Encode func(*Ring) []byte
