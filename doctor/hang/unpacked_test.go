package hang

import (
	"bytes"
	"compress/gzip"
	"io"
	"strings"
	"testing"

	"busbar.dev/cluster"
)

// TestUnpackedBound holds packed files to the question's budget, each and together.
func TestUnpackedBound(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write(bytes.Repeat([]byte("x"), 700)); err != nil {
		t.Fatal(err)
	}
	z.Close()
	c, b := NewCase(), cluster.NewBudget(cluster.Limits{Unpacked: 1000}, nil)
	if _, err := c.Read(b, "a.gz", bytes.NewReader(packed.Bytes())); err != nil {
		t.Errorf("700 of 1000 bytes: %v", err)
	}
	_, err := c.Read(b, "b.gz", bytes.NewReader(packed.Bytes()))
	if err == nil || !strings.Contains(err.Error(), "when unpacked") {
		t.Errorf("1400 of 1000 bytes: %v", err)
	}
	b = cluster.NewBudget(cluster.Limits{Held: 600}, nil)
	_, err = c.Read(b, "a.gz", bytes.NewReader(packed.Bytes()))
	if err == nil || !strings.Contains(err.Error(), "a: more than 0 MiB") || b.HoldLeft() != 600 {
		t.Errorf("700 of 600 bytes at once: %v; %d left", err, b.HoldLeft())
	}
}

// TestXZ refuses what xz made, and says how to unpack it.
func TestXZ(t *testing.T) {
	_, err := NewCase().Read(nil, "a.log.xz", strings.NewReader("\xfd7zXZ\x00\x00\x04"))
	if err == nil || !strings.HasSuffix(err.Error(), "unpack it first: xz -d FILE") {
		t.Errorf("%v", err)
	}
}

// zeros is an endless file of them, and counts what is read of it.
type zeros struct{ read int }

func (z *zeros) Read(to []byte) (int, error) {
	if z.read > 4*beginning {
		return 0, io.EOF
	}
	clear(to)
	z.read += len(to)
	return len(to), nil
}

// TestZeros: of a file of zeros, as a bomb unpacks to, no more than a beginning is read.
func TestZeros(t *testing.T) {
	var z zeros
	if known, err := NewCase().Read(nil, "a.log", &z); known != 0 || err != nil || z.read > 2*beginning {
		t.Errorf("%d known, %v, %d bytes read", known, err, z.read)
	}
}
