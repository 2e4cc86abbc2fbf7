package web

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"io/fs"
	"net/http"
	"path"
	"strings"

	"busbar.dev/ask"
)

// page holds the page as it is written: no step builds it. open is what is needed
// to log in, and is given to anybody.
//
//go:embed page
var page embed.FS

// assets serves the page's files under an address that changes with them, so that
// browsers may keep them for ever.
type assets struct {
	build string
	index string
	login string
}

// newAssets reads what is embedded.
func newAssets(version string) (*assets, error) {
	h := sha256.New()
	h.Write([]byte(version))
	err := fs.WalkDir(page, "page", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := page.ReadFile(name)
		h.Write([]byte(name))
		h.Write(data)
		return err
	})
	build := hex.EncodeToString(h.Sum(nil)[:6])
	html := func(name string) string {
		data, e := page.ReadFile(name)
		err = errors.Join(err, e)
		return strings.ReplaceAll(string(data), "BUILD", build)
	}
	return &assets{build: build, index: html("page/index.html"), login: html("page/login.html")}, err
}

func (a *assets) icon(w http.ResponseWriter, r *http.Request) {
	a.file(w, r, "open/icon.svg", "public, max-age=3600")
}

// open serves what the page to log in needs.
func (a *assets) open(w http.ResponseWriter, r *http.Request) {
	a.versioned(w, r, path.Join("open", path.Base(r.PathValue("file"))))
}

// closed serves the rest.
func (a *assets) closed(w http.ResponseWriter, r *http.Request) {
	a.versioned(w, r, path.Clean("/" + r.PathValue("file"))[1:])
}

func (a *assets) versioned(w http.ResponseWriter, r *http.Request, name string) {
	if r.PathValue("build") != a.build {
		Fail(w, http.StatusNotFound, "the page is of another release; load it again")
		return
	}
	a.file(w, r, name, "private, max-age=31536000, immutable")
}

// assetTypes are what the page is made of; what the machine's own tables say of them may differ.
var assetTypes = map[string]string{
	".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": ask.SVG,
	".log": "text/plain; charset=utf-8",
}

func (a *assets) file(w http.ResponseWriter, _ *http.Request, name, keep string) {
	data, err := page.ReadFile("page/" + name)
	kind := assetTypes[path.Ext(name)]
	if err != nil || kind == "" {
		Fail(w, http.StatusNotFound, "there is no such file")
		return
	}
	headed(w, kind, keep)
	_, _ = w.Write(data)
}
