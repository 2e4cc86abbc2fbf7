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

// readJSON reads the JSON, rank by rank: what a hostile answer lists is bounded before it is kept.
func readJSON(data []byte) (*Report, error) {
	data = withCommas(data[max(bytes.IndexByte(data, '{'), 0):])
	d := json.NewDecoder(bytes.NewReader(data))
	r := &Report{JSON: true}
	ranks, announced := 0, 0
	err := object(d, func(key string) error {
		switch key {
		case "nccl_version":
			return d.Decode(&r.Version)
		case "timestamp":
			return d.Decode(&r.Time)
		case "communicators_count":
			return d.Decode(&announced)
		case "communicators":
			return array(d, func() error {
				if len(r.Comms) >= maxComms {
					return fmt.Errorf("more than %d communicators", maxComms)
				}
				r.Comms = append(r.Comms, Comm{})
				return r.Comms[len(r.Comms)-1].decode(d, &ranks)
			})
		}
		return skip(d)
	})
	if err != nil {
		return nil, fmt.Errorf("JSON, byte %d: %w; expected the whole answer of NCCL's RAS service; ask again",
			d.InputOffset(), words.JSON(err))
	}
	if len(r.Comms) < announced {
		err = fmt.Errorf("the answer is cut off: it announces %d communicators and lists %d; ask again", announced,
			len(r.Comms))
	}
	return r, err
}

// decode reads a communicator; ranks counts those of all.
func (c *Comm) decode(d *json.Decoder, ranks *int) error {
	add := func(list *[]Rank) error {
		return array(d, func() error {
			var x rankDoc
			if err := d.Decode(&x); err != nil {
				return err
			}
			if *ranks++; *ranks > maxRanks {
				return fmt.Errorf("more than %d ranks", maxRanks)
			}
			*list = append(*list, x.rank())
			return nil
		})
	}
	return object(d, func(key string) error {
		switch key {
		case "hash":
			var text string
			err := d.Decode(&text)
			c.Hash, _ = strconv.ParseUint(strings.TrimPrefix(text, "0x"), 16, 64)
			return err
		case "size":
			err := d.Decode(&c.Size)
			c.Size = min(c.Size, maxRanks)
			return err
		case "ranks":
			return add(&c.Ranks)
		case "missing_ranks":
			return add(&c.Missing)
		}
		return skip(d)
	})
}

// asyncErrors are NCCL's words for its results.
var asyncErrors = map[int]string{
	1: "Unhandled CUDA error", 2: "Unhandled system error", 3: "Internal error", 4: "Invalid argument", 5: "Invalid usage",
	6: "Remote process error", 7: "NCCL operation in progress",
}

// rankDoc is a rank, of those that answered or of those that are missing.
type rankDoc struct {
	Rank, PID int
	Host      string
	GPU       int `json:"cuda_dev"`
	Status    struct {
		Async int `json:"async_error"`
	}
	Counts struct{ Broadcast, Reduce, AllGather, ReduceScatter, AllReduce uint64 } `json:"collective_counts"`
}

func (x *rankDoc) rank() Rank {
	n := &x.Counts
	return Rank{
		Process: Process{x.Host, x.PID}, Rank: x.Rank, GPU: x.GPU, Async: asyncErrors[x.Status.Async],
		Counts: [5]uint64{n.Broadcast, n.Reduce, n.AllGather, n.ReduceScatter, n.AllReduce},
	}
}

// object calls f for every key of the object that comes next; f reads the value.
func object(d *json.Decoder, f func(key string) error) error {
	return inside(d, '{', func() error {
		key, err := d.Token()
		if err != nil {
			return err
		}
		return f(fmt.Sprint(key))
	})
}

// array calls f for every element of the list that comes next; f reads it.
func array(d *json.Decoder, f func() error) error { return inside(d, '[', f) }

func inside(d *json.Decoder, open json.Delim, f func() error) error {
	switch t, err := d.Token(); {
	case err != nil:
		return err
	case t != open:
		return fmt.Errorf("found %v where %v belongs", t, open)
	}
	for d.More() {
		if err := f(); err != nil {
			return err
		}
	}
	_, err := d.Token()
	return err
}

// skip passes over any value.
func skip(d *json.Decoder) error { return d.Decode(new(json.RawMessage)) }
