package server

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"busbar.dev/fleet"
	"busbar.dev/fleet/bus"
	"busbar.dev/fleet/client"
	"busbar.dev/internal/failure"
	"busbar.dev/unit"
)

// Credentials is how credentials for a bus are made: with the keys of a folder's server, or with those of an account of
// somebody's own NATS cluster.
type Credentials struct {
	Expires    string `placeholder:"TIME" help:"Expiry, such as 365d (default: never)."`
	AccountKey string `name:"account-key" placeholder:"FILE" help:"With an existing NATS cluster: seed of the account key or of one of its signing keys."`
	NATSCreds  string `name:"nats-creds" placeholder:"FILE" help:"Credentials of that account."`
}

// Hub makes those with which a further server uses the bus.
func (c Credentials) Hub(f client.Folder) ([]byte, bus.Issued, error) {
	lasts, err := c.lasts()
	if err != nil {
		return nil, bus.Issued{}, err
	}
	i, _, err := c.issuer(f)
	if err != nil {
		return nil, bus.Issued{}, err
	}
	creds, issued, err := i.Hub(lasts)
	return creds, issued, failure.Cannot(err)
}

// Node makes those with which a node's agent joins.
func (c Credentials) Node(f client.Folder, name fleet.Name) ([]byte, bus.Issued, error) {
	lasts, err := c.lasts()
	if err != nil {
		return nil, bus.Issued{}, err
	}
	i, keys, err := c.issuer(f)
	if err != nil {
		return nil, bus.Issued{}, err
	}
	issue := i.Node
	if keys != nil {
		issue = keys.Issue // which a running server takes at once
	}
	creds, issued, err := issue(name, lasts)
	return creds, issued, failure.Cannot(err)
}

// Revoke withdraws all credentials of a node.
func (c Credentials) Revoke(f client.Folder, name fleet.Name) ([]bus.Issued, error) {
	if _, err := c.lasts(); err != nil {
		return nil, err
	}
	_, keys, err := c.issuer(f)
	if err != nil {
		return nil, err
	}
	if keys == nil {
		return nil, errors.New("--revoke: credentials of your own NATS cluster are revoked with its own tools (nsc " +
			"revocations add-user)")
	}
	return keys.Revoke(name)
}

func (c *Credentials) lasts() (time.Duration, error) {
	if c.Expires == "" {
		return 0, nil
	}
	span, err := unit.ParseSpan(c.Expires)
	if err != nil || span <= 0 || span > 100*unit.Year {
		return 0, fmt.Errorf("--expires %s: expected a time such as 365d", c.Expires)
	}
	return time.Duration(span.Seconds() * float64(time.Second)), nil
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
