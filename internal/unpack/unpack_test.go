package unpack

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"busbar.dev/cluster"
)

func gzipped(t testing.TB, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func tarred(t testing.TB, files ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for i := 0; i < len(files); i += 2 {
		h := &tar.Header{Name: files[i], Mode: 0o600, Size: int64(len(files[i+1])), Typeflag: tar.TypeReg}
		if strings.HasSuffix(h.Name, "/") {
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, files[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// zipOf has files whose sizes are what says says, whatever they are.
func zipOf(t testing.TB, says uint64, files ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for i := 0; i < len(files); i += 2 {
		f, err := w.CreateRaw(&zip.FileHeader{
			Name: files[i], UncompressedSize64: says, CompressedSize64: uint64(len(files[i+1])),
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(f, files[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// walked are the names, paths and texts of what is in a file.
func walked(b *cluster.Budget, name string, data []byte, bad func(error)) (list []string, err error) {
	err = Walk(b, name, bytes.NewReader(data), Visitor{
		File: func(f *File) error {
			text, done, err := Whole(b, f)
			defer done()
			if err != nil {
				err = fmt.Errorf("%s: %w", f.Name, err)
			} else {
				list = append(list, fmt.Sprintf("%s %s %s", f.Name, f.Path, text))
			}
			return err
		}, Bad: bad,
	})
	return list, err
}

func TestWalk(t *testing.T) {
	xz := "\xfd7zXZ\x00\x00\x04"
	log := gzipped(t, []byte("log"))
	for _, c := range []struct {
		name string
		data []byte
		want []string
		err  string // of the walk, or of a member
	}{
		{"a.log", []byte("text"), []string{"a.log  text"}, ""},
		{"a.log.gz", gzipped(t, log), []string{"a.log  log"}, ""},
		{
			"a.tgz", gzipped(t, tarred(t, "d/", "", "./d/x.gz", string(log), "y", "")),
			[]string{"a.tgz/d/x d/x.gz log", "a.tgz/y y "},
			"",
		},
		{"a.zip", zipOf(t, 4, "d/", "", "d/x", "text"), []string{"a.zip/d/x d/x text"}, ""},
		{"a.zip", zipOf(t, 1<<40, "x", "text"), nil, "a.zip/x: "},
		{
			"a.tar", tarred(t, "b.tar", string(tarred(t, "c.tar", string(tarred(t, "x", "text"))))),
			[]string{"a.tar/b.tar/c.tar/x x text"},
			"",
		},
		{"a.xz", []byte(xz), nil, "a.xz: packed by xz; expected text, tar, gzip or bzip2; unpack it first: xz -d FILE"},
		{"a.tar", tarred(t, "x.xz", xz, "y", "text"), []string{"a.tar/y y text"}, "a.tar/x.xz: packed by xz"},
		{"a.tar", tarred(t, "x", string(log[:9]), "y", "text"), []string{"a.tar/y y text"}, "unexpected EOF"},
		{"a.tar", tarred(t, "x", "text")[:514], nil, "unexpected EOF"},
		{"a.gz", gzipped(t, gzipped(t, gzipped(t, gzipped(t, log)))), nil, "packed more than 4 times over"},
		{"a.gz", []byte("\x1f\x8bxx"), nil, "a.gz: begins like gzip and is not"},
		{"a.zip", []byte("PK\x03\x04xx"), nil, "a zip archive that cannot be read"},
		{"BZhang.log", []byte("BZhang"), []string{"BZhang.log  BZhang"}, ""},
	} {
		b := cluster.NewBudget(cluster.Limits{}, nil)
		var bad []error
		got, err := walked(b, c.name, c.data, func(err error) { bad = append(bad, err) })
		err = errors.Join(append(bad, err)...)
		if !slices.Equal(got, c.want) || (err == nil) != (c.err == "") ||
			err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %q, %v; want %q, %q", c.name, got, err, c.want, c.err)
		}
		if b.HoldLeft() != 1<<30 {
			t.Errorf("%s: %d bytes are still held", c.name, 1<<30-b.HoldLeft())
		}
		if _, err := walked(b, c.name, c.data, nil); (err == nil) != (c.err == "") {
			t.Errorf("%s: %v where members that cannot be read end it", c.name, err)
		}
	}
}

// TestBudget ends what costs more than a question may, also where members that cannot be read do not.
func TestBudget(t *testing.T) {
	zeros := gzipped(t, make([]byte, 1<<20))
	many := bytes.Repeat(tarred(t, "x", "")[:512], 1001)
	for name, c := range map[string]struct {
		data []byte
		l    cluster.Limits
		err  string
	}{
		"one": {zeros, cluster.Limits{Unpacked: 1 << 19}, "more than 0 MiB when unpacked"},
		"together": {
			tarred(t, "a", string(zeros), "b", string(zeros)),
			cluster.Limits{Unpacked: 3 << 19},
			"more than 1 MiB when unpacked",
		},
		"members": {many, cluster.Limits{Members: 1000}, "more than 1000 members of archives"},
		"packed":  {gzipped(t, many), cluster.Limits{Members: 1000}, "more than 1000 members of archives"},
		"zipped": {
			zipOf(t, 1<<40, slices.Repeat([]string{"x", ""}, 1001)...),
			cluster.Limits{Members: 1000},
			"more than 1000 members of archives",
		},
		"names": {
			zipOf(t, 0, slices.Repeat([]string{strings.Repeat("x", 60000), ""}, 100)...),
			cluster.Limits{},
			"more than 4 MiB of names",
		},
		"held": {zipOf(t, 0, "x", strings.Repeat("x", 2<<20)), cluster.Limits{Held: 1 << 20}, "more than 1 MiB; cut out"},
	} {
		b := cluster.NewBudget(c.l, nil)
		left := b.HoldLeft()
		if _, err := walked(b, name, c.data, func(error) {}); err == nil || !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %v; want %q", name, err, c.err)
		}
		if b.HoldLeft() != left {
			t.Errorf("%s: %d bytes are still held", name, left-b.HoldLeft())
		}
	}
}

// TestMemberTooLong leaves out a member that may not be held, and reads the others.
func TestMemberTooLong(t *testing.T) {
	var bad error
	b := cluster.NewBudget(cluster.Limits{Held: 1 << 20}, nil)
	got, err := walked(b, "a.tar", tarred(t, "long", strings.Repeat("x", 2<<20), "y", "text"),
		func(err error) { bad = err })
	if err != nil || !slices.Equal(got, []string{"a.tar/y y text"}) || bad == nil {
		t.Errorf("%.100q, %v, %v", got, err, bad)
	}
}

// TestStopped ends within a member when nobody waits any more.
func TestStopped(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	b := cluster.NewBudget(cluster.Limits{}, ctx.Err)
	err := Walk(b, "a.gz", bytes.NewReader(gzipped(t, make([]byte, 8<<20))), Visitor{
		File: func(f *File) error {
			if _, err := f.ReadByte(); err != nil {
				t.Error(err)
			}
			stop()
			n, err := io.Copy(io.Discard, f)
			if n > 1<<20 {
				t.Errorf("%d bytes were read after that", n)
			}
			return err
		}, Bad: func(error) {},
	})
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func FuzzWalk(f *testing.F) {
	f.Add([]byte("text"))
	f.Add(gzipped(f, tarred(f, "d/", "", "x", "text", "y", string(gzipped(f, []byte("log"))))))
	f.Add(zipOf(f, 4, "x", "text"))
	f.Add([]byte("BZh91AY&SY"))
	f.Fuzz(func(t *testing.T, data []byte) {
		b := cluster.NewBudget(cluster.Limits{Unpacked: 1 << 20, Held: 1 << 18, Members: 100}, nil)
		_, _ = walked(b, "f", data, func(error) {}) // most are damaged
		if b.HoldLeft() != 1<<18 {
			t.Errorf("%d bytes are still held", 1<<18-b.HoldLeft())
		}
	})
}

// TestUTF16 reads what a Windows terminal's redirection writes, in either order of bytes, packed or not.
func TestUTF16(t *testing.T) {
	text := strings.Repeat("NCCL INFO a\r\n", 20000)
	little := "\xff\xfe" + strings.Join(strings.Split(text, ""), "\x00") + "\x00"
	big := "\xfe\xff\x00" + strings.Join(strings.Split(text, ""), "\x00")
	for _, file := range []string{little, big, little + "\x03", big[:len(big)-1] + "é"} {
		got, _, err := Plain(nil, strings.NewReader(file))
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(got)
		if err != nil || len(data) < len(text)-1 || string(data[:len(text)-1]) != text[:len(text)-1] {
			t.Errorf("%d of %d bytes, %v", len(data), len(text), err)
		}
	}
	got, _, _ := Plain(nil, strings.NewReader("\xff\xfe\x16\x22a\x00"))
	if data, _ := io.ReadAll(got); string(data) != "?a" {
		t.Errorf("%q", data)
	}
}
