package input

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"fmt"
	"io"

	"busbar.dev/cluster"
)

// maxInflated is less than a plain text may have: a few bytes become that much.
const maxInflated = 64 << 20

// inflate gives the text in a file that gzip or bzip2 made of it; people keep logs
// so. Archives stay as they are: their reader unpacks them with bounds of its own.
func inflate(b *cluster.Budget, data []byte) ([]byte, error) {
	r := inflating(data)
	if r == nil {
		return data, nil // the reader of archives says what is wrong, if it is one
	}
	in := bufio.NewReader(r)
	// The header of a tar file has zero bytes, and is a block long.
	head, err := in.Peek(512)
	if len(head) == 0 || bytes.IndexByte(head, 0) >= 0 && !isUTF16(head) || err != nil && err != io.EOF {
		return data, nil
	}
	most := b.BytesLeft(maxInflated)
	// Counted first, and then kept in as many bytes: a buffer that grows would take several times as much.
	n, err := io.Copy(io.Discard, io.LimitReader(stopping{in, b}, most+1))
	var text []byte
	if err == nil && n <= most {
		text = make([]byte, n)
		_, err = io.ReadFull(stopping{inflating(data), b}, text)
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("compressed text: %w; copy it again", err)
	case n > most:
		return nil, fmt.Errorf("larger than %d MiB when unpacked; cut out the part with the topology", most>>20)
	case len(bytes.TrimSpace(text)) == 0:
		return nil, fmt.Errorf("empty when unpacked")
	}
	return text, nil
}

// inflating decompresses a file; nil where it is not compressed, or only begins as if it were.
func inflating(data []byte) io.Reader {
	switch {
	case bytes.HasPrefix(data, []byte("\x1f\x8b")):
		if z, err := gzip.NewReader(bytes.NewReader(data)); err == nil {
			return z
		}
	case bytes.HasPrefix(data, []byte("BZh")):
		return bzip2.NewReader(bytes.NewReader(data))
	}
	return nil
}
