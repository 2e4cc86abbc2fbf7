package server

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"busbar.dev/fleet"
	"busbar.dev/fleet/bus"
	"busbar.dev/fleet/client"
	"busbar.dev/internal/failure"
)

// Credentials is how credentials for a bus are made: with the keys of a folder's server, or with those of an account of
// somebody's own NATS cluster.
type Credentials struct {
	Expires    string `placeholder:"TIME" help:"Expiry, such as 365d (default: never)."`
	AccountKey string `name:"account-key" placeholder:"FILE" help:"With an existing NATS cluster: seed of the account key or of one of its signing keys."`
	NATSCreds  string `name:"nats-creds" placeholder:"FILE" help:"Credentials of that account."`
}

// Issue makes those with which a node's agent joins; without a name, those with which a further server uses the bus.
func (c Credentials) Issue(f client.Folder, node fleet.Name) ([]byte, bus.Issued, error) {
	expiry, err := lasts("--expires", c.Expires, 1)
	if err != nil {
		return nil, bus.Issued{}, err
	}
	i, keys, err := c.issuer(f)
	if err != nil {
		return nil, bus.Issued{}, err
	}
	var creds []byte
	var issued bus.Issued
	switch {
	case node == "":
		creds, issued, err = i.Hub(expiry)
	case keys != nil:
		creds, issued, err = keys.Issue(node, expiry) // which a running server takes at once
	default:
		creds, issued, err = i.Node(node, expiry)
	}
	return creds, issued, failure.Cannot(err)
}

// Revoke withdraws all credentials of a node.
func (c Credentials) Revoke(f client.Folder, node fleet.Name) ([]bus.Issued, error) {
	_, keys, err := c.issuer(f)
	if err != nil {
		return nil, err
	}
	if keys == nil {
		return nil, errors.New("--revoke: credentials of your own NATS cluster are revoked with its own tools (nsc " +
			"revocations add-user)")
	}
	return keys.Revoke(node)
}

// issuer signs for an account of somebody's own cluster, or with the keys of our own server, which
// are nil in the first case.
func (c *Credentials) issuer(f client.Folder) (*bus.Issuer, *bus.Keys, error) {
	if (c.AccountKey == "") != (c.NATSCreds == "") {
		return nil, nil, errors.New("--account-key and --nats-creds: expected both or neither")
	}
	if c.AccountKey != "" {
		seed, err1 := os.ReadFile(c.AccountKey)
		some, err2 := os.ReadFile(c.NATSCreds)
		if err := errors.Join(err1, err2); err != nil {
			return nil, nil, failure.Cannot(err)
		}
		i, err := bus.NewIssuer(seed, some)
		if err != nil {
			err = fmt.Errorf("--account-key %s, --nats-creds %s: %w; expected the seed of an account's key, and credentials of "+
				"the account", c.AccountKey, c.NATSCreds, err)
		}
		return i, nil, err
	}
	dir, err := f.Make()
	if err != nil {
		return nil, nil, err
	}
	keys, err := bus.OpenKeys(filepath.Join(dir, "bus", "keys"))
	if err != nil {
		return nil, nil, failure.Cannot(err)
	}
	return keys.Issuer(), keys, nil
}
