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
	"maps"
	"net/http"
	"sync"
	"time"

	"busbar.dev/finding"
)

// Signature is the header with the HMAC-SHA256 of a webhook's body, in hexadecimal behind "sha256=".
const Signature = "X-Busbar-Signature"

// Pauses after a pass in which a webhook did not take something, each twice the one before.
const (
	firstPause = time.Second
	mostPause  = 5 * time.Minute
)

// alertAgain is for how long it is sent that a finding is over: to a webhook that was down, and after a restart.
const alertAgain = time.Hour

// hookClient follows no redirect, which would send the findings where nobody said.
var hookClient = &http.Client{
	Timeout:       10 * time.Second,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// Alert is what a webhook gets: a finding that holds, or is over. The key is the same
// however often it is sent.
type Alert struct {
	Key     string          `json:"key"`
	Event   string          `json:"event"` // raised or cleared
	Finding finding.Finding `json:"finding"`
	Text    string          `json:"text"` // one line, for chats that show it
}

// alert sends findings to every webhook. Each is served by itself: one that is down holds up no other.
func (h *Hub) alert(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	for _, url := range h.cfg.Webhooks {
		wg.Go(func() { h.alertOne(ctx, url) })
	}
}

// alerted is the state of findings, such as what one webhook knows. That is kept in memory only: after a restart, what
// holds is sent again with the same key.
type alerted map[string]finding.Finding

// lacks tells whether a webhook needs to get the state of a finding: that it holds, that it got worse, or that it is
// over, where it knows of it or may know of it from before.
func (a alerted) lacks(f finding.Finding, began time.Time) bool {
	old, known := a[f.ID]
	switch {
	case f.Cleared.IsZero():
		return !known || !old.Cleared.IsZero() || f.Severity > old.Severity
	case known:
		return old.Cleared.IsZero()
	}
	return f.Cleared.Before(began)
}

// alertOne sends one webhook what it lacks. What it does not take is tried again after longer and longer pauses.
func (h *Hub) alertOne(ctx context.Context, url string) {
	knows, began, pause := alerted{}, h.cfg.Now(), firstPause
	for ctx.Err() == nil {
		changed := h.change()
		var failed error
		for _, f := range h.alerts() {
			if !knows.lacks(f, began) {
				continue
			}
			if err := h.send(ctx, url, alertOf(f)); err != nil {
				h.counts.refused.Add(1)
				failed = fmt.Errorf("finding %s: a webhook did not accept it and is tried again after %v: %w", f.ID, pause, err)
				continue
			}
			h.counts.alerted.Add(1)
			knows[f.ID] = f
		}
		maps.DeleteFunc(knows, h.overLong)
		if failed != nil {
			h.cfg.Warn(failed)
			h.sleep(ctx, pause)
			pause = min(2*pause, mostPause)
			continue
		}
		pause = firstPause
		select {
		case <-ctx.Done():
		case <-changed:
		}
	}
}

// alerts are the last state of each finding that holds, or ended not long ago.
func (h *Hub) alerts() alerted {
	last := alerted{}
	for _, f := range append(h.view.Past(), h.view.Findings()...) {
		last[f.ID] = f
	}
	maps.DeleteFunc(last, h.overLong)
	return last
}

func (h *Hub) overLong(_ string, f finding.Finding) bool {
	return !f.Cleared.IsZero() && h.cfg.Now().Sub(f.Cleared) > alertAgain
}

func alertOf(f finding.Finding) Alert {
	a := Alert{Event: "raised", Finding: f, Text: fmt.Sprintf("%s: %s", f.Severity, f.Text)}
	at := f.Since
	if !f.Cleared.IsZero() {
		a.Event, a.Text, at = "cleared", "no longer: "+f.Text, f.Cleared
	}
	a.Key = fmt.Sprintf("%s/%s/%s/%d", f.ID, a.Event, f.Severity, at.Unix())
	return a
}

// send posts an alert once.
func (h *Hub) send(ctx context.Context, url string, a Alert) error {
	body, err := json.Marshal(a)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "busbar")
	r.Header.Set("Idempotency-Key", a.Key)
	if len(h.cfg.Secret) > 0 {
		m := hmac.New(sha256.New, h.cfg.Secret)
		m.Write(body)
		r.Header.Set(Signature, "sha256="+hex.EncodeToString(m.Sum(nil)))
	}
	resp, err := hookClient.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // so that the connection can be used again
	if resp.StatusCode >= 300 {
		return fmt.Errorf("it answers %s; expected 2xx", resp.Status)
	}
	return nil
}
