package hub

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"busbar/fleet"
)

// Signature is the header with the HMAC-SHA256 of a webhook's body, in hexadecimal behind "sha256=".
const Signature = "X-Busbar-Signature"

// hooks tell others of findings.
type hooks struct {
	urls   []string
	secret []byte
	client *http.Client
	waits  []time.Duration // between attempts
	down   map[string]bool // those that took nothing the last time, however often it was tried
}

// Alert is what a webhook gets: a finding that holds, or is over. The key is the same
// however often it is sent.
type Alert struct {
	Key     string        `json:"key"`
	Event   string        `json:"event"` // raised or cleared
	Finding fleet.Finding `json:"finding"`
	Text    string        `json:"text"` // one line, for chats that show it
}

func newHooks(urls []string, secret []byte) *hooks {
	return &hooks{
		urls: urls, secret: secret, down: map[string]bool{},
		// A redirect would send the findings where nobody said.
		client: &http.Client{Timeout: 10 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
		waits:  []time.Duration{time.Second, 4 * time.Second, 15 * time.Second, time.Minute, 5 * time.Minute},
	}
}

// alert tells of findings that nobody was told of, one after the other, and notes in the stream
// that it did: what was told is not told again after a restart. A finding that cannot be
// delivered is left for the next restart or change; those behind it are not held up for ever.
func (h *Hub) alert(ctx context.Context) {
	if len(h.cfg.Webhooks) == 0 {
		return
	}
	given := map[string]bool{} // that were given up
	for ctx.Err() == nil {
		h.mu.Lock()
		changed := h.changed
		h.mu.Unlock()
		worked := false
		for _, f := range h.view.Findings() {
			a := alertOf(f)
			if f.Told || given[a.Key] || ctx.Err() != nil {
				continue
			}
			worked = true
			if err := h.hooks.send(ctx, a); err != nil {
				given[a.Key] = true
				h.counts.untold.Add(1)
				h.cfg.Warn(fmt.Errorf("finding %s: no webhook takes it: %w", f.ID, err))
				continue
			}
			h.counts.told.Add(1)
			clear(given) // it works again
			f.Told = true
			_ = h.sayFinding(ctx, &f, func() bool { old, ok := h.view.Finding(f.ID); return !ok || old.Told }) // ends with the context only
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

func alertOf(f fleet.Finding) Alert {
	a := Alert{Event: "raised", Finding: f, Text: fmt.Sprintf("%s: %s", f.Severity, f.Text)}
	at := f.Since
	if !f.Cleared.IsZero() {
		a.Event, a.Text, at = "cleared", "no longer: "+f.Text, f.Cleared
	}
	a.Key = fmt.Sprintf("%s/%s/%s/%d", f.ID, a.Event, f.Severity, at.Unix())
	return a
}

// send tells all webhooks; nil when all have taken it.
func (k *hooks) send(ctx context.Context, a Alert) error {
	body, err := json.Marshal(a)
	if err != nil {
		return err
	}
	var failed error
	for _, url := range k.urls {
		failed = errors.Join(failed, k.deliver(ctx, url, a.Key, body))
	}
	return failed
}

// deliver tells one webhook, with patience.
func (k *hooks) deliver(ctx context.Context, url, key string, body []byte) error {
	for i := 0; ; i++ {
		final, err := k.post(ctx, url, key, body)
		// One that is down holds up what comes next only once.
		if err == nil || final || k.down[url] || i >= len(k.waits) {
			k.down[url] = err != nil
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
func (k *hooks) post(ctx context.Context, url, key string, body []byte) (final bool, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
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
	case resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusRequestTimeout:
		return false, fmt.Errorf("%s answers %s", url, resp.Status)
	}
	return true, fmt.Errorf("%s answers %s", url, resp.Status)
}
