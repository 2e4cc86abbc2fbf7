// Package pickle reads Python pickles that hold data only: numbers, strings, lists, tuples and dictionaries.
//
// A pickle is a program for a stack machine whose instructions can import and call anything. This reader knows the
// instructions that plain data needs and refuses the rest by name, so nothing is ever imported, called or looked up.
// What a pickle costs is bounded by its own length, also where the memo lets a short text stand for much: values that
// it shares are shared here too. Who walks through them bounds how far.
package pickle

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"busbar.dev/internal/lazyre"
)

// Limits of one text, beyond which it is refused.
const (
	maxBytes  = 512 << 20
	maxValues = 1 << 24
)

// ErrRefused is wrapped by errors about pickles that hold more than data.
var ErrRefused = errors.New("refused")

// ErrSeveral is wrapped by errors about files that hold more than one dump.
var ErrSeveral = errors.New("more than one dump")

// executing are the instructions that import, call or build; those that are left do what data does not need.
const executing = "cRiobPQ\x81\x82\x83\x84\x92\x93"

// Match reports whether data may be a pickle of protocol 2 or later: its first two bytes and its last say so.
func Match(data []byte) bool {
	data = bytes.TrimRight(data, "\x00\r\n")
	return len(data) > 3 && data[0] == 0x80 && data[1] >= 2 && data[1] <= 5 && data[len(data)-1] == '.'
}

// Read reads one pickle. A value is nil, a bool, an int64, a float64, a string, and behind a pointer a
// []any (a list or a tuple) or a map[string]any, which has what a dictionary holds under texts.
func Read(data []byte) (any, error) {
	if len(data) > maxBytes {
		return nil, fmt.Errorf("pickle of %d bytes: at most %d are read", len(data), maxBytes)
	}
	r := &reader{text: string(data)}
	for r.err == nil && r.at < len(r.text) {
		op, at := r.text[r.at], r.at
		r.at++
		if op == '.' { // STOP
			break
		}
		if r.step(op); r.err != nil {
			return nil, fmt.Errorf("pickle, byte %d: %w", at, r.err)
		}
	}
	switch {
	case r.at == 0 || r.text[r.at-1] != '.': // STOP
		return nil, fmt.Errorf("pickle ends at byte %d without its last instruction; the file is cut off", r.at)
	case len(r.stack) != 1 || len(r.marks) != 0:
		return nil, fmt.Errorf("pickle leaves %d values, expected 1", len(r.stack))
	}
	return r.stack[0], alone(data[r.at:])
}

// tuple is one of two texts, as Python prints it, behind a key: PyTorch's documents show dumps with such.
var tuple = lazyre.New(`": \(("[^"\\]*", "[^"\\]*")\)`)

// ReadJSON reads a JSON text into the same values, but that numbers are json.Number and nothing is behind a pointer.
func ReadJSON(data []byte) (v any, err error) {
	if len(data) > maxBytes {
		return nil, fmt.Errorf("JSON of %d bytes: at most %d are read", len(data), maxBytes)
	}
	if bytes.Contains(data, []byte(`": ("`)) {
		data = tuple.ReplaceAll(data, []byte(`": [$1]`))
	}
	in := json.NewDecoder(bytes.NewReader(data))
	in.UseNumber()
	if err := in.Decode(&v); err != nil {
		return nil, err
	}
	return v, alone(data[in.InputOffset():])
}

// alone refuses what follows a value: the file's name tells one rank, and a second dump would be nobody's.
func alone(rest []byte) error {
	if rest = bytes.Trim(rest, "\x00\t\r\n "); len(rest) > 0 {
		return fmt.Errorf("%w: %d bytes follow the first, beginning with %.20q; expected one rank's dump in a file; split it",
			ErrSeveral, len(rest), rest)
	}
	return nil
}

