// Package pickle reads Python pickles that hold data only: numbers, strings, lists, tuples and dictionaries.
//
// A pickle is a program for a stack machine whose instructions can import and call anything. This reader knows the
// instructions that plain data needs and refuses the rest by name, so nothing is ever imported, called or looked up.
// Values refer to the bytes they were read from; what a pickle costs is bounded by its own length, also where the memo
// lets a short text stand for much: shared values are shared, and Items gives no more of them than a
// small multiple of that.
package pickle

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// Kind is what a value is.
type Kind uint8

// The kinds of values.
const (
	None Kind = iota
	Bool
	Int
	Float
	String
	List
	Tuple
	Dict
	mark
)

// Value is one value of a pickle. It is small, and copies of it are the same list or dictionary.
type Value struct {
	n    uint64 // an integer, the bits of a float, the offset of a string, the number of a container
	len  uint32 // of a string
	Kind Kind
}

// Limits of one pickle, beyond which it is refused.
const (
	MaxBytes = 1 << 30
	maxMemo  = 1 << 22
	maxStack = 1 << 24
)

// ErrRefused is wrapped by errors about pickles that hold more than data.
var ErrRefused = errors.New("refused")

// ErrSeveral is wrapped by errors about files that hold more than one dump.
var ErrSeveral = errors.New("more than one dump")

// Reader reads pickles and keeps its memory between them: a value is valid until the next Read.
type Reader struct {
	data    []byte
	at      int
	stack   []Value
	marks   []int
	memo    []Value
	items   []Value   // of containers that were filled at once, end to end
	content [][]Value // of containers, by number
	size    int       // of what was read
	walked  int       // values that Items gave
}

// Match reports whether data may be a pickle of protocol 2 or later: its first two bytes and its last say so.
func Match(data []byte) bool {
	data = bytes.TrimRight(data, "\x00\r\n")
	return len(data) > 3 && data[0] == opProto && data[1] >= 2 && data[1] <= 5 && data[len(data)-1] == opStop
}

// Read reads one pickle.
func (r *Reader) Read(data []byte) (Value, error) {
	if len(data) > MaxBytes {
		return Value{}, fmt.Errorf("pickle of %d bytes: at most %d are read", len(data), MaxBytes)
	}
	r.reset(data, len(data))
	for {
		if r.at >= len(data) {
			return Value{}, fmt.Errorf("pickle ends at byte %d without its last instruction; the file is cut off", r.at)
		}
		op := data[r.at]
		r.at++
		if op == opStop {
			break
		}
		if err := r.step(op); err != nil {
			return Value{}, fmt.Errorf("pickle, byte %d: %w", r.at-1, err)
		}
	}
	if len(r.stack) != 1 || len(r.marks) != 0 || r.stack[0].Kind == mark {
		return Value{}, fmt.Errorf("pickle leaves %d values, expected 1", len(r.stack))
	}
	return r.stack[0], alone(data[r.at:])
}

// alone refuses what follows a value: the file's name tells one rank, and a second dump would be nobody's.
func alone(rest []byte) error {
	if rest = bytes.Trim(rest, "\x00\t\r\n "); len(rest) > 0 {
		return fmt.Errorf("%w: %d bytes follow the first, beginning with %.20q; expected one rank's dump in a file; split it",
			ErrSeveral, len(rest), rest)
	}
	return nil
}

func (r *Reader) reset(data []byte, size int) {
	r.data, r.size, r.at, r.walked = data, size, 0, 0
	r.stack, r.marks, r.memo, r.items, r.content = r.stack[:0], r.marks[:0], r.memo[:0], r.items[:0], r.content[:0]
}

// Bytes are those of a string value.
func (r *Reader) Bytes(v Value) []byte {
	if v.Kind != String {
		return nil
	}
	return r.data[v.n : v.n+uint64(v.len)]
}

// Int is the value of an integer or a truth value; ok is false for others.
func (v Value) Int() (n int64, ok bool) {
	return int64(v.n), v.Kind == Int || v.Kind == Bool
}

// Float is the value of a number.
func (v Value) Float() (x float64, ok bool) {
	switch v.Kind {
	case Float:
		return math.Float64frombits(v.n), true
	case Int:
		return float64(int64(v.n)), true
	}
	return 0, false
}

// Items are the elements of a list or tuple, or keys and values of a dictionary in turn.
func (r *Reader) Items(v Value) []Value {
	switch v.Kind {
	case List, Tuple, Dict:
		if r.walked += len(r.content[v.n]); r.Walked() == nil {
			return r.content[v.n]
		}
	}
	return nil
}

// Walked is an error where Items has given many more values than the pickle is long, and gives no more: a list of lists
// that are all the same one stands for very much.
func (r *Reader) Walked() error {
	if r.walked > 8*r.size+1<<20 {
		return fmt.Errorf("pickle of %d bytes: its values stand for more than %d others", r.size, r.walked)
	}
	return nil
}

