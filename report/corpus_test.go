package report

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"strings"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/hardware"
	"busbar.dev/input/hwloc"
	"busbar.dev/input/ibnet"
	"busbar.dev/input/k8s"
	"busbar.dev/input/nccllog"
	"busbar.dev/input/ncclxml"
	"busbar.dev/input/nvsmi"
	"busbar.dev/input/p2pbw"
	"busbar.dev/input/slurm"
	"busbar.dev/internal/test/corpus"
)

// TestCorpus shows every real sample of the formats that describe a node or a
// fabric, and holds the pictures to the same rules as our own.
func TestCorpus(t *testing.T) {
	within := func(read func(*cluster.Budget, string, io.Reader) (*cluster.Fragment, error)) func(string,
		io.Reader) (*cluster.Fragment, error) {
		return func(name string, r io.Reader) (*cluster.Fragment, error) {
			return read(cluster.NewBudget(cluster.Limits{}, nil), name, r)
		}
	}
	readers := []struct {
		match func([]byte) bool
		read  func(string, io.Reader) (*cluster.Fragment, error)
	}{
		{ncclxml.Match, ncclxml.Read},
		{hwloc.Match, hwloc.Read},
		{ibnet.Discover.Match, ibnet.Discover.Read},
		{ibnet.LinkInfo.Match, ibnet.LinkInfo.Read},
		{nvsmi.MatchMatrix, func(name string, r io.Reader) (*cluster.Fragment, error) {
			list, err := nvsmi.ReadMatrices(name, r)
			if len(list) == 0 {
				return nil, cmp.Or(err, errors.New("no matrix"))
			}
			return list[0], err
		}},
		{slurm.MatchConf, within(slurm.ReadConfWithin)},
		{k8s.Match, k8s.Read},
		{nccllog.Match, nccllog.Read},
		{p2pbw.P2P.Match, p2pbw.P2P.Read},
	}
	shown := 0
	for _, e := range corpus.Index(t) {
		data := corpus.Open(t, e.File)
		for _, r := range readers {
			if !r.match(data) {
				continue
			}
			f, err := r.read(e.File, bytes.NewReader(data))
			if err != nil {
				break // the readers' own tests judge that
			}
			c := cluster.Join(f)
			hardware.Complete(c)
			checkPicture(t, e.File, draw(t, c))
			checkPicture(t, e.File+" on a page", drawScene(t, NewScene(c)))
			var text bytes.Buffer
			if err := Text(&text, c, TextOptions{}); err != nil {
				t.Errorf("%s: %v", e.File, err)
			}
			if n := strings.Count(text.String(), "\n"); n > 400 {
				t.Errorf("%s: the text has %d lines", e.File, n)
			}
			if err := Matrix(io.Discard, c); err != nil {
				t.Errorf("%s: %v", e.File, err)
			}
			shown++
			break
		}
	}
	t.Logf("%d samples shown", shown)
}
