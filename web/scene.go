package web

import (
	"net/http"

	"busbar.dev/ask"
	topology "busbar.dev/cluster"
	"busbar.dev/report"
)

// scene answers with the drawing of a cluster, as report lays it out; at names a node that is wanted alone.
func (s *Server) scene(w http.ResponseWriter, r *http.Request) {
	values := r.URL.Query()
	at := values.Get("at")
	values.Del("at")
	a, err := s.read(ask.Map, values)
	if err != nil {
		Fail(w, http.StatusBadRequest, err.Error())
		return
	}
	a.scene, a.at = true, at
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
