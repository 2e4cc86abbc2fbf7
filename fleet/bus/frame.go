package bus

import (
	"bufio"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strconv"

	"busbar.dev/fleet"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

const frameHead = 8 + 1 + 8 + 1

// Frame is a line of a file that is appended to: the text with its length and its checksum in front.
func Frame(text []byte) []byte {
	data := fmt.Appendf(make([]byte, 0, frameHead+len(text)+1), "%08x %08x ", len(text), crc32.Checksum(text, castagnoli))
	return append(append(data, text...), '\n')
}

// ReadFrame reads a line, and tells what it takes in the file.
func ReadFrame(r *bufio.Reader) ([]byte, int, error) {
	var head [frameHead]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, 0, err
	}
	length, err := strconv.ParseUint(string(head[:8]), 16, 32)
	sum, err2 := strconv.ParseUint(string(head[9:17]), 16, 32)
	if err := errors.Join(err, err2); err != nil || head[8] != ' ' || head[17] != ' ' || length > 2*fleet.MaxBytes {
		return nil, 0, errors.New("no frame of a line")
	}
	text := make([]byte, length+1)
	if _, err := io.ReadFull(r, text); err != nil {
		return nil, 0, err
	}
	if text[length] != '\n' || crc32.Checksum(text[:length], castagnoli) != uint32(sum) {
		return nil, 0, errors.New("a line with another checksum")
	}
	return text[:length], frameHead + len(text), nil
}

// SkipFrame is how long a damaged line is, and whether it has an end.
func SkipFrame(r *bufio.Reader) (n int64, whole bool) {
	for {
		text, err := r.ReadSlice('\n')
		n += int64(len(text))
		if !errors.Is(err, bufio.ErrBufferFull) {
			return n, err == nil
		}
	}
}
