package server

import (
	"path/filepath"

	"busbar.dev/fleet/client"
	"busbar.dev/internal/failure"
	"busbar.dev/web"
)

// Tokens are those of the server of a folder.
func Tokens(f client.Folder) (*web.Tokens, error) {
	dir, err := f.Make()
	if err != nil {
		return nil, err
	}
	t, err := web.OpenTokens(filepath.Join(dir, "tokens.json"))
	return t, failure.Cannot(err)
}

// Tokens that a server makes for itself.
const (
	firstName = "first" // of the address that it prints
	localName = "local" // of its user's commands, in versions that had one for them
)

// firstToken opens one session for whoever starts a server that nobody else has a token of; else it is empty. What an
// earlier start printed is no longer valid: only a token that opened its session stays, for that session.
func firstToken(tokens *web.Tokens) (string, error) {
	list, err := tokens.List()
	if err != nil {
		return "", err
	}
	others := false
	for _, t := range list {
		if !t.Spent && (t.Once || t.Name == firstName || t.Name == localName) {
			if err := tokens.Revoke(t.Name); err != nil {
				return "", err
			}
			continue
		}
		others = true
	}
	if others {
		return "", nil
	}
	return tokens.AddOnce(firstName, web.Order)
}
