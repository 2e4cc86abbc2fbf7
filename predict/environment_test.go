package predict

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// What is called heeded is what the sources of the model read, no more and no
// less, so that a note about a setting cannot become untrue.
func TestHeeded(t *testing.T) {
	word := regexp.MustCompile(`"(NCCL_[A-Z0-9_]+)"`)
	read := map[string]bool{}
	for _, folder := range []string{"../nccl", "../sim", "."} {
		files, err := filepath.Glob(filepath.Join(folder, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", folder, len(files), err)
		}
		for _, f := range files {
			if strings.HasSuffix(f, "_test.go") {
				continue
			}
			data, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range word.FindAllSubmatch(data, -1) {
				read[string(m[1])] = true
			}
		}
	}
	for key := range read {
		if !slices.Contains(heeded, key) {
			t.Errorf("%s is read and not among the heeded", key)
		}
	}
	seen := map[string]bool{}
	for _, list := range [][]string{heeded, weighty, idle} {
		for _, key := range list {
			if seen[key] {
				t.Errorf("%s stands twice", key)
			}
			seen[key] = true
		}
	}
	for _, key := range heeded {
		if !read[key] {
			t.Errorf("%s is called heeded and nothing reads it", key)
		}
	}
}

func TestEnvironmentNotes(t *testing.T) {
	for _, c := range []struct{ key, want string }{
		{"NCCL_ALGO", ""},
		{"NCCL_NET_GDR_LEVEL", ""},
		{"NCCL_DEBUG", "NCCL_DEBUG does not change this prediction"},
		{"NCCL_BUFFSIZE", "the model does not know it"},
		{"NCCL_ALG", "not known and does not change this prediction; similar: NCCL_ALGO"},
		{"nccl_proto", "similar: NCCL_PROTO"},
		{"NCCL_MIN_NCHANELS", "similar: NCCL_MIN_NCHANNELS"},
		{"NCCL_MARBLE_RUN", "NCCL_MARBLE_RUN is not known"},
		{"NCCL_" + strings.Repeat("X", 100), "is not known"},
		{"OMP_NUM_THREADS", "is not known"},
	} {
		notes := EnvironmentNotes(map[string]string{c.key: "1"})
		switch {
		case c.want == "" && len(notes) > 0:
			t.Errorf("%s: %q", c.key, notes)
		case c.want != "" && (len(notes) != 1 || !strings.Contains(notes[0], c.want)):
			t.Errorf("%s: %q, want %q", c.key, notes, c.want)
		}
	}
}

// A name that NCCL knows is not misspelt, nor is one that is far from all.
func TestMisspelt(t *testing.T) {
	for key, want := range map[string]string{
		"NCCL_IB_GID_INDX": "NCCL_IB_GID_INDEX", "NCCL_P2P_DISABLED": "NCCL_P2P_DISABLE", "NCCL_IB_TC": "",
		"NCCL_OUR_OWN_KNOB": "",
	} {
		if got := Misspelt(key); got != want {
			t.Errorf("%s: %q, want %q", key, got, want)
		}
	}
}
