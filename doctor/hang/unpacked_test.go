package hang

import (
	"bytes"
	"compress/gzip"
	"strings"
	"testing"
)

// TestUnpackedBound holds packed files to a bound of the caller's, each and together.
func TestUnpackedBound(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write(bytes.Repeat([]byte("x"), 700)); err != nil {
		t.Fatal(err)
	}
	z.Close()
	c := NewCase()
	c.Unpacked = 1000
	if _, err := c.AddFile("a.gz", packed.Bytes()); err != nil {
		t.Errorf("700 of 1000 bytes: %v", err)
	}
	if _, err := c.AddFile("b.gz", packed.Bytes()); err == nil || !strings.Contains(err.Error(), "when unpacked") {
		t.Errorf("1400 of 1000 bytes: %v", err)
	}
	c = NewCase()
	c.Unpacked = 600
	if _, err := c.AddFile("a.gz", packed.Bytes()); err == nil || !strings.Contains(err.Error(), "when unpacked") {
		t.Errorf("700 of 600 bytes: %v", err)
	}
}

// TestXZ refuses what xz made, and says how to unpack it.
func TestXZ(t *testing.T) {
	_, err := NewCase().AddFile("a.log.xz", []byte("\xfd7zXZ\x00\x00\x04"))
	if err == nil || !strings.HasSuffix(err.Error(), "unpack it first: xz -d FILE") {
		t.Errorf("%v", err)
	}
}
