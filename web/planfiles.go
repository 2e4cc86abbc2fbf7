package web

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"busbar.dev/ask"
	"busbar.dev/launch"
	"busbar.dev/query"
)

// planFolder is what the files of a plan call the folder that they are unpacked to.
const planFolder = "plan"

// planFiles answers GET /api/plan/files with the files that start a plan, as an
// archive; with list=1 with their names and texts. pick says which of the plans.
func (s *Server) planFiles(w http.ResponseWriter, r *http.Request) {
	given := r.URL.Query()
	pick, list := given.Get("pick"), given.Get("list") == "1"
	given.Del("pick")
	given.Del("list")
	which, err := strconv.Atoi(pick)
	if pick != "" && (err != nil || which < 1 || which > 1000) {
		Fail(w, http.StatusBadRequest, fmt.Sprintf("pick=%.20q: expected which of the plans, from 1", pick))
		return
	}
	a, err := s.read(ask.Named("plan"), given)
	if err != nil {
		refuse(w, err)
		return
	}
	q := a.ask.(*query.Plan)
	q.Emit, q.Pick = planFolder, which
	a.line = a.command("--json")
	a.write = func(_ context.Context, answer ask.Answer, _ int) ([]byte, error) {
		files := answer.Document.(*query.PlanDoc).Emitted.Texts
		if list {
			return json.Marshal(map[string]any{"files": files})
		}
		return archive(files)
	}
	if !list {
		a.mime = archiveType
	}
	g := s.compute(r.Context(), a)
	if g.mime == archiveType {
		w.Header().Set("Content-Disposition", `attachment; filename="plan.tar.gz"`)
	}
	s.send(w, r, g)
}

// archive packs files into a folder.
func archive(files []launch.File) ([]byte, error) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	t := tar.NewWriter(z)
	for _, f := range files {
		mode := int64(0o644)
		if f.Run {
			mode = 0o755
		}
		if err := t.WriteHeader(&tar.Header{
			Name: planFolder + "/" + f.Name, Mode: mode, Size: int64(len(f.Text)), ModTime: time.Now(), Format: tar.FormatPAX,
		}); err != nil {
			return nil, err
		}
		if _, err := io.WriteString(t, f.Text); err != nil {
			return nil, err
		}
	}
	if err := t.Close(); err != nil {
		return nil, err
	}
	err := z.Close()
	return b.Bytes(), err
}