// SameText reports two string values that are the same bytes of the pickle, without comparing them.
func SameText(a, b Value) bool { return a.Kind == String && a == b }

// push puts a value on the stack.
func (r *Reader) push(v Value) error {
	if len(r.stack) >= maxStack {
		return fmt.Errorf("more than %d values at once", maxStack)
	}
	r.stack = append(r.stack, v)
	return nil
}

// takeBytes reads n bytes of an instruction's argument.
func (r *Reader) takeBytes(n int) ([]byte, error) {
	if n < 0 || n > len(r.data)-r.at {
		return nil, fmt.Errorf("an argument of %d bytes where %d are left", n, len(r.data)-r.at)
	}
	b := r.data[r.at : r.at+n]
	r.at += n
	return b, nil
}

// container makes an empty list, tuple or dictionary.
func (r *Reader) container(k Kind, items []Value) error {
	n := uint64(len(r.content))
	r.content = append(r.content, items)
	return r.push(Value{n: n, Kind: k})
}

// fillContainer puts values into a container that has n, keeping those of one filling end to end.
func (r *Reader) fillContainer(v Value, items []Value) {
	old := r.content[v.n]
	if len(old) > 0 {
		r.content[v.n] = append(old, items...) // the first filling has no room behind it, so this copies once and then grows
		return
	}
	if cap(r.items)-len(r.items) < len(items) {
		r.items = make([]Value, 0, max(1<<12, 2*len(items), min(2*cap(r.items), 1<<20)))
	}
	from := len(r.items)
	r.items = append(r.items, items...)
	r.content[v.n] = r.items[from:len(r.items):len(r.items)]
}

// sinceMark takes what was pushed since the last mark; the slice is valid until the next push.
func (r *Reader) sinceMark() ([]Value, error) {
	if len(r.marks) == 0 {
		return nil, errors.New("no mark on the stack")
	}
	from := r.marks[len(r.marks)-1]
	r.marks = r.marks[:len(r.marks)-1]
	items := r.stack[from+1:]
	r.stack = r.stack[:from]
	return items, nil
}

// top is the value on the top, above the last mark.
func (r *Reader) top() (Value, error) {
	n := len(r.stack)
	if n == 0 || r.stack[n-1].Kind == mark {
		return Value{}, errors.New("the stack is empty")
	}
	return r.stack[n-1], nil
}

// pop takes n values from the top.
func (r *Reader) pop(n int) ([]Value, error) {
	low := 0
	if len(r.marks) > 0 {
		low = r.marks[len(r.marks)-1] + 1
	}
	if len(r.stack)-low < n {
		return nil, fmt.Errorf("%d values on the stack, expected %d", len(r.stack)-low, n)
	}
	items := r.stack[len(r.stack)-n:]
	r.stack = r.stack[:len(r.stack)-n]
	return items, nil
}

// remember puts the value on the top into the memo.
func (r *Reader) remember(slot uint32) error {
	v, err := r.top()
	switch {
	case err != nil:
		return err
	case slot >= maxMemo || int(slot) > len(r.memo)+1<<16:
		return fmt.Errorf("memo slot %d", slot)
	}
	for int(slot) >= len(r.memo) {
		r.memo = append(r.memo, Value{Kind: mark})
	}
	r.memo[slot] = v
	return nil
}

// recall pushes a value of the memo.
func (r *Reader) recall(slot uint32) error {
	if int64(slot) >= int64(len(r.memo)) || r.memo[slot].Kind == mark {
		return fmt.Errorf("memo slot %d was never filled", slot)
	}
	return r.push(r.memo[slot])
}

// text reads a string whose length stands in n bytes.
func (r *Reader) text(n int) error {
	size, err := r.argument(n)
	if err != nil {
		return err
	}
	if size > uint64(len(r.data)-r.at) {
		return fmt.Errorf("a string of %d bytes where %d are left", size, len(r.data)-r.at)
	}
	v := Value{n: uint64(r.at), len: uint32(size), Kind: String}
	r.at += int(size)
	return r.push(v)
}

// long reads an integer of up to eight bytes, as LONG1 has it.
func (r *Reader) long() error {
	b, err := r.takeBytes(1)
	if err != nil {
		return err
	}
	size := int(b[0])
	if b, err = r.takeBytes(size); err != nil {
		return err
	}
	if size > 8 {
		if size > 9 || b[8] != 0 {
			return fmt.Errorf("an integer of %d bytes; at most 8 are read", size)
		}
		b = b[:8] // an unsigned one with its sign
	}
	var whole [8]byte
	if n := copy(whole[:], b); n > 0 && n < 8 && b[n-1]&0x80 != 0 {
		for i := n; i < 8; i++ {
			whole[i] = 0xff
		}
	}
	return r.push(Value{n: binary.LittleEndian.Uint64(whole[:]), Kind: Int})
}
