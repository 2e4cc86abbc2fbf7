package query

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"busbar.dev/internal/failure"
	"busbar.dev/internal/kube"
	"busbar.dev/internal/test/synth/livejob"
)

// rasService is a RAS service that gives these answers.
func rasService(t *testing.T, answer func(n int) string) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for n := 0; ; n++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				buf := make([]byte, 4096)
				for got := ""; !strings.Contains(strings.ToUpper(got), "STATUS"); {
					k, err := c.Read(buf)
					if err != nil {
						return
					}
					if got += string(buf[:k]); strings.HasSuffix(got, "\n") {
						fmt.Fprint(c, "SERVER PROTOCOL 2\nOK\nOK\n")
					}
				}
				fmt.Fprint(c, answer(n))
			}()
		}
	}()
	return l
}

// TestHangBadAnswers: one service that answers well is enough, whatever the others send; without one, the error says
// what came.
func TestHangBadAnswers(t *testing.T) {
	job := &livejob.Job{Ranks: 8, TP: 2, Steps: 5, Fault: livejob.Late, Culprit: 5}
	whole := job.RAS("2026-11-16 02:00:05", true)
	at := func(answer string) string { return rasService(t, func(int) string { return answer }).Addr().String() }
	cut, other, none, good := at(whole[:len(whole)/2]), at("HTTP/1.1 400 Bad Request\r\n\r\n\x00\xff"), at(""), at(whole)
	ask := func(addrs ...string) (doc *HangDoc, err error) {
		for range 5 { // a service has a second and a half, which a stopped machine may take
			doc, err = Hang{RAS: addrs, Gap: 100e6}.Run(t.Context(), Env{})
			if !strings.Contains(fmt.Sprint(err), "timeout") && (doc == nil ||
				!slices.ContainsFunc(doc.Asked,
					func(a hangAsked) bool { return strings.Contains(a.Error, "timeout") || a.Silent > 0 })) {
				break
			}
		}
		return doc, err
	}
	doc, err := ask(cut, other, none, good)
	if err != nil {
		t.Fatal(err)
	}
	if doc.Kind != "late-rank" || len(doc.Ranks) != 1 || doc.Ranks[0].Rank != 5 || len(doc.Asked) != 4 {
		t.Errorf("%s %+v %+v", doc.Kind, doc.Ranks, doc.Asked)
	}
	if notes := strings.Join(doc.Notes, "\n"); !strings.Contains(notes, "3 of 4 RAS services did not answer") {
		t.Error(notes)
	}
	says := map[string]string{cut: "cannot be read", other: "expected a report", none: "expected a report", good: ""}
	for _, a := range doc.Asked {
		if want := says[a.Addr]; !strings.Contains(a.Error, want) || (a.Error == "") != (want == "") {
			t.Errorf("%s: %q, expected %q", a.Addr, a.Error, want)
		}
	}
	if _, err = ask(cut, none); err == nil || errors.Is(err, failure.ErrCannot) ||
		!strings.Contains(err.Error(), "cannot be read") {
		t.Errorf("a truncated answer: %v", err)
	}
	if _, err = ask(other, none); !errors.Is(err, failure.ErrCannot) ||
		!strings.Contains(err.Error(), "expected a report") {
		t.Errorf("no answer: %v", err)
	}
}

// TestHangPods asks the pods that run, at the port that they set, and says which do not.
func TestHangPods(t *testing.T) {
	job := &livejob.Job{Ranks: 8, TP: 2, Steps: 5, Fault: livejob.Late, Culprit: 5}
	l := rasService(t, func(n int) string { return job.RAS(fmt.Sprintf("2026-11-16 02:00:%02d", 5+n), true) })
	_, port, _ := net.SplitHostPort(l.Addr().String())
	pods := []kube.Pod{
		{Name: "llama-0", Node: "a", IP: "127.0.0.1", Phase: "Running", RAS: "0.0.0.0:" + port},
		{Name: "llama-1", Node: "b", Phase: "Pending", Reason: "Unschedulable"},
		{Name: "llama-2", Node: "c", IP: "127.0.0.9", Phase: "Failed", Reason: "OOMKilled, exit code 137"},
	}
	var asked kube.Question
	env := Env{Pods: func(_ context.Context, q kube.Question) ([]kube.Pod, error) { asked = q; return pods, nil }}
	doc, err := Hang{Pods: "train/llama", Gap: 100e6}.Run(t.Context(), env)
	if err != nil {
		t.Fatal(err)
	}
	if asked != (kube.Question{Namespace: "train", Job: "llama"}) || doc.Kind != "late-rank" || len(doc.Ranks) != 1 ||
		doc.Ranks[0].Rank != 5 || len(doc.Pods) != 3 {
		t.Errorf("%+v: %s %+v", asked, doc.Kind, doc.Ranks)
	}
	if notes := strings.Join(doc.Notes, "\n"); !strings.Contains(notes, "pod llama-1 is pending on b (Unschedulable)") ||
		!strings.Contains(notes, "OOMKilled") {
		t.Error(notes)
	}
	l.Close()
	_, err = Hang{Pods: "train/llama", Gap: 100e6}.Run(t.Context(), env)
	if !errors.Is(err, failure.ErrCannot) || !strings.Contains(err.Error(),
		"kubectl exec -n train llama-0 -- /tmp/busbar hang --ras localhost:"+port+";") ||
		!strings.Contains(err.Error(), "NCCL_RAS_ADDR=0.0.0.0:"+port) {
		t.Errorf("nobody answers: %v", err)
	}
	pods = pods[1:]
	if _, err = (Hang{Pods: "train/llama"}).Run(t.Context(), env); err == nil ||
		!strings.Contains(err.Error(), "none of 2 pods runs") {
		t.Errorf("none runs: %v", err)
	}
	env.Pods = func(context.Context, kube.Question) ([]kube.Pod, error) { return nil, kube.ErrNone }
	if _, err = (Hang{Pods: "train/llama"}).Run(t.Context(), env); err == nil ||
		!strings.Contains(err.Error(), "kubectl get pods -n train -l 'batch.kubernetes.io/job-name=llama' -o wide") {
		t.Errorf("without credentials: %v", err)
	}
}
