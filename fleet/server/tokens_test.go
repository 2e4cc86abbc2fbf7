package server

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"busbar.dev/fleet/client"
	"busbar.dev/web"
)

// TestFirstToken has a server started again and again: the address that nobody used is replaced, and there is none once
// somebody has a token. Tokens that earlier versions printed or kept for commands are gone.
func TestFirstToken(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, `{"name": "first", "role": "order", "sha256": "aa"}, {"name": "local", "role": "order", "sha256": "bb"}`)
	tokens, err := Tokens(client.Folder{Data: dir})
	if err != nil {
		t.Fatal(err)
	}
	start := func() string {
		t.Helper()
		secret, err := firstToken(tokens)
		if err != nil {
			t.Fatal(err)
		}
		return secret
	}
	one, two := start(), start()
	if one == "" || two == "" || one == two {
		t.Errorf("nobody logged in: %q, then %q; want two tokens", one, two)
	}
	if _, err := tokens.Add("alice", web.Read); err != nil {
		t.Fatal(err)
	}
	if three := start(); three != "" {
		t.Error("alice has a token, and another is printed")
	}
	list, err := tokens.List()
	if err != nil || len(list) != 1 || list[0].Name != "alice" {
		t.Errorf("%+v, %v; want alice", list, err)
	}
	// One that opened its session stays for it.
	dir = t.TempDir()
	write(t, dir, `{"name": "first", "role": "order", "sha256": "aa", "spent": true}`)
	if tokens, err = Tokens(client.Folder{Data: dir}); err != nil || start() != "" {
		t.Errorf("%v; a session is open, and another address is printed", err)
	}
	if list, _ := tokens.List(); !slices.ContainsFunc(list, func(x web.Token) bool { return x.Spent }) {
		t.Error("the session has ended")
	}
}

// write makes a file of tokens.
func write(t *testing.T, dir, list string) {
	t.Helper()
	text := `{"version": 1, "session_key": "` + strings.Repeat("ab", 32) + `", "tokens": [` + list + `]}`
	if err := os.WriteFile(filepath.Join(dir, "tokens.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
