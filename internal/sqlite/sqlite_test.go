package sqlite

import (
	"bytes"
	"os"
	"slices"
	"testing"
)

func open(t *testing.T, data []byte) *File {
	t.Helper()
	f, err := Open(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// testdata/small.sqlite was made with Python's sqlite3 by testdata/make.py: 3,000 rows over several pages, a text of
// 9,000 bytes that needs overflow pages, negative and large numbers, reals, NULL, a column added later.
func TestRows(t *testing.T) {
	data, err := os.ReadFile("testdata/small.sqlite")
	if err != nil {
		t.Fatal(err)
	}
	f := open(t, data)
	if !f.Has("numbers", "id", "n", "x") || f.Has("numbers", "nothing") || f.Has("nobody") {
		t.Error("tables and columns differ")
	}
	rows, sum := 0, int64(0)
	err = f.Rows("numbers", []string{"id", "n", "x", "later", "no such"}, func(v []Value) error {
		rows++
		sum += v[1].Int
		if v[0].Int != int64(rows) || !v[4].Null || v[3].Null != (rows <= 3000) {
			t.Fatalf("row %d: %+v", rows, v)
		}
		if rows == 7 && !v[2].Null {
			t.Errorf("row 7: %+v", v[2])
		}
		return nil
	})
	if err != nil || rows != 3001 || sum != -4503599627370496+3000*2999/2 {
		t.Errorf("%d rows, sum %d, %v", rows, sum, err)
	}
	var texts []int
	err = f.Rows("texts", []string{"value"}, func(v []Value) error { texts = append(texts, len(v[0].Bytes)); return nil })
	if err != nil || !slices.Equal(texts, []int{5, 9000, 0}) {
		t.Errorf("texts of %v bytes, %v", texts, err)
	}
}

func FuzzOpen(f *testing.F) {
	data, err := os.ReadFile("testdata/small.sqlite")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add(data[:5000])
	f.Fuzz(func(t *testing.T, data []byte) {
		db, err := Open(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return
		}
		for name, tab := range db.tables {
			n := 0
			_ = db.Rows(name, tab.columns, func([]Value) error { n++; return nil })
			if n > len(data) {
				t.Fatalf("%d rows of %d bytes", n, len(data))
			}
		}
	})
}
