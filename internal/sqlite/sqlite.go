// Package sqlite reads the tables of an SQLite database file, row by row, without a library and without writing: Nsight
// Systems exports its reports so. Indexes, views and tables without row ids are not read. The format is SQLite's own
// description of it (sqlite.org/fileformat2.html); every size in a file is taken for hostile.
package sqlite

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Magic begins every database.
const Magic = "SQLite format 3\x00"

// maxPayload bounds one row; longer rows are passed over.
const maxPayload = 1 << 20

var errCorrupt = errors.New("a damaged SQLite database")

// Value is a column of a row: NULL is Null, integers have Int, text and blobs have Bytes, which are valid until the
// next row. Fractions are of no use here, and are NULL.
type Value struct {
	Null  bool
	Int   int64
	Bytes []byte
}

// File is a database.
type File struct {
	r      io.ReaderAt
	page   int64
	usable int
	pages  int64
	left   int64 // pages that the walk may still read
	tables map[string]table
}

type table struct {
	root    int64
	columns []string
	alias   int // the column that is the row's id; -1 is none
}

// Open reads the names of the tables.
func Open(r io.ReaderAt, size int64) (*File, error) {
	var head [100]byte
	if _, err := r.ReadAt(head[:], 0); err != nil || string(head[:16]) != Magic {
		return nil, errors.New("not an SQLite database")
	}
	page := int64(binary.BigEndian.Uint16(head[16:]))
	if page == 1 {
		page = 1 << 16
	}
	if page < 512 || page&(page-1) != 0 || int64(head[20]) > page-480 {
		return nil, fmt.Errorf("%w: pages of %d bytes", errCorrupt, page)
	}
	f := &File{r: r, page: page, usable: int(page) - int(head[20]), pages: size / page, tables: map[string]table{}}
	err := f.walk(1, func(_ int64, payload []byte) error {
		v, err := record(payload, 5)
		if err != nil || string(v[0].Bytes) != "table" || len(f.tables) >= 1<<12 {
			return err
		}
		columns, alias := parseColumns(string(v[4].Bytes))
		if columns != nil {
			f.tables[string(v[1].Bytes)] = table{v[3].Int, columns, alias}
		}
		return nil
	})
	return f, err
}

// Has reports a table with all these columns.
func (f *File) Has(name string, columns ...string) bool {
	t, ok := f.tables[name]
	for _, c := range columns {
		ok = ok && t.index(c) >= 0
	}
	return ok
}

// Rows gives the columns of every row; a column that the table does not have is NULL.
func (f *File) Rows(name string, columns []string, row func(v []Value) error) error {
	t, ok := f.tables[name]
	if !ok {
		return fmt.Errorf("no table %s in this database", name)
	}
	index := make([]int, len(columns))
	for i, c := range columns {
		index[i] = t.index(c)
	}
	out := make([]Value, len(columns))
	return f.walk(t.root, func(id int64, payload []byte) error {
		all, err := record(payload, len(t.columns))
		if err != nil {
			return err
		}
		for i, k := range index {
			switch {
			case k < 0:
				out[i] = Value{Null: true}
			case k == t.alias:
				out[i] = Value{Int: id}
			default:
				out[i] = all[k]
			}
		}
		return row(out)
	})
}

func (t *table) index(column string) int {
	return slices.IndexFunc(t.columns, func(c string) bool { return strings.EqualFold(c, column) })
}

// walk visits the rows of a table's tree. A page belongs to one place of one tree, so that no more are read than there
// are, whatever a file says.
func (f *File) walk(root int64, row func(id int64, payload []byte) error) error {
	f.left = f.pages
	var visit func(page int64, depth int) error
	visit = func(page int64, depth int) error {
		if depth > 40 {
			return fmt.Errorf("%w: its tree goes in circles", errCorrupt)
		}
		p, err := f.read(page)
		if err != nil {
			return err
		}
		head := 0
		if page == 1 {
			head = 100
		}
		kind, cells := p[head], int(binary.BigEndian.Uint16(p[head+3:]))
		size := 8
		if kind == 5 {
			size = 12
		} else if kind != 13 {
			return fmt.Errorf("%w: page %d is no table's", errCorrupt, page)
		}
		if head+size+2*cells > f.usable {
			return fmt.Errorf("%w: page %d has %d cells", errCorrupt, page, cells)
		}
		for i := range cells {
			at := int(binary.BigEndian.Uint16(p[head+size+2*i:]))
			if at+4 > f.usable {
				return fmt.Errorf("%w: a cell outside page %d", errCorrupt, page)
			}
			if kind == 5 {
				err = visit(int64(binary.BigEndian.Uint32(p[at:])), depth+1)
			} else {
				err = f.leaf(p[at:f.usable], row)
			}
			if err != nil {
				return err
			}
		}
		if kind == 5 {
			return visit(int64(binary.BigEndian.Uint32(p[head+8:])), depth+1)
		}
		return nil
	}
	return visit(root, 0)
}

