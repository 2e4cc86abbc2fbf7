package web

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// planFiles answers GET /api/plan/files with the files that start a plan, as an
// archive; with list=1 with their names and texts. pick says which of the plans.
func (s *Server) planFiles(w http.ResponseWriter, r *http.Request) {
	said := r.URL.Query()
	pick, list := said.Get("pick"), said.Get("list") == "1"
	said.Del("pick")
	said.Del("list")
	if n, err := strconv.Atoi(pick); pick != "" && (err != nil || n < 1 || n > 1000) {
		Fail(w, http.StatusBadRequest, fmt.Sprintf("pick=%.20q: expected which of the plans, from 1", pick))
		return
	}
	q := questions[planQuestion()]
	a, err := s.read(q, said)
	if err != nil {
		Fail(w, http.StatusBadRequest, err.Error())
		return
	}
	dir, remove, err := s.shelf.folder()
	if err != nil {
		Fail(w, http.StatusInternalServerError, reason(err))
		return
	}
	a.after = remove
	a.folders = append(a.folders, dir)
	a.args, a.shown = append(a.args, "--emit="+filepath.Join(dir, "plan")), append(a.shown, "--emit", "plan")
	if pick != "" {
		a.args, a.shown = append(a.args, "--pick="+pick), append(a.shown, "--pick", pick)
	}
	a.take = func(g *given) { packed(g, dir, list) }
	g := s.compute(r.Context(), a)
	if g.mime == archiveType {
		w.Header().Set("Content-Disposition", `attachment; filename="plan.tar.gz"`)
	}
	send(w, r, g)
}

const archiveType = "application/gzip"

// packed makes of an answer the files that were written beside it.
func packed(g *given, dir string, list bool) {
	files, err := readFiles(filepath.Join(dir, "plan"), dir)
	switch {
	case err == nil && list:
		g.body, err = json.Marshal(map[string]any{"files": files})
	case err == nil:
		g.mime = archiveType
		g.body, err = archive(files)
	}
	if err != nil {
		g.code, g.mime = http.StatusInternalServerError, "application/json; charset=utf-8"
		g.body, _ = json.Marshal(map[string]string{"error": reason(err)})
	}
	g.seal()
}

func planQuestion() int {
	for i := range questions {
		if questions[i].name == "plan" {
			return i
		}
	}
	panic("web: no question plan")
}

// planFile is one file of a plan.
type planFile struct {
	Name string `json:"name"`
	Text string `json:"text"`
	Run  bool   `json:"executable,omitempty"`
}

// readFiles reads a folder of small texts. Where the server made them is nobody's
// business: their folder is written as the one that they will be unpacked to.
func readFiles(dir, parent string) ([]planFile, error) {
	var list []planFile
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil || !info.Mode().IsRegular() || info.Size() > maxAnswer || len(list) >= maxParts {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		list = append(list, planFile{name, strings.ReplaceAll(string(data), parent+"/", ""), info.Mode()&0o100 != 0})
		return nil
	})
	return list, err
}

func archive(files []planFile) ([]byte, error) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	t := tar.NewWriter(z)
	for _, f := range files {
		mode := int64(0o644)
		if f.Run {
			mode = 0o755
		}
		if err := t.WriteHeader(&tar.Header{Name: "plan/" + f.Name, Mode: mode, Size: int64(len(f.Text)), ModTime: time.Now(), Format: tar.FormatPAX}); err != nil {
			return nil, err
		}
		if _, err := t.Write([]byte(f.Text)); err != nil {
			return nil, err
		}
	}
	if err := t.Close(); err != nil {
		return nil, err
	}
	err := z.Close()
	return b.Bytes(), err
}
