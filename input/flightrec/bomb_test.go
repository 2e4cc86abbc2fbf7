package flightrec

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// pickled writes instructions of a pickle.
type pickled struct{ bytes.Buffer }

func newPickled() *pickled {
	p := &pickled{}
	p.WriteString("\x80\x02")
	return p
}

func (p *pickled) text(s string) {
	p.WriteByte('X')
	_ = binary.Write(p, binary.LittleEndian, uint32(len(s)))
	p.WriteString(s)
}

// TestShortDumps: a short dump that stands for much, by sharing, costs what it is long: it is read, or refused.
func TestShortDumps(t *testing.T) {
	if testing.Short() {
		t.Skip("measures memory, which the race detector takes too")
	}
	long := strings.Repeat("0,", 1<<19) + "0"
	groups := newPickled() // many process groups share one long list of ranks
	groups.WriteString("}")
	groups.text("pg_config")
	groups.WriteString("}(")
	for i := range 5000 {
		groups.text(fmt.Sprint("g", i))
		groups.WriteString("}(")
		groups.text("ranks")
		if i == 0 {
			groups.text("[" + long + "]")
			groups.WriteString("q\x00")
		} else {
			groups.WriteString("h\x00")
		}
		groups.WriteString("u")
	}
	groups.WriteString("us.")

	names := newPickled() // entries share a long name and differ in their sizes
	names.WriteString("}")
	names.text("entries")
	names.WriteString("](")
	for i := range 2000 {
		names.WriteString("}(")
		names.text("profiling_name")
		if i == 0 {
			names.text(long)
			names.WriteString("q\x00")
		} else {
			names.WriteString("h\x00")
		}
		names.text("input_sizes")
		names.WriteString("](](M")
		names.Write([]byte{byte(i), byte(i >> 8)})
		names.WriteString("eeu")
	}
	names.WriteString("es.")

	same := newPickled() // entries are one dictionary, which is large
	same.WriteString("}")
	same.text("entries")
	same.WriteString("](}(")
	for range 200_000 {
		same.WriteString("K\x00K\x00")
	}
	same.WriteString("uq\x00")
	for range 2000 {
		same.WriteString("h\x00")
	}
	same.WriteString("es.")

	empty := `{"version":"2.10","pg_config":{},"entries":[` + strings.Repeat("{},", 300_000) + `{}]}`
	for _, c := range []struct {
		name    string
		data    []byte
		refused string
	}{
		{"groups", groups.Bytes(), "process groups list more than"},
		{"names", names.Bytes(), ""},
		{"same", same.Bytes(), ""}, // looked up in, and not walked through
		{"empty", []byte(empty), ""},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := NewSet().Add(c.name, c.data)
		runtime.ReadMemStats(&after)
		if c.refused == "" && err != nil || c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused)) {
			t.Errorf("%s: %v", c.name, err)
		}
		mb := (after.TotalAlloc - before.TotalAlloc) >> 20
		t.Logf("%s: %d bytes took %d MB in all", c.name, len(c.data), mb)
		if mb > 350 {
			t.Errorf("%s: %d bytes took %d MB", c.name, len(c.data), mb)
		}
	}
}
