package schedule

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"busbar.dev/internal/test/corpus"
)

var (
	realLine  = regexp.MustCompile(`nranks (\d+)`)
	realTrees = regexp.MustCompile(`NCCL INFO Trees (\[\d+\] .*)`)
	realTree  = regexp.MustCompile(`\[(\d+)\] (-?\d+)/(-?\d+)/(-?\d+)->(\d+)->(-?\d+)`)
)

// TestTreesOfRealNCCL holds the trees to those that NCCL printed for one GPU a node.
func TestTreesOfRealNCCL(t *testing.T) {
	compared := 0
	dir := filepath.Join(corpus.Dir(t), "corpus", "nccl-real")
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".log" {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		size := realLine.FindSubmatch(data)
		for _, line := range realTrees.FindAllSubmatch(data, -1) {
			trees := realTree.FindAllStringSubmatch(string(line[1]), -1)
			if size == nil || len(trees) == 0 {
				t.Errorf("%s: trees without a number of ranks", path)
				continue
			}
			n, _ := strconv.Atoi(string(size[1]))
			g, err := newGrouping(n, nil)
			if err != nil {
				return err
			}
			shape := dtree{grouping: g, channels: len(trees)}
			for channel, m := range trees {
				r, _ := strconv.Atoi(m[5])
				kids := [3]int{-1, -1, -1}
				for k := range shape.children(r, channel) {
					kids[k] = shape.child(r, channel, k)
				}
				got := fmt.Sprintf("[%d] %d/%d/%d->%d->%d", channel, kids[0], kids[1], kids[2], r, shape.parent(r, channel))
				if got != m[0] {
					t.Errorf("%s: %s, want %s", path, got, m[0])
				}
				compared++
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d trees of real runs compared", compared)
	if compared == 0 {
		t.Error("no trees found")
	}
}