func (f *File) read(page int64) ([]byte, error) {
	if page < 1 || page > f.pages {
		return nil, fmt.Errorf("%w: page %d of %d; is the file whole?", errCorrupt, page, f.pages)
	}
	if f.left--; f.left < 0 {
		return nil, fmt.Errorf("%w: its tree goes in circles", errCorrupt)
	}
	p := make([]byte, f.page)
	_, err := f.r.ReadAt(p, (page-1)*f.page)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return p, err
}

// leaf gives one row, with what of it lies on other pages.
func (f *File) leaf(cell []byte, row func(id int64, payload []byte) error) error {
	size, n := varint(cell)
	id, m := varint(cell[min(n, len(cell)):])
	if n == 0 || m == 0 || size < 0 {
		return fmt.Errorf("%w: a torn row", errCorrupt)
	}
	cell = cell[n+m:]
	if size > maxPayload {
		return nil
	}
	here := f.local(int(size))
	if here > len(cell) {
		return fmt.Errorf("%w: a row that is cut off", errCorrupt)
	}
	if here == int(size) {
		return row(id, cell[:here])
	}
	if here+4 > len(cell) {
		return fmt.Errorf("%w: a row that is cut off", errCorrupt)
	}
	payload := append(make([]byte, 0, size), cell[:here]...)
	next := int64(binary.BigEndian.Uint32(cell[here:]))
	for len(payload) < int(size) {
		p, err := f.read(next)
		if err != nil {
			return err
		}
		next = int64(binary.BigEndian.Uint32(p))
		payload = append(payload, p[4:4+min(f.usable-4, int(size)-len(payload))]...)
	}
	return row(id, payload)
}

// local is how much of a row of so many bytes lies in its cell.
func (f *File) local(size int) int {
	most, least := f.usable-35, (f.usable-12)*32/255-23
	if size <= most {
		return size
	}
	if k := least + (size-least)%(f.usable-4); k <= most {
		return k
	}
	return least
}

// record takes a row apart into so many columns; those that an older row lacks are NULL.
func record(p []byte, columns int) ([]Value, error) {
	head, n := varint(p)
	if n == 0 || head < int64(n) || head > int64(len(p)) {
		return nil, fmt.Errorf("%w: a row without a header", errCorrupt)
	}
	types, body := p[n:head], p[head:]
	list := make([]Value, columns)
	for i := range list {
		if len(types) == 0 {
			list[i].Null = true
			continue
		}
		kind, m := varint(types)
		if m == 0 {
			return nil, fmt.Errorf("%w: a row with a torn header", errCorrupt)
		}
		types = types[m:]
		size := width(kind)
		if size < 0 || size > int64(len(body)) {
			return nil, fmt.Errorf("%w: a row that is cut off", errCorrupt)
		}
		list[i] = value(kind, body[:size])
		body = body[size:]
	}
	return list, nil
}

// width is how many bytes a value of this type has.
func width(kind int64) int64 {
	switch {
	case kind < 0 || kind == 10 || kind == 11:
		return -1
	case kind >= 12:
		return (kind - 12) / 2
	}
	return []int64{0, 1, 2, 3, 4, 6, 8, 8, 0, 0}[kind]
}

func value(kind int64, p []byte) Value {
	switch {
	case kind == 0 || kind == 7:
		return Value{Null: true}
	case kind >= 12:
		return Value{Bytes: p}
	case kind >= 8:
		return Value{Int: kind - 8}
	}
	n := int64(0)
	for i, b := range p {
		if n = n<<8 | int64(b); i == 0 {
			n = int64(int8(b))
		}
	}
	return Value{Int: n}
}

// varint is SQLite's number of one to nine bytes, the greatest part first; 0 bytes is none.
func varint(p []byte) (int64, int) {
	n := uint64(0)
	for i := range min(8, len(p)) {
		n = n<<7 | uint64(p[i]&0x7f)
		if p[i] < 0x80 {
			return int64(n), i + 1
		}
	}
	if len(p) < 9 {
		return 0, 0
	}
	return int64(n<<8 | uint64(p[8])), 9
}
