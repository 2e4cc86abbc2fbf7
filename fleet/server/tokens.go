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

// localName is the token of the commands of the server's own user.
const localName = "local"

// firstToken opens one session for whoever starts a server that nobody else has a token of; else it is empty. One that
// an earlier start printed and nobody used is no longer valid.
func firstToken(tokens *web.Tokens) (string, error) {
	list, err := tokens.List()
	if err != nil {
		return "", failure.Cannot(err)
	}
	others := false
	for _, t := range list {
		if t.Once {
			if err := tokens.Revoke(t.Name); err != nil {
				return "", failure.Cannot(err)
			}
		}
		others = others || !t.Once && t.Name != localName
	}
	if others {
		return "", nil
	}
	secret, err := tokens.AddOnce("first", web.Order)
	return secret, failure.Cannot(err)
}

// localToken lets programs of the server's own user in without further ado: it keeps a token in
// the server's folder, which nobody else can read.
func localToken(tokens *web.Tokens, dir string) error {
	file := filepath.Join(dir, client.TokenFile)
	list, err := tokens.List()
	if err != nil {
		return failure.Cannot(err)
	}
	there := slices.ContainsFunc(list, func(t web.Token) bool { return t.Name == localName })
	old, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return failure.Cannot(err)
	}
	if there && len(strings.TrimSpace(string(old))) > 0 {
		return nil
	}
	if there {
		if err := tokens.Revoke(localName); err != nil {
			return failure.Cannot(err)
		}
	}
	secret, err := tokens.Add(localName, web.Order)
	if err != nil {
		return failure.Cannot(err)
	}
	return failure.Cannot(outfile.Private(file, []byte(secret+"\n")))
}
