package fleet

import (
	"encoding/json"
	"errors"
	"fmt"
)

// MaxBytes is the longest message; NATS servers take 1 MiB unless told otherwise.
const MaxBytes = 1 << 20

// Encode writes any message of this package.
func Encode(v any) ([]byte, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	if len(data) > MaxBytes {
		return nil, fmt.Errorf("a message of %d bytes; at most %d are allowed", len(data), MaxBytes)
	}
	return data, nil
}

// Decode reads a message and checks it. Fields that it does not know are left out: the
// other side may be newer.
func Decode[T any](data []byte) (*T, error) {
	if len(data) > MaxBytes {
		return nil, fmt.Errorf("a message of %d bytes; at most %d are allowed", len(data), MaxBytes)
	}
	v := new(T)
	if err := json.Unmarshal(data, v); err != nil {
		return nil, err
	}
	if c, ok := any(v).(interface{ Check() error }); ok {
		if err := c.Check(); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// MaxSeq is the greatest number that an event may have: what comes after the greatest there is would have none.
const MaxSeq = 1 << 53

// Check refuses an event without what its kind says, or with more. Kinds that a newer version may have say nothing, and
// who may say what is for the reader to judge: both count as events of their publisher.
func (n *Event) Check() error {
	if n.Seq == 0 || n.Seq > MaxSeq {
		return fmt.Errorf("number %d; expected 1 to %d", n.Seq, uint64(MaxSeq))
	}
	if n.At.IsZero() {
		return errors.New("an event without a time")
	}
	for _, f := range [...]struct { // no map: a server that starts asks this of everything that was ever kept
		kind Kind
		set  bool
	}{
		{KindJoined, n.Joined != nil},
		{KindLink, n.Link != nil},
		{KindCounters, n.Counters != nil},
		{KindMeasured, n.Measured != nil},
		{KindOrder, n.Order != nil},
		{KindFinding, n.Finding != nil},
		{KindTokens, n.Tokens != nil},
	} {
		if f.set != (f.kind == n.Kind) {
			return fmt.Errorf("event of kind %q: the field of %q must be set if and only if it is of that kind", n.Kind, f.kind)
		}
	}
	if m := n.Measured; m != nil { // a name that was left out was never looked at
		for _, p := range m.Pairs {
			if p.From == "" || p.To == "" {
				return errors.New("a measured pair without the names of its nodes")
			}
		}
	}
	return nil
}
