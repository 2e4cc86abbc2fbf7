package web

import (
	"context"
	"net/http"

	"busbar.dev/ask"
	topology "busbar.dev/cluster"
	"busbar.dev/query"
	"busbar.dev/report"
)

// scene answers with the drawing of a cluster, as report lays it out; at names a node that is wanted alone.
func (s *Server) scene(w http.ResponseWriter, r *http.Request) {
	values := r.URL.Query()
	at := values.Get("at")
	values.Del("at")
	a, err := s.read(ask.Map, values)
	if err != nil {
		refuse(w, err)
		return
	}
	a.drawing = "scene " + at
	a.write = func(_ context.Context, answer ask.Answer, most int) ([]byte, error) {
		cl, err := answer.Document.(*query.MapDoc).Cluster()
		if err != nil {
			return nil, err
		}
		return encoded(sceneOf(cl, at), most)
	}
	s.send(w, r, s.kept(r.Context(), a))
}

// Scene answers with the drawing of a cluster that somebody else knows.
func Scene(of func() *topology.Cluster) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		Reply(w, sceneOf(of(), r.URL.Query().Get("at")))
	})
}

// sceneOf draws a cluster, or the node of that name.
func sceneOf(c *topology.Cluster, at string) *report.Scene {
	if host := c.HostIndex(at); at != "" && host >= 0 && c.TypeOf(host) != nil {
		return report.NodeScene(c, host)
	}
	return report.NewScene(c)
}
