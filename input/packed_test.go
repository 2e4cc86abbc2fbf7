package input

import (
	"bytes"
	"compress/gzip"
	"strings"
	"testing"
)

func zip(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// A log that gzip packed is read as the log; what breaks off is told.
func TestReadPackedText(t *testing.T) {
	const topo = "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV4\t0-3\nGPU1\tNV4\t X \t0-3\n"
	frags, err := Read("x.gz", bytes.NewReader(zip(t, topo)))
	if err != nil || len(frags) != 1 || frags[0].Format != "nvidia-smi topo -m" {
		t.Fatalf("%d fragments, %v", len(frags), err)
	}
	long := zip(t, topo+strings.Repeat("words of a log that do not repeat too much 0123456789\n", 40))
	for _, tc := range []struct {
		data []byte
		want string
	}{
		{zip(t, "the quick brown fox\n"), "no known format"},
		{zip(t, " \n"), "x.gz: empty"},
		{long[:len(long)-12], "compressed text: unexpected EOF"},
		{zip(t, strings.Repeat("\x00", 2000)), "binary data"},
	} {
		if _, err := Read("x.gz", bytes.NewReader(tc.data)); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("error %v, want one with %q", err, tc.want)
		}
	}
}
