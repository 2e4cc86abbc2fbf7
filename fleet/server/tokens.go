package server

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"busbar.dev/fleet/client"
	"busbar.dev/internal/failure"
	"busbar.dev/internal/outfile"
	"busbar.dev/web"
)

// Tokens are those of the server of a folder.
func Tokens(f client.Folder) (*web.Tokens, error) {
	dir, err := f.Make()
	if err != nil {
		return nil, err
	}
	t, err := web.OpenTokens(filepath.Join(dir, "tokens.json"))
	if err != nil {
		return nil, failure.Cannot(err)
	}
	return t, nil
}

// firstToken is a token for whoever starts a server that nobody has a token of; else it is empty.
func firstToken(tokens *web.Tokens) (string, error) {
	list, err := tokens.List()
	if err != nil {
		return "", failure.Cannot(err)
	}
	if len(list) > 0 {
		return "", nil
	}
	secret, err := tokens.Add("first", web.Order)
	if err != nil {
		return "", failure.Cannot(err)
	}
	return secret, nil
}

// localToken lets programs of the server's own user in without further ado: it keeps a token in
// the server's folder, which nobody else can read.
func localToken(tokens *web.Tokens, dir string) error {
	const name = "local"
	file := filepath.Join(dir, client.TokenFile)
	list, err := tokens.List()
	if err != nil {
		return failure.Cannot(err)
	}
	there := slices.ContainsFunc(list, func(t web.Token) bool { return t.Name == name })
	old, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return failure.Cannot(err)
	}
	if there && len(strings.TrimSpace(string(old))) > 0 {
		return nil
	}
	if there {
		if err := tokens.Revoke(name); err != nil {
			return failure.Cannot(err)
		}
	}
	secret, err := tokens.Add(name, web.Order)
	if err != nil {
		return failure.Cannot(err)
	}
	return failure.Cannot(outfile.Private(file, []byte(secret+"\n")))
}
