package kube

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/internal/failure"
	"busbar.dev/internal/lazyre"
)

// Pod is what is kept of one.
type Pod struct {
	Name   string `json:"name"`
	Node   string `json:"node,omitempty"`
	IP     string `json:"ip,omitempty"`
	Phase  string `json:"phase"`            // Pending, Running, Succeeded, Failed, Unknown
	Reason string `json:"reason,omitempty"` // why it does not run, or how its last container ended
	RAS    string `json:"-"`                // NCCL_RAS_ADDR of its containers
}

// Limits on what one question takes.
const (
	pageSize = 500
	maxPods  = 1 << 17
	maxPage  = 256 << 20
	maxMade  = 1 << 20 // of what was sent and comes back: a review is asked for by anybody
	maxError = 1 << 16
)

// jobLabels carry a job's name, by who makes its pods; the first that any pod has counts.
var jobLabels = strings.Fields("batch.kubernetes.io/job-name job-name training.kubeflow.org/job-name " +
	"jobset.sigs.k8s.io/jobset-name trainer.kubeflow.org/trainjob-name leaderworkerset.sigs.k8s.io/name " +
	"volcano.sh/job-name ray.io/cluster")

var (
	dnsName  = lazyre.New(`^[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?$`)
	selector = lazyre.New(`^[-A-Za-z0-9_./=!,() ]+$`)
)

// Question is NAMESPACE/SELECTOR or NAMESPACE/JOB, the namespace left out where it is the context's.
type Question struct{ Namespace, Selector, Job string }

// Parse reads a question. What has no operator of a selector is a job's name.
func Parse(text string) (Question, error) {
	var q Question
	rest := text
	// A label's key may have a slash too: a namespace has no operator before it, and no dot.
	if ns, after, ok := strings.Cut(text, "/"); ok && dnsName.MatchString(ns) && !strings.Contains(ns, ".") {
		q.Namespace, rest = ns, after
	}
	switch {
	case strings.ContainsAny(rest, "=!( ,") && len(rest) < 1024 && selector.MatchString(rest):
		q.Selector = rest
	case dnsName.MatchString(rest):
		q.Job = rest
	default:
		return q, fmt.Errorf("--pods %s: expected NAMESPACE/SELECTOR, as in train/app=llama, or NAMESPACE/JOB", text)
	}
	return q, nil
}

// Command is what lists the same pods elsewhere.
func (q Question) Command() string {
	ns := ""
	if q.Namespace != "" {
		ns = " -n " + q.Namespace
	}
	return "kubectl get pods" + ns + " -l '" + cmp.Or(q.Selector, jobLabels[0]+"="+q.Job) + "' -o wide"
}

// Pods lists the pods that a question is about, by name.
func (c *Client) Pods(ctx context.Context, q Question) ([]Pod, error) {
	q.Namespace = cmp.Or(q.Namespace, c.Namespace)
	if q.Selector != "" {
		return c.list(ctx, q.Namespace, q.Selector)
	}
	for _, label := range jobLabels {
		pods, err := c.list(ctx, q.Namespace, label+"="+q.Job)
		if err != nil || len(pods) > 0 {
			return pods, err
		}
	}
	return nil, fmt.Errorf("namespace %s has no pods of a job %s: none of the labels %s has that value; give a "+
		"selector, as in %s/app=NAME", q.Namespace, q.Job, strings.Join(jobLabels, ", "), q.Namespace)
}

type podList struct {
	Metadata struct {
		Continue string `json:"continue"`
	} `json:"metadata"`
	Items []podItem `json:"items"`
}

type podItem struct {
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Node       string `json:"nodeName"`
		Containers []struct {
			Env []struct {
				Name  string `json:"name"`
				Value string `json:"value"`
			} `json:"env"`
		} `json:"containers"`
	} `json:"spec"`
	Status struct {
		Phase      string `json:"phase"`
		IP         string `json:"podIP"`
		Reason     string `json:"reason"`
		Conditions []struct {
			Type    string `json:"type"`
			Status  string `json:"status"`
			Reason  string `json:"reason"`
			Message string `json:"message"`
		} `json:"conditions"`
		Containers []struct {
			State struct {
				Waiting *struct {
					Reason  string `json:"reason"`
					Message string `json:"message"`
				} `json:"waiting"`
				Terminated *ended `json:"terminated"`
			} `json:"state"`
			Last struct {
				Terminated *ended `json:"terminated"`
			} `json:"lastState"`
		} `json:"containerStatuses"`
	} `json:"status"`
}

type ended struct {
	Reason string `json:"reason"`
	Code   int    `json:"exitCode"`
	Signal int    `json:"signal"`
}

func (e *ended) text() string {
	text := "exit code " + strconv.Itoa(e.Code)
	if e.Signal > 0 {
		text = "signal " + strconv.Itoa(e.Signal)
	}
	if e.Reason != "" {
		text = clip(e.Reason) + ", " + text
	}
	return text
}

