package lines

import (
	"fmt"
	"io"
)

// Each hands the lines of a text to take, bare of labels and terminal codes, until
// take returns an error, which is passed on as it is. An error of reading names the
// text and the line.
func Each(name string, r io.Reader, take func(num int, text string) error) error {
	in := New(r)
	for in.Next() {
		if err := take(in.Num(), Bare(in.Text())); err != nil {
			return err
		}
	}
	if err := in.Err(); err != nil {
		return at(name, in.Num(), err)
	}
	return nil
}

// at is an error with its place; there is no line before the first.
func at(name string, num int, err error) error {
	if num == 0 {
		return fmt.Errorf("%s: %w", name, err)
	}
	return fmt.Errorf("%s:%d: %w", name, num, err)
}

// Whole reads a text of at most so many bytes. The error for a longer one ends in what to give instead.
func Whole(name string, r io.Reader, most int64, instead string) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, most+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", name, err)
	case int64(len(data)) > most:
		return nil, fmt.Errorf("%s: more than %d MiB; %s", name, most>>20, instead)
	}
	return data, nil
}
