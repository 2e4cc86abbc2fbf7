package pickle

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// The instructions that data needs, by their bytes in Python's pickletools.
const (
	opMark           = '('
	opStop           = '.'
	opBinInt         = 'J'
	opBinInt1        = 'K'
	opBinInt2        = 'M'
	opNone           = 'N'
	opBinUnicode     = 'X'
	opAppends        = 'e'
	opAppend         = 'a'
	opBinGet         = 'h'
	opLongBinGet     = 'j'
	opBinPut         = 'q'
	opLongBinPut     = 'r'
	opSetItem        = 's'
	opTuple          = 't'
	opEmptyTuple     = ')'
	opSetItems       = 'u'
	opBinFloat       = 'G'
	opEmptyList      = ']'
	opEmptyDict      = '}'
	opProto          = 0x80
	opTuple1         = 0x85
	opTuple2         = 0x86
	opTuple3         = 0x87
	opNewTrue        = 0x88
	opNewFalse       = 0x89
	opLong1          = 0x8a
	opShortUnicode   = 0x8c // protocol 4, as Python's own module writes it
	opMemoize        = 0x94
	opFrame          = 0x95
	opBinUnicode8Old = 0x8d
)

// executing are the instructions that import, call or build; those that are left do what data does not need.
const executing = "cRiobPQ\x81\x82\x83\x84\x92\x93"

// step does one instruction.
func (r *Reader) step(op byte) error {
	switch op {
	case opBinGet:
		return r.memoSlot(1, r.recall)
	case opLongBinGet:
		return r.memoSlot(4, r.recall)
	case opBinPut:
		return r.memoSlot(1, r.remember)
	case opLongBinPut:
		return r.memoSlot(4, r.remember)
	case opMemoize:
		return r.remember(uint32(len(r.memo)))
	case opMark:
		r.marks = append(r.marks, len(r.stack))
		return r.push(Value{Kind: mark})
	case opNone:
		return r.push(Value{})
	case opNewTrue:
		return r.push(Value{n: 1, Kind: Bool})
	case opNewFalse:
		return r.push(Value{Kind: Bool})
	case opBinUnicode:
		return r.text(4)
	case opShortUnicode:
		return r.text(1)
	case opBinUnicode8Old:
		return r.text(8)
	case opEmptyList:
		return r.container(List, nil)
	case opEmptyDict:
		return r.container(Dict, nil)
	case opAppends, opAppend, opSetItems, opSetItem:
		return r.put(op)
	case opEmptyTuple, opTuple, opTuple1, opTuple2, opTuple3:
		return r.tuple(op)
	case opProto, opFrame:
		return r.header(op)
	}
	return r.number(op)
}

// number reads an integer or a float, or refuses the instruction.
func (r *Reader) number(op byte) error {
	switch op {
	case opLong1:
		return r.long()
	case opBinInt1:
		return r.integer(1)
	case opBinInt2:
		return r.integer(2)
	case opBinInt:
		return r.integer(4)
	case opBinFloat:
		b, err := r.takeBytes(8)
		if err != nil {
			return err
		}
		return r.push(Value{n: binary.BigEndian.Uint64(b), Kind: Float})
	}
	why := "which data does not need"
	if strings.IndexByte(executing, op) >= 0 {
		why = "which imports or calls"
	}
	return fmt.Errorf("%w: instruction %#02x, %s; a recorder's dump holds data only", ErrRefused, op, why)
}

// argument reads a number of so many bytes, the lowest first.
func (r *Reader) argument(size int) (n uint64, err error) {
	b, err := r.takeBytes(size)
	for i, x := range b {
		n |= uint64(x) << (8 * i)
	}
	return n, err
}

// memoSlot uses the slot of the memo whose number stands in so many bytes.
func (r *Reader) memoSlot(size int, use func(slot uint32) error) error {
	slot, err := r.argument(size)
	if err != nil {
		return err
	}
	return use(uint32(slot))
}

// integer reads one of so many bytes; one of four has a sign.
func (r *Reader) integer(size int) error {
	n, err := r.argument(size)
	if err != nil {
		return err
	}
	if size == 4 {
		n = uint64(int64(int32(n)))
	}
	return r.push(Value{n: n, Kind: Int})
}

// header reads the protocol or the length of a frame, which need no other care: what follows is read anyway.
func (r *Reader) header(op byte) error {
	n := 1
	if op == opFrame {
		n = 8
	}
	b, err := r.takeBytes(n)
	if err == nil && op == opProto && b[0] > 5 {
		return fmt.Errorf("protocol %d, expected 2 to 5", b[0])
	}
	return err
}

// put fills a list or a dictionary from the stack.
func (r *Reader) put(op byte) error {
	var items []Value
	var err error
	want := Dict
	switch op {
	case opAppends:
		items, err = r.sinceMark()
		want = List
	case opAppend:
		items, err = r.pop(1)
		want = List
	case opSetItems:
		items, err = r.sinceMark()
	case opSetItem:
		items, err = r.pop(2)
	}
	if err != nil {
		return err
	}
	to, err := r.top()
	switch {
	case err != nil:
		return err
	case to.Kind != want:
		return fmt.Errorf("values for a list or a dictionary where neither is on the stack")
	case want == Dict && len(items)%2 != 0:
		return fmt.Errorf("a key without a value")
	}
	r.fillContainer(to, items)
	return nil
}

// tuple makes a tuple of what is on the stack.
func (r *Reader) tuple(op byte) error {
	var items []Value
	var err error
	switch op {
	case opTuple:
		items, err = r.sinceMark()
	case opTuple1, opTuple2, opTuple3:
		items, err = r.pop(int(op-opTuple1) + 1)
	}
	if err != nil {
		return err
	}
	keep := append([]Value(nil), items...)
	return r.container(Tuple, keep)
}
