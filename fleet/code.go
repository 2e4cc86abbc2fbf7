package fleet

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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

// checked is what Decode asks of a message.
type checked interface{ Check() error }

// Decode reads a message and checks it. Fields that it does not know are left out: the
// other side may be newer.
func Decode[T any](data []byte) (*T, error) {
	if len(data) > MaxBytes {
		return nil, fmt.Errorf("a message of %d bytes; at most %d are allowed", len(data), MaxBytes)
	}
	v := new(T)
	d := json.NewDecoder(bytes.NewReader(data))
	if err := d.Decode(v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("unexpected data after the message")
	}
	if c, ok := any(v).(checked); ok {
		if err := c.Check(); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// MaxSeq is the greatest number that an event may have: what comes after the greatest there is would have none.
const MaxSeq = 1 << 53

// Check refuses events that says nothing, or more than its kind.
func (n *Event) Check() error {
	if n.Seq == 0 || n.Seq > MaxSeq {
		return fmt.Errorf("number %d; expected 1 to %d", n.Seq, uint64(MaxSeq))
	}
	if n.At.IsZero() {
		return errors.New("an event without a time")
	}
	has := [...]struct { // no map: a server that starts asks this of everything that was ever kept
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
		{KindLeft, n.Kind == KindLeft},
	}
	known := false
	for _, f := range has {
		if f.set != (f.kind == n.Kind) {
			return fmt.Errorf("event of kind %q: the field of %q must be set if and only if it is of that kind", n.Kind, f.kind)
		}
		known = known || f.kind == n.Kind
	}
	if n.Measured != nil {
		if err := n.Measured.named(); err != nil {
			return err
		}
	}
	if !known {
		return fmt.Errorf("unknown kind of event %q", n.Kind)
	}
	if n.Kind == KindMeasured && n.Node == "" && n.Measured.Order == LocalOrder {
		return nil
	}
	if fromHub := n.Kind == KindOrder || n.Kind == KindFinding || n.Kind == KindTokens; fromHub != (n.Node == "") {
		return fmt.Errorf("event of kind %q from node %q", n.Kind, n.Node)
	}
	return nil
}

// named refuses measurements of nobody: a name that was left out was never looked at.
func (m *Measured) named() error {
	for _, p := range m.Pairs {
		if p.From == "" || p.To == "" {
			return errors.New("a measured pair without the names of its nodes")
		}
	}
	for _, w := range m.Own {
		if w.Node == "" {
			return errors.New("a node's own time without its name")
		}
	}
	return nil
}

// Check refuses a beat of nobody.
func (b *Beat) Check() error {
	_, err := ParseName(string(b.Node))
	return err
}
