//go:build unix

package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"busbar.dev/launch/profiler"
)

// TestProfileLoadsNobodyElses has another user, or whoever wrote a plan, leave a library where exec --profile could
// find it. It is not loaded: another is built, or an error says why not.
func TestProfileLoadsNobodyElses(t *testing.T) {
	if _, err := exec.LookPath("cc"); err != nil {
		t.Skip("needs a C compiler")
	}
	const theirs = "not a library of this user"
	file := built(t)
	sum := sha256.Sum256([]byte(profiler.Source()))
	leave := func(t *testing.T, dir string) string {
		t.Helper()
		lib := filepath.Join(dir, profiler.LibraryName)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(lib, []byte(theirs), 0o755); err != nil {
			t.Fatal(err)
		}
		return lib
	}
	// another gives a file or a folder away, or lets everybody write to it.
	another := func(t *testing.T, path string) {
		t.Helper()
		err := os.Chmod(path, 0o777)
		if os.Geteuid() == 0 {
			err = os.Chown(path, 12345, 12345)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, x := range map[string]struct {
		prepare func(t *testing.T, dir, cache, plan string)
		fails   bool
	}{
		"nothing there":      {prepare: func(*testing.T, string, string, string) {}},
		"in the plan":        {prepare: func(t *testing.T, _, _, plan string) { leave(t, plan) }},
		"a file of another":  {prepare: func(t *testing.T, dir, _, _ string) { another(t, leave(t, dir)) }},
		"a folder of others": {func(t *testing.T, dir, _, _ string) { leave(t, dir); another(t, dir) }, true},
		"a cache of others":  {func(t *testing.T, dir, cache, _ string) { leave(t, dir); another(t, cache) }, true},
		"a link": {prepare: func(t *testing.T, dir, _, _ string) {
			lib := leave(t, t.TempDir())
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(lib, filepath.Join(dir, profiler.LibraryName)); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		for _, home := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, home %v", name, home), func(t *testing.T) {
				temp, plan := t.TempDir(), emitted(t, "node0")
				env := []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + temp}
				cache := filepath.Join(temp, fmt.Sprintf("busbar-%d", os.Getuid()))
				if home {
					env, cache = append(env, "HOME="+temp), filepath.Join(temp, ".cache")
				}
				x.prepare(t, filepath.Join(cache, "busbar", fmt.Sprintf("profiler-%x", sum[:6])), cache, plan)
				cmd := exec.CommandContext(limit(t), file, "exec", "-q", "--profile", "--plan", plan, "--rank", "0", "--", "sh",
					"-c",
					`cat "$NCCL_PROFILER_PLUGIN"`)
				cmd.Env = env
				out, err := cmd.CombinedOutput()
				text := string(out)
				switch {
				case strings.Contains(text, theirs):
					t.Errorf("the rank loads another's library")
				case x.fails && (err == nil || !strings.Contains(text, "XDG_CACHE_HOME")):
					t.Errorf("%v %.300q; want an error that says what to do", err, text)
				case !x.fails && (err != nil || !strings.HasPrefix(text, "\x7fELF")):
					t.Errorf("%v %.80q; want a library that was built", err, text)
				}
			})
		}
	}
}
