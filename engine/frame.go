package engine

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// headerLen is the length of a frame's header on a data connection.
const headerLen = 28

// headerOp is where in it the number of the op is.
const headerOp = 16

// Bounds of what a frame may announce. Frames come from peers that know the secret; the limits
// keep a broken one from being believed.
const (
	maxMessage = 1 << 40
	maxLanes   = 1 << 15
)

// header begins every message on a data connection.
type header struct {
	program uint32 // fingerprint of the schedule and the operation
	call    uint64
	lane    uint32
	op      uint32 // the sender's, for messages about faults
	length  uint64 // of what follows
}

func (h header) put(b *[headerLen]byte) {
	binary.LittleEndian.PutUint32(b[0:], h.program)
	binary.LittleEndian.PutUint64(b[4:], h.call)
	binary.LittleEndian.PutUint32(b[12:], h.lane)
	binary.LittleEndian.PutUint32(b[headerOp:], h.op)
	binary.LittleEndian.PutUint64(b[20:], h.length)
}

// parseHeader reads and checks a header of at least headerLen bytes. What names memory of the sender comes over a
// shared link alone.
func parseHeader(b []byte, shared bool) (header, error) {
	h := header{
		program: binary.LittleEndian.Uint32(b[0:]),
		call:    binary.LittleEndian.Uint64(b[4:]),
		lane:    binary.LittleEndian.Uint32(b[12:]),
		op:      binary.LittleEndian.Uint32(b[headerOp:]),
		length:  binary.LittleEndian.Uint64(b[20:]),
	}
	if h.program == noProgram {
		return h, h.checkOwn(shared)
	}
	switch {
	case h.length > maxMessage:
		return h, fmt.Errorf("a frame of call %x lane %d claims %d bytes; at most %d are believed", h.call, h.lane, h.length,
			uint64(maxMessage))
	case h.call > maxCalls || h.lane >= maxLanes:
		return h,
			fmt.Errorf("a frame of call %d lane %d; at most %d and %d are possible", h.call, h.lane, maxCalls, maxLanes-1)
	case h.op&byRef != 0 && !shared:
		return h, errors.New("a reference to memory over a connection that shares none")
	}
	return h, nil
}

// checkOwn checks a frame of the engine's own.
func (h header) checkOwn(shared bool) error {
	switch {
	case h.call < tellArena || h.call > tellBoard:
		return fmt.Errorf("a frame of unknown kind %d", h.call)
	case !shared && (h.call != tellBoard || h.length > 0): // that there is no page may be said anywhere
		return errors.New("a frame about shared memory over a connection that shares none")
	case h.call == tellDone && (h.length > maxCalls || h.lane >= maxLanes):
		return fmt.Errorf("an acknowledgement of call %d lane %d", h.length, h.lane)
	case h.call != tellDone && h.length > maxHandle, h.call == tellArena && (h.lane >= maxArenas || h.length == 0),
		h.call == tellBoard && (h.op != 0 || h.lane > maxCalls):
		return fmt.Errorf("a handle of %d bytes for memory %d", h.length, h.lane)
	}
	return nil
}
