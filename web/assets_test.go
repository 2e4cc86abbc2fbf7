package web

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestThirdPartyFiles holds files of others against the checksums that they were taken with.
func TestThirdPartyFiles(t *testing.T) {
	sums, err := os.ReadFile("page/vendor/SHA256SUMS")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for _, line := range strings.Split(strings.TrimSpace(string(sums)), "\n") {
		sum, name, ok := strings.Cut(line, "  ")
		if !ok {
			t.Fatalf("SHA256SUMS: %q", line)
		}
		want[name] = sum
	}
	err = fs.WalkDir(os.DirFS("page/vendor"), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || name == "SHA256SUMS" || name == "README" {
			return err
		}
		data, err := os.ReadFile(filepath.Join("page/vendor", name))
		if err != nil {
			return err
		}
		sum := sha256.Sum256(data)
		if got := hex.EncodeToString(sum[:]); got != want[name] {
			t.Errorf("%s: sha256 %s, expected %q; make page-assets fetches it again", name, got, want[name])
		}
		delete(want, name)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range want {
		t.Errorf("%s is missing", name)
	}
}

// TestViews: index.html links every module that shows a view, and nothing else.
func TestViews(t *testing.T) {
	files, err := fs.Glob(page, "page/*.js")
	if err != nil {
		t.Fatal(err)
	}
	var modules []string
	for _, f := range files {
		text, err := page.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "export async function show(") && filepath.Base(f) != "main.js" {
			modules = append(modules, strings.TrimSuffix(filepath.Base(f), ".js"))
		}
	}
	if linked := slices.Sorted(slices.Values(append([]string{"home"}, views...))); !slices.Equal(linked, modules) {
		t.Errorf("index.html links %v; expected the modules that show a view: %v", linked, modules)
	}
}

// TestExampleLog holds the log that doctor has to try against that of the documents.
func TestExampleLog(t *testing.T) {
	want, err := os.ReadFile("../docs/examples/job.log")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := page.ReadFile("page/example.log"); err != nil || string(got) != string(want) {
		t.Errorf("page/example.log is not docs/examples/job.log (%v)", err)
	}
}

// TestPageFiles keeps the page's own files small, whole, and away from other hosts.
func TestPageFiles(t *testing.T) {
	const most = 400
	var scripts []string
	imports := regexp.MustCompile(`from '(\./[^']+)'`)
	err := filepath.WalkDir("page", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.Contains(path, "vendor/") {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		text := string(data)
		if n := strings.Count(text, "\n"); n > most {
			t.Errorf("%s has %d lines; at most %d", path, n, most)
		}
		if m := regexp.MustCompile(`https?://[^w][^ '"]*`).FindString(text); m != "" {
			t.Errorf("%s names another host: %s", path, m)
		}
		for _, bad := range []string{
			"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", " style=\"", "javascript:",
		} {
			if strings.Contains(text, bad) {
				t.Errorf("%s: %s", path, bad)
			}
		}
		if filepath.Ext(path) != ".js" {
			return nil
		}
		for _, m := range imports.FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), m[1])); err != nil {
				t.Errorf("%s imports %s, which is not there", path, m[1])
			}
		}
		scripts = append(scripts, path)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Log("no node here: scripts are not parsed")
		return
	}
	const parse = `for (const f of process.argv.slice(1)) new (require('vm').SourceTextModule)(require('fs').readFileSync(f, 'utf8'), {identifier: f})`
	args := append([]string{"--no-warnings", "--experimental-vm-modules", "-e", parse}, scripts...)
	if out, err := exec.CommandContext(t.Context(), node, args...).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
