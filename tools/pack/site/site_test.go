package main

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"
)

func TestBuild(t *testing.T) {
	root := fstest.MapFS{
		"docs/README.md": {Data: []byte("# Documents\n\n## Tutorials\n- [First](tutorials/a.md#two-words)\n")},
		"docs/tutorials/a.md": {Data: []byte("# First hour\n\nSee ![p](../p.svg) and [home](../../README.md).\n\n## Two " +
			"words\n\nbusbw and *MFU*\n")},
		"docs/p.svg":           {Data: []byte("<svg/>")},
		"README.md":            {Data: []byte("# busbar\n\n[docs](docs/), [out](https://example.org/)\n")},
		"internal/x/README.md": {Data: []byte("not for users")},
	}
	pages, err := documents(root)
	if err != nil {
		t.Fatal(err)
	}
	s, err := build(root, pages)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"index.html":            `href="docs/index.html"`,
		"docs/index.html":       `href="../docs/tutorials/a.html#two-words"`,
		"docs/tutorials/a.html": `src="../../docs/p.svg"`,
		"docs/p.svg":            "<svg/>",
		"search-index.js":       `"busbw and MFU`,
	} {
		if !strings.Contains(string(s.files[name]), want) {
			t.Errorf("%s: no %s in\n%s", name, want, s.files[name])
		}
	}
	if len(s.pages) != 3 {
		t.Errorf("%d pages", len(s.pages))
	}
}

func TestBrokenLinks(t *testing.T) {
	for link, want := range map[string]string{
		"[x](none.md)":                      "no such file",
		"[x](#none)":                        "no such heading",
		"![x](https://example.org/x.png)":   "nothing from elsewhere",
		"[x](javascript:alert)":             "nothing from elsewhere",
		"[x](../../../../../../etc/passwd)": "no such file",
	} {
		root := fstest.MapFS{"docs/README.md": {Data: []byte("# Title\n\n" + link + "\n")}}
		pages, err := documents(root)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := build(root, pages); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; expected %s", link, err, want)
		}
	}
}

// TestDocuments: every link of the checkout's documents leads somewhere.
func TestDocuments(t *testing.T) {
	root := os.DirFS("../../..")
	pages, err := documents(root)
	if err != nil {
		t.Fatal(err)
	}
	s, err := build(root, append(pages, source{"docs/reference/README.md", []byte("# Commands\n")}))
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range s.files {
		for _, remote := range []string{`src="http`, `<link rel="stylesheet" href="http`, "@import", "url(http"} {
			if strings.HasSuffix(name, ".html") && strings.Contains(string(data), remote) {
				t.Errorf("%s loads something from elsewhere (%s)", name, remote)
			}
		}
	}
	t.Logf("%d pages, %d links", len(s.pages), s.links)
}
