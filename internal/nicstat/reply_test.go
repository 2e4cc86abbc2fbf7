package nicstat

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
)

// answers are what the kernel would say about some counters.
func answers(list []string) (info, names, values []byte) {
	word := binary.NativeEndian
	info = word.AppendUint32(nil, 0x37)
	info = word.AppendUint32(info, 0)
	info = word.AppendUint64(info, 1<<statsSet)
	info = word.AppendUint32(info, uint32(len(list)))
	names = word.AppendUint32(nil, 0x1b)
	names = word.AppendUint32(names, statsSet)
	names = word.AppendUint32(names, uint32(len(list)))
	values = word.AppendUint32(nil, 0x1d)
	values = word.AppendUint32(values, uint32(len(list)))
	for i, s := range list {
		var name [nameBytes]byte
		copy(name[:], s)
		names = append(names, name[:]...)
		values = word.AppendUint64(values, uint64(100+i))
	}
	return info, names, values
}

func all(string) bool { return true }

func TestPick(t *testing.T) {
	long := strings.Repeat("x", nameBytes)
	info, names, values := answers([]string{
		"rx_packets", "rx_prio3_pause", "", "rx_prio3_pause", "  indented", "bad\x01", long, "tx_prio3_pause",
	})
	n, err := setSize(info)
	if err != nil || n != 8 {
		t.Fatalf("%d counters, %v", n, err)
	}
	got, err := pick(names, values, n, all, 100)
	want := map[string]uint64{"rx_packets": 100, "rx_prio3_pause": 101, "indented": 104, long: 106, "tx_prio3_pause": 107}
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
	got, err = pick(names, values, n, func(s string) bool { return strings.Contains(s, "pause") }, 1)
	if err != nil || fmt.Sprint(got) != "map[rx_prio3_pause:101]" {
		t.Errorf("%v, %v", got, err)
	}
	// Fewer or more than were there a moment ago, and answers that are cut off.
	for _, m := range []int{0, 7, 9, -1, mostStats + 1} {
		if _, err := pick(names, values, m, all, 100); !errors.Is(err, ErrChanged) {
			t.Errorf("%d counters: %v", m, err)
		}
	}
	for _, c := range [][2][]byte{
		{names[:11], values},
		{names, values[:7]},
		{names[:len(names)-1], values},
		{names, values[:len(values)-1]},
		{nil, nil},
	} {
		if got, err := pick(c[0], c[1], n, all, 100); err == nil {
			t.Errorf("%d and %d bytes: %v", len(c[0]), len(c[1]), got)
		}
	}
}

func TestSetSize(t *testing.T) {
	info, _, _ := answers(make([]string, 3))
	none := append([]byte{}, info...)
	binary.NativeEndian.PutUint64(none[8:], 0)
	if n, err := setSize(none[:headInfo]); n != 0 || err != nil {
		t.Errorf("a driver without counters: %d, %v", n, err)
	}
	many := append([]byte{}, info...)
	binary.NativeEndian.PutUint32(many[headInfo:], mostStats+1)
	for _, reply := range [][]byte{nil, info[:8], info[:headInfo], info[:headInfo+3], many} {
		if n, err := setSize(reply); err == nil {
			t.Errorf("%d bytes: %d counters", len(reply), n)
		}
	}
}

// FuzzPick reads answers of any bytes: nothing panics, nothing beyond the bounds is kept.
func FuzzPick(f *testing.F) {
	info, names, values := answers([]string{"rx_prio3_pause", "tx_prio3_pause_duration", "[0]: rx_drops"})
	f.Add(info, names, values, 3)
	f.Add(info[:5], names[:20], values[:12], 1)
	f.Add([]byte{}, []byte{}, []byte{}, 0)
	f.Fuzz(func(t *testing.T, info, names, values []byte, n int) {
		if m, err := setSize(info); err == nil && (m < 0 || m > mostStats) {
			t.Fatalf("%d counters", m)
		}
		got, err := pick(names, values, n, all, 16)
		if len(got) > 16 || err != nil && got != nil {
			t.Fatalf("%d, %v", len(got), err)
		}
		for name := range got {
			if name == "" || len(name) > nameBytes || !plain(name) {
				t.Fatalf("%q", name)
			}
		}
	})
}
