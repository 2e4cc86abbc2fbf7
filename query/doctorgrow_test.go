package query

import (
	"bytes"
	"context"
	"io/fs"
	"testing"
	"testing/fstest"
)

// growing is a file system whose files are written as fast as they are read.
type growing struct{ fstest.MapFS }

func (g growing) Open(name string) (fs.File, error) {
	f, err := g.MapFS.Open(name)
	return unending{f}, err
}

type unending struct{ fs.File }

func (e unending) Read(p []byte) (int, error) {
	return copy(p, bytes.Repeat([]byte("another line\n"), len(p)/13+1)), nil
}

// A log that grows while it is read is read as far as it went when it was opened.
func TestDoctorGrowing(t *testing.T) {
	files := growing{fstest.MapFS{"job.log": {Data: bytes.Repeat([]byte("another line\n"), 100)}}}
	doc, err := Doctor{Sources: []string{"job.log"}}.Run(context.Background(), Env{Files: files})
	if err != nil || doc.Report.Lines != 100 {
		t.Errorf("%+v %v", doc, err)
	}
}
