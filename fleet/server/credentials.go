package server

import (
	"path/filepath"

	"busbar.dev/fleet"
	"busbar.dev/fleet/bus"
	"busbar.dev/fleet/client"
	"busbar.dev/internal/failure"
)

// Credentials is how nodes' credentials are made, with the keys of a folder's server.
type Credentials struct {
	Expires string `placeholder:"TIME" help:"Expiry, such as 365d (default: never)."`
}

// Node makes those with which a node's agent joins. A running server takes them at once.
func (c Credentials) Node(f client.Folder, name fleet.Name) ([]byte, bus.Issued, error) {
	expiry, err := lasts("--expires", c.Expires, 1)
	if err != nil {
		return nil, bus.Issued{}, err
	}
	keys, err := busKeys(f)
	if err != nil {
		return nil, bus.Issued{}, err
	}
	creds, issued, err := keys.Issue(name, expiry)
	return creds, issued, failure.Cannot(err)
}

// Revoke withdraws all credentials of a node.
func (c Credentials) Revoke(f client.Folder, name fleet.Name) ([]bus.Issued, error) {
	keys, err := busKeys(f)
	if err != nil {
		return nil, err
	}
	return keys.Revoke(name)
}

// busKeys are those of the folder's server.
func busKeys(f client.Folder) (*bus.Keys, error) {
	dir, err := f.Make()
	if err != nil {
		return nil, err
	}
	keys, err := bus.OpenKeys(filepath.Join(dir, "bus", "keys"))
	return keys, failure.Cannot(err)
}
