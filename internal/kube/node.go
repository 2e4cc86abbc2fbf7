package kube

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// ErrRefused is what errors are about a token that is not taken; others are of the API server.
var ErrRefused = errors.New("the token is refused")

// Keys of what a review says of a pod-bound token (Kubernetes 1.32: ServiceAccountTokenPodNodeInfo).
const (
	podKey  = "authentication.kubernetes.io/pod-name"
	nodeKey = "authentication.kubernetes.io/node-name"
)

// object is one of JSON.
type object = map[string]any

// NodeOfToken is the node that a pod runs on, by its token. The API server vouches for it: for the token, that its pod
// is still there, and for the node. Tokens for others, of other accounts or of no pod are refused. account is
// NAMESPACE/NAME.
func (c *Client) NodeOfToken(ctx context.Context, token, audience, account string) (string, error) {
	if len(token) > maxToken || strings.Count(token, ".") != 2 || strings.ContainsFunc(token, notOfToken) {
		return "", fmt.Errorf("%w: it is no JSON Web Token", ErrRefused)
	}
	var got struct {
		Status struct {
			Authenticated bool     `json:"authenticated"`
			Audiences     []string `json:"audiences"`
			Error         string   `json:"error"`
			User          struct {
				Name  string              `json:"username"`
				Extra map[string][]string `json:"extra"`
			} `json:"user"`
		} `json:"status"`
	}
	err := c.do(ctx, http.MethodPost, "/apis/authentication.k8s.io/v1/tokenreviews", nil, "application/json", object{
		"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
		"spec": object{"token": token, "audiences": []string{audience}},
	}, &got)
	if err != nil {
		return "", err
	}
	x := &got.Status
	namespace, name, _ := strings.Cut(account, "/")
	pod, node := x.User.Extra[podKey], x.User.Extra[nodeKey]
	switch want := "system:serviceaccount:" + namespace + ":" + name; {
	case !x.Authenticated || x.Error != "":
		return "", fmt.Errorf("%w: the API server does not know it: %q", ErrRefused, clip(x.Error))
	case !slices.Contains(x.Audiences, audience): // a server that knows no audiences answers for its own
		return "", fmt.Errorf("%w: it is for %q; expected the audience %s", ErrRefused, clip(strings.Join(x.Audiences, ",")),
			audience)
	case x.User.Name != want:
		return "", fmt.Errorf("%w: it is that of %q; expected %s", ErrRefused, clip(x.User.Name), want)
	case len(pod) != 1 || len(node) != 1 || pod[0] == "" || node[0] == "":
		return "", fmt.Errorf("%w: it names no pod and its node; expected a projected token, and Kubernetes 1.32 or later",
			ErrRefused)
	}
	return node[0], nil
}

// notOfToken tells a character that base64url and dots have not.
func notOfToken(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_' && r != '.'
}

// Condition is one of a node's.
type Condition struct {
	Type    string    `json:"type"`
	Status  string    `json:"status"` // True, False, Unknown
	Reason  string    `json:"reason"`
	Message string    `json:"message"`
	Seen    time.Time `json:"lastHeartbeatTime"`
	Changed time.Time `json:"lastTransitionTime,omitzero"` // zero leaves what is there
}

// Node is what is read of one.
type Node struct {
	Metadata struct {
		UID string `json:"uid"`
	} `json:"metadata"`
	Status struct {
		Conditions []Condition `json:"conditions"`
	} `json:"status"`
}

// Node reads a node; nil where there is none of the name.
func (c *Client) Node(ctx context.Context, name string) (*Node, error) {
	var n Node
	err := c.get(ctx, "/api/v1/nodes/"+url.PathEscape(name), nil, &n)
	var s *status
	if errors.As(err, &s) && s.code == http.StatusNotFound {
		return nil, nil
	}
	return &n, err
}

// SetCondition sets one condition of a node and nothing else of it.
func (c *Client) SetCondition(ctx context.Context, node string, x Condition) error {
	return c.do(ctx, http.MethodPatch, "/api/v1/nodes/"+url.PathEscape(node)+"/status", nil,
		"application/strategic-merge-patch+json", object{"status": object{"conditions": []Condition{x}}}, &struct{}{})
}

// Event says of a node what a condition says, where kubectl describe node shows it.
func (c *Client) Event(ctx context.Context, node, uid string, x Condition) error {
	kind := "Normal"
	if x.Status == "False" {
		kind = "Warning"
	}
	const space = "default" // of events about what has none
	return c.do(ctx, http.MethodPost, "/api/v1/namespaces/"+space+"/events", nil, "application/json", object{
		"apiVersion": "v1", "kind": "Event", "metadata": object{"generateName": node + ".", "namespace": space},
		"involvedObject": object{"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid},
		"type":           kind, "reason": x.Reason, "message": x.Message, "count": 1, "firstTimestamp": x.Seen,
		"lastTimestamp": x.Seen, "source": object{"component": "busbar"}, "reportingComponent": "busbar",
	}, &struct{}{})
}
