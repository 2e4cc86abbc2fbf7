package hub

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"busbar.dev/finding"
)

// Signature is the header with the HMAC-SHA256 of a webhook's body, in hexadecimal behind "sha256=".
const Signature = "X-Busbar-Signature"

// hook is somebody who is told of findings. Each is told by itself: one that is down holds up no other.
type hook struct {
	url    string
	mark   string // its name in the stream
	secret []byte
	client *http.Client
	waits  []time.Duration // between attempts
	down   bool            // it took nothing the last time, however often it was tried
}

// Alert is what a webhook gets: a finding that holds, or is over. The key is the same
// however often it is sent.
type Alert struct {
	Key     string          `json:"key"`
	Event   string          `json:"event"` // raised or cleared
	Finding finding.Finding `json:"finding"`
	Text    string          `json:"text"` // one line, for chats that show it
}

func newHooks(urls []string, secret []byte) (list []*hook) {
	// A redirect would send the findings where nobody said.
	client := &http.Client{
		Timeout:       10 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	for _, u := range urls {
		sum := sha256.Sum256([]byte(u))
		k := &hook{url: u, mark: hex.EncodeToString(sum[:8]), secret: secret, client: client}
		k.waits = []time.Duration{time.Second, 4 * time.Second, 15 * time.Second, time.Minute, 5 * time.Minute}
		if !slices.ContainsFunc(list, func(o *hook) bool { return o.mark == k.mark }) {
			list = append(list, k)
		}
	}
	return list
}

// alert tells every webhook of findings that it was not told of, and notes in the stream that it did:
// what was told is not told again after a restart.
func (h *Hub) alert(ctx context.Context) {
	for _, f := range h.view.Findings() { // what only waited for webhooks that are no longer there
		if !f.Alerted && !f.Cleared.IsZero() && h.note(ctx, f, "") != nil {
			return
		}
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	for _, k := range h.hooks {
		wg.Go(func() { h.alertOne(ctx, k) })
	}
}

// alertOne tells one webhook, one finding after the other. What it does not take is left for
// the next restart, change, or time that it takes something; those behind it are not held up for ever.
func (h *Hub) alertOne(ctx context.Context, k *hook) {
	given := map[string]bool{} // that were given up
	for ctx.Err() == nil {
		h.mu.Lock()
		changed := h.changed
		h.mu.Unlock()
		worked := false
		for _, f := range h.view.Findings() {
			a := alertOf(f)
			if f.Alerted || slices.Contains(f.AlertedTo, k.mark) || given[a.Key] || ctx.Err() != nil {
				continue
			}
			worked = true
			err := k.send(ctx, a)
			switch {
			case ctx.Err() != nil:
				return
			case err == nil:
				h.counts.alerted.Add(1)
				clear(given) // it works again
			default:
				h.counts.refused.Add(1)
				h.cfg.Warn(fmt.Errorf("finding %s: a webhook rejected it: %w", f.ID, err))
				if f.Cleared.IsZero() {
					if len(given) >= maxFindings {
						clear(given)
					}
					given[a.Key] = true
					continue
				}
				// That something is over is not kept for somebody who does not listen.
			}
			if h.note(ctx, f, k.mark) != nil {
				return
			}
		}
		if worked {
			continue
		}
		select {
		case <-ctx.Done():
		case <-changed:
		}
	}
}

// note keeps that a webhook knows the state of a finding. It is not kept where the finding has changed since:
// then the webhook is told again. It ends with the context only.
func (h *Hub) note(ctx context.Context, sent finding.Finding, mark string) error {
	h.finds.Lock()
	defer h.finds.Unlock()
	f, ok := h.view.Finding(sent.ID)
	if !ok || f.Alerted || alertOf(f).Key != alertOf(sent).Key {
		return nil
	}
	if mark != "" {
		f.AlertedTo = append(slices.Clone(f.AlertedTo), mark)
	}
	if f.Alerted = h.alertedAll(f.AlertedTo); f.Alerted {
		f.AlertedTo = nil
	} else if mark == "" {
		return nil
	}
	return h.publishFinding(ctx, &f, func() bool {
		old, ok := h.view.Finding(f.ID)
		return !ok || old.Alerted || slices.Contains(old.AlertedTo, mark)
	})
}

// alertedAll reports whether no webhook is left that would have to be told.
func (h *Hub) alertedAll(marks []string) bool {
	return !slices.ContainsFunc(h.hooks, func(k *hook) bool { return !slices.Contains(marks, k.mark) })
}

// notAlerted are the webhooks that were not told of a finding, and need not hear that it is over.
func (h *Hub) notAlerted(f finding.Finding) (marks []string) {
	for _, k := range h.hooks {
		if !f.Alerted && !slices.Contains(f.AlertedTo, k.mark) {
			marks = append(marks, k.mark)
		}
	}
	return marks
}

func alertOf(f finding.Finding) Alert {
	f.Alerted, f.AlertedTo = false, nil // so that what is sent again is the same
	a := Alert{Event: "raised", Finding: f, Text: fmt.Sprintf("%s: %s", f.Severity, f.Text)}
	at := f.Since
	if !f.Cleared.IsZero() {
		a.Event, a.Text, at = "cleared", "no longer: "+f.Text, f.Cleared
	}
	a.Key = fmt.Sprintf("%s/%s/%s/%d", f.ID, a.Event, f.Severity, at.Unix())
	return a
}

// send tells the webhook, with patience.
func (k *hook) send(ctx context.Context, a Alert) error {
	body, err := json.Marshal(a)
	if err != nil {
		return err
	}
	for i := 0; ; i++ {
		final, err := k.post(ctx, a.Key, body)
		// One that is down holds up what comes next only once.
		if err == nil || final || k.down || i >= len(k.waits) {
			k.down = err != nil
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(k.waits[i]):
		}
	}
}

// post sends once. final tells that trying again is no use.
func (k *hook) post(ctx context.Context, key string, body []byte) (final bool, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, k.url, bytes.NewReader(body))
	if err != nil {
		return true, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "busbar")
	r.Header.Set("Idempotency-Key", key)
	if len(k.secret) > 0 {
		m := hmac.New(sha256.New, k.secret)
		m.Write(body)
		r.Header.Set(Signature, "sha256="+hex.EncodeToString(m.Sum(nil)))
	}
	resp, err := k.client.Do(r)
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // so that the connection can be used again
	switch {
	case resp.StatusCode < 300:
		return false, nil
	case resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests ||
		resp.StatusCode == http.StatusRequestTimeout:
		return false, fmt.Errorf("%s answers %s", k.url, resp.Status)
	}
	return true, fmt.Errorf("%s answers %s", k.url, resp.Status)
}