// reader is the stack machine. After the first error nothing that it does counts.
type reader struct {
	text  string
	at    int
	stack []any
	marks []int // lengths of the stack
	memo  []any
	made  int // values
	err   error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

// step does one instruction; they are called as in Python's pickletools.
func (r *reader) step(op byte) {
	switch op {
	case 0x80: // PROTO
		if v := r.argument(1); v > 5 {
			r.fail("protocol %d, expected 2 to 5", v)
		}
	case 'h': // BINGET
		r.recall(r.argument(1))
	case 'j': // LONG_BINGET
		r.recall(r.argument(4))
	case 'q': // BINPUT
		r.remember(r.argument(1))
	case 'r': // LONG_BINPUT
		r.remember(r.argument(4))
	case '(': // MARK
		r.marks = append(r.marks, len(r.stack))
	case ']': // EMPTY_LIST
		r.push(new([]any))
	case '}': // EMPTY_DICT
		r.push(new(map[string]any))
	case 'e': // APPENDS
		r.appendItems(r.sinceMark())
	case 'a': // APPEND
		r.appendItems(r.pop(1))
	case 'u': // SETITEMS
		r.setItems(r.sinceMark())
	case 's': // SETITEM
		r.setItems(r.pop(2))
	case ')': // EMPTY_TUPLE
		r.tuple(nil)
	case 't': // TUPLE
		r.tuple(r.sinceMark())
	case 0x85, 0x86, 0x87: // TUPLE1, TUPLE2, TUPLE3
		r.tuple(r.pop(int(op-0x85) + 1))
	default:
		r.scalar(op)
	}
}

// scalar pushes a value that holds no others, or refuses the instruction.
func (r *reader) scalar(op byte) {
	switch op {
	case 'N': // NONE
		r.push(nil)
	case 0x88, 0x89: // NEWTRUE, NEWFALSE
		r.push(op == 0x88)
	case 'X': // BINUNICODE
		r.push(r.bytes(r.argument(4)))
	case 'K': // BININT1
		r.push(int64(r.argument(1)))
	case 'M': // BININT2
		r.push(int64(r.argument(2)))
	case 'J': // BININT
		r.push(int64(int32(r.argument(4))))
	case 0x8a: // LONG1
		r.push(r.long())
	case 'G': // BINFLOAT
		if b := r.bytes(8); r.err == nil {
			r.push(math.Float64frombits(binary.BigEndian.Uint64([]byte(b))))
		}
	default:
		why := "which data does not need"
		if strings.IndexByte(executing, op) >= 0 {
			why = "which imports or calls"
		}
		r.fail("%w: instruction %#02x, %s; a recorder's dump holds data only", ErrRefused, op, why)
	}
}

// bytes takes so many bytes of the text.
func (r *reader) bytes(n uint64) string {
	if left := len(r.text) - r.at; n > uint64(left) {
		r.fail("an argument of %d bytes where %d are left", n, left)
		return ""
	}
	r.at += int(n)
	return r.text[r.at-int(n) : r.at]
}

// argument reads a number of so many bytes, the lowest first.
func (r *reader) argument(size uint64) (n uint64) {
	for i, b := range []byte(r.bytes(size)) {
		n |= uint64(b) << (8 * i)
	}
	return n
}

// long reads an integer of up to eight bytes, as LONG1 has it; a ninth is the sign of one without.
func (r *reader) long() int64 {
	b := r.bytes(r.argument(1))
	if len(b) > 9 || len(b) == 9 && b[8] != 0 {
		r.fail("an integer of %d bytes; at most 8 are read", len(b))
	}
	n := int64(0)
	for i := range min(len(b), 8) {
		n |= int64(b[i]) << (8 * i)
	}
	if free := 64 - 8*len(b); len(b) > 0 && free > 0 {
		n = n << free >> free // its highest bit is the sign
	}
	return n
}

// push puts a value on the stack.
func (r *reader) push(v any) {
	if r.made++; r.made > maxValues {
		r.fail("more than %d values", maxValues)
		return
	}
	r.stack = append(r.stack, v)
}

// sinceMark takes what was pushed since the last mark; the slice is valid until the next push.
func (r *reader) sinceMark() []any {
	if len(r.marks) == 0 {
		r.fail("no mark on the stack")
		return nil
	}
	from := r.marks[len(r.marks)-1]
	r.marks = r.marks[:len(r.marks)-1]
	return r.pop(len(r.stack) - from)
}

// pop takes n values from the top, above the last mark.
func (r *reader) pop(n int) []any {
	at := len(r.stack) - n
	if at < 0 || len(r.marks) > 0 && at < r.marks[len(r.marks)-1] {
		r.fail("expected %d values on the stack", n)
		return nil
	}
	items := r.stack[at:]
	r.stack = r.stack[:at]
	return items
}

// top is the value on the top; it stays there.
func (r *reader) top() (v any) {
	if list := r.pop(1); len(list) > 0 {
		v = list[0]
		r.stack = r.stack[:len(r.stack)+1]
	}
	return v
}

func (r *reader) tuple(items []any) {
	items = slices.Clone(items)
	r.push(&items)
}

// appendItems puts values into the list on the top.
func (r *reader) appendItems(items []any) {
	list, ok := r.top().(*[]any)
	if !ok {
		r.fail("values for a list where none is on the stack")
		return
	}
	*list = append(*list, items...)
}

// setItems puts keys and values into the dictionary on the top.
func (r *reader) setItems(items []any) {
	dict, ok := r.top().(*map[string]any)
	switch {
	case !ok:
		r.fail("values for a dictionary where none is on the stack")
		return
	case len(items)%2 != 0:
		r.fail("a key without a value")
		return
	}
	if *dict == nil {
		*dict = make(map[string]any, len(items)/2)
	}
	for i := 0; i < len(items); i += 2 {
		if key, ok := items[i].(string); ok {
			(*dict)[key] = items[i+1]
		}
	}
}

// remember puts the value on the top into the memo, whose slots are filled in their order.
func (r *reader) remember(slot uint64) {
	v := r.top()
	switch {
	case slot < uint64(len(r.memo)):
		r.memo[slot] = v
	case slot == uint64(len(r.memo)):
		r.memo = append(r.memo, v)
	default:
		r.fail("memo slot %d where %d is next", slot, len(r.memo))
	}
}

// recall pushes a value of the memo.
func (r *reader) recall(slot uint64) {
	if slot >= uint64(len(r.memo)) {
		r.fail("memo slot %d was never filled", slot)
		return
	}
	r.push(r.memo[slot])
}
