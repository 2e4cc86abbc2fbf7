package query

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"busbar.dev/input/ras"
	"busbar.dev/internal/failure"
	"busbar.dev/internal/kube"
	"busbar.dev/internal/words"
)

// hangPods are the pods of a job of Kubernetes.
type hangPods struct {
	q    kube.Question
	list []kube.Pod
}

// pods lists those of --pods. Without credentials it says what to run where there are some.
func (q *Hang) pods(ctx context.Context, e *Env) (*hangPods, error) {
	if q.Pods == "" {
		return nil, nil
	}
	if e.Pods == nil {
		return nil, errors.New("--pods cannot be asked for here; give --hosts")
	}
	ask, err := kube.Parse(q.Pods)
	if err != nil {
		return nil, err
	}
	p := &hangPods{q: ask}
	p.list, err = e.Pods(ctx, ask)
	switch {
	case errors.Is(err, kube.ErrNone):
		return nil, failure.Cannot(fmt.Errorf("%w; where there are some, run\n  %s\n  %s", err, ask.Command(), p.within(&kube.Pod{Name: "POD"})))
	case err != nil:
		return nil, err
	case len(p.list) == 0:
		return nil, fmt.Errorf("--pods %s: no pod has these labels; %s lists them", q.Pods, ask.Command())
	case len(p.addrs()) == 0:
		return nil, failure.Cannot(fmt.Errorf("--pods %s: none of %s runs: %s", q.Pods, words.Plural(len(p.list), "pod"), strings.Join(p.idle(), "; ")))
	}
	return p, nil
}

func (p *hangPods) namespace() string {
	if p.q.Namespace == "" {
		return ""
	}
	return "-n " + p.q.Namespace + " "
}

// within is the command that asks from inside a pod, where the service listens on localhost by default.
func (p *hangPods) within(x *kube.Pod) string {
	at := "localhost"
	if port := rasPort(x); port != ras.DefaultPort {
		at += ":" + port
	}
	return fmt.Sprintf("kubectl cp busbar %s%s:/tmp/busbar && kubectl exec %s%s -- /tmp/busbar hang --ras %s", p.namespace(), x.Name, p.namespace(), x.Name, at)
}

// rasPort is the port that a pod's container sets.
func rasPort(x *kube.Pod) string {
	if _, given, err := net.SplitHostPort(x.RAS); err == nil && given != "" {
		return given
	}
	return ras.DefaultPort
}

// addrs are the RAS services of the pods that run, at the port that their containers set.
func (p *hangPods) addrs() (list []string) {
	if p == nil {
		return nil
	}
	for i := range p.list {
		x := &p.list[i]
		if x.Phase != "Running" || net.ParseIP(x.IP) == nil {
			continue
		}
		list = append(list, net.JoinHostPort(x.IP, rasPort(x)))
	}
	return list
}

// idle are the pods that do not run, and those whose container ended before, with why.
func (p *hangPods) idle() (list []string) {
	for i := range p.list {
		x := &p.list[i]
		if x.Phase == "Running" && x.Reason == "" {
			continue
		}
		text := fmt.Sprintf("pod %s is %s", x.Name, strings.ToLower(x.Phase))
		if x.Node != "" {
			text += " on " + x.Node
		}
		if x.Reason != "" {
			text += " (" + x.Reason + ")"
		}
		const most = 8
		if list = append(list, text); len(list) > most {
			return append(list[:most], "and more")
		}
	}
	return list
}

// told adds the pods to an answer, and to an error what to run within them: the service listens on their localhost by default.
func (p *hangPods) told(doc *HangDoc, err error) (*HangDoc, error) {
	if p == nil {
		return doc, err
	}
	if err != nil {
		if errors.Is(err, failure.ErrCannot) {
			first := &p.list[slices.IndexFunc(p.list, func(x kube.Pod) bool { return x.Phase == "Running" })] // without one nobody was asked
			for _, text := range p.idle() {
				err = fmt.Errorf("%w; %s", err, text)
			}
			return doc, fmt.Errorf("%w\nwithin a pod it answers: %s; or start the job with NCCL_RAS_ADDR=0.0.0.0:%s", err, p.within(first), rasPort(first))
		}
		return doc, err
	}
	doc.Pods = p.list
	doc.Notes = append(doc.Notes, p.idle()...)
	return doc, nil
}
