package browsertests

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// scene has the real server draw the fake's cluster, as an upload.
func (f *fakeFleet) scene(real *url.URL) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		data, err := json.Marshal(f.cluster())
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		ask := func(method, path string, body io.Reader) (*http.Response, error) {
			q, err := http.NewRequestWithContext(r.Context(), method, real.String()+path, body)
			if err != nil {
				return nil, err
			}
			q.Header = r.Header.Clone()
			q.Header.Del("Accept-Encoding")
			q.Host = r.Host
			return http.DefaultClient.Do(q)
		}
		kept, err := ask("POST", "/api/files?name=fleet.json", bytes.NewReader(data))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer kept.Body.Close()
		var id struct{ ID, Error string }
		if err := json.NewDecoder(kept.Body).Decode(&id); err != nil || id.ID == "" {
			http.Error(w, fmt.Sprint(err, id.Error), http.StatusBadGateway)
			return
		}
		drawn, err := ask("GET", "/api/scene?c="+url.QueryEscape(id.ID)+"&at="+url.QueryEscape(r.URL.Query().Get("at")), nil)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer drawn.Body.Close()
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.WriteHeader(drawn.StatusCode)
		_, _ = io.Copy(w, drawn.Body)
	}
}
