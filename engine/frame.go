package engine

import (
	"encoding/binary"
	"fmt"
)

// headerLen is the length of a frame's header on a data connection.
const headerLen = 28

// headerOp is where in it the number of the op is.
const headerOp = 16

// maxMessage is the longest message that a frame may announce. Frames come from peers that
// know the secret; the limit keeps a broken one from being believed.
const maxMessage = 1 << 40

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

// parseHeader reads a header of at least headerLen bytes.
func parseHeader(b []byte) (header, error) {
	h := header{
		program: binary.LittleEndian.Uint32(b[0:]),
		call:    binary.LittleEndian.Uint64(b[4:]),
		lane:    binary.LittleEndian.Uint32(b[12:]),
		op:      binary.LittleEndian.Uint32(b[headerOp:]),
		length:  binary.LittleEndian.Uint64(b[20:]),
	}
	if h.length > maxMessage {
		return h, fmt.Errorf("a frame of call %x lane %d claims %d bytes; at most %d are believed", h.call, h.lane, h.length,
			uint64(maxMessage))
	}
	return h, nil
}