func (c *Client) list(ctx context.Context, namespace, selector string) ([]Pod, error) {
	var pods []Pod
	next := ""
	for range maxPods/pageSize + 1 {
		v := url.Values{"labelSelector": {selector}, "limit": {strconv.Itoa(pageSize)}}
		if next != "" {
			v.Set("continue", next)
		}
		var page podList
		if err := c.get(ctx, "/api/v1/namespaces/"+url.PathEscape(namespace)+"/pods", v, &page); err != nil {
			var s *status
			if errors.As(err, &s) && s.code == http.StatusGone && next != "" {
				pods, next = nil, "" // the list grew old between two pages: from the beginning
				continue
			}
			return nil, explain(err, namespace)
		}
		for i := range page.Items {
			pods = append(pods, page.Items[i].pod())
		}
		if len(pods) > maxPods {
			return nil, fmt.Errorf("more than %d pods; give a narrower selector", maxPods)
		}
		if next = page.Metadata.Continue; next == "" {
			slices.SortFunc(pods, func(a, b Pod) int { return strings.Compare(a.Name, b.Name) })
			return pods, nil
		}
	}
	return nil, failure.Cannot(errors.New("the list of pods has no end"))
}

func (p *podItem) pod() Pod {
	out := Pod{
		Name: clip(p.Metadata.Name), Node: clip(p.Spec.Node), IP: clip(p.Status.IP), Phase: clip(p.Status.Phase),
		Reason: clip(p.Status.Reason),
	}
	for i := range p.Spec.Containers {
		for _, e := range p.Spec.Containers[i].Env {
			if e.Name == "NCCL_RAS_ADDR" && e.Value != "" {
				out.RAS = clip(e.Value)
			}
		}
	}
	for i := range p.Status.Containers {
		s := &p.Status.Containers[i]
		switch {
		case s.State.Terminated != nil && s.State.Terminated.Code != 0:
			out.Reason = s.State.Terminated.text()
		case s.State.Waiting != nil && out.Reason == "":
			out.Reason = clip(s.State.Waiting.Reason)
		case s.Last.Terminated != nil && out.Reason == "":
			out.Reason = "restarted after " + s.Last.Terminated.text()
		}
	}
	for _, x := range p.Status.Conditions {
		if x.Type == "PodScheduled" && x.Status == "False" && out.Reason == "" {
			out.Reason = clip(x.Reason + ": " + x.Message)
		}
	}
	return out
}

// clip bounds what a server says.
func clip(s string) string { return strings.ToValidUTF8(s[:min(len(s), 512)], "?") }

// status is an answer that is none.
type status struct {
	code    int
	message string
}

func (s *status) Error() string {
	text := fmt.Sprintf("the API server answers %d %s", s.code, http.StatusText(s.code))
	if s.message != "" {
		text += ": " + s.message
	}
	return text
}

// explain says what to do about an answer that is none.
func explain(err error, namespace string) error {
	var s *status
	if errors.As(err, &s) {
		switch s.code {
		case http.StatusUnauthorized:
			return failure.Cannot(fmt.Errorf("%w; the credentials are not or no longer valid", err))
		case http.StatusForbidden:
			return failure.Cannot(fmt.Errorf("%w; the account needs the right to list pods: kubectl create rolebinding "+
				"busbar-pods -n %s --clusterrole=view --serviceaccount=NAMESPACE:ACCOUNT", err, namespace))
		case http.StatusNotFound:
			return failure.Cannot(fmt.Errorf("%w; is this the address of a Kubernetes API server?", err))
		case http.StatusBadRequest:
			return err
		}
	}
	return failure.Cannot(err)
}

func (c *Client) get(ctx context.Context, path string, v url.Values, to any) error {
	return c.do(ctx, http.MethodGet, path, v, "", nil, to)
}

// do asks the API server. What is sent is JSON of a kind.
func (c *Client) do(ctx context.Context, method, path string, v url.Values, kind string, in, to any) error {
	u := *c.base
	u.Path = strings.TrimSuffix(u.Path, "/") + path
	u.RawQuery = v.Encode()
	var body io.Reader
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(data)
	}
	r, err := http.NewRequestWithContext(ctx, method, u.String(), body)
	if err != nil {
		return err
	}
	r.Header.Set("Accept", "application/json")
	if in != nil {
		r.Header.Set("Content-Type", kind)
	}
	if c.token != nil {
		token, err := c.token()
		if err != nil {
			return err
		}
		r.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := c.http.Do(r)
	if err != nil {
		return fmt.Errorf("the API server at %s: %w", c.base.Host, errors.Unwrap(err))
	}
	defer res.Body.Close()
	if res.StatusCode/100 != 2 {
		data, _ := io.ReadAll(io.LimitReader(res.Body, maxError))
		var s struct {
			Message string `json:"message"`
		}
		_ = json.Unmarshal(data, &s) // a proxy in between answers in its own words
		return &status{res.StatusCode, clip(s.Message)}
	}
	limit := int64(maxPage)
	if method == http.MethodPost {
		limit = maxMade
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, limit)).Decode(to); err != nil {
		return fmt.Errorf("the API server at %s: an answer that is not what was asked for: %w", c.base.Host, err)
	}
	return nil
}
