package texttab

import (
	"io"
	"slices"
)

// Terminal is a writer that knows how many columns fit on its lines; 0 is any number.
type Terminal interface {
	io.Writer
	Columns() int
}

// leastWrapped is the width below which a column of sentences is not wrapped inside its column.
const leastWrapped = 24

// fit divides the columns of a table that is wider than the terminal into blocks that are printed below each other,
// each with the first column, so that no line is broken. A last column of sentences is wrapped instead (wrapLast) and
// asks for leastWrapped only.
func (t *Table) fit(widths []int, columns int) [][]int {
	all := t.shown()
	if columns <= 0 || len(all) < 3 || t.span(widths, all) <= columns {
		return [][]int{all}
	}
	var blocks [][]int
	block := all[:1:1]
	for _, i := range all[1:] {
		need := t.span(widths, append(slices.Clone(block), i))
		if i == all[len(all)-1] && t.Columns[i].Align == Left {
			need -= max(0, widths[i]-leastWrapped)
		}
		if len(block) > 1 && need > columns {
			blocks, block = append(blocks, block), all[:1:1]
		}
		block = append(block, i)
	}
	return append(blocks, block)
}

// span is the width of lines with these columns.
func (t *Table) span(widths, show []int) int {
	n := Width(t.Indent) + Width(t.gap())*(len(show)-1)
	for _, i := range show {
		n += widths[i]
	}
	return n
}

// wrapLast is a row as lines: one, or as many as its last cell needs where that is a text that does not fit.
func (t *Table) wrapLast(widths, show []int, cells []string, columns int) [][]string {
	if columns <= 0 || len(show) == 0 {
		return [][]string{cells}
	}
	last := show[len(show)-1]
	if last >= len(cells) || t.Columns[last].Align != Left {
		return [][]string{cells}
	}
	free := columns - t.span(widths, show) + widths[last]
	if free < leastWrapped || Width(cells[last]) <= free {
		return [][]string{cells}
	}
	var rows [][]string
	for _, text := range Wrap(cells[last], free) {
		row := make([]string, last+1)
		if rows == nil {
			copy(row, cells)
		}
		row[last] = text
		rows = append(rows, row)
	}
	return rows
}
