package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"busbar/fleet"
	"busbar/fleet/bus"
	"busbar/unit"
)

type tokenNodeCmd struct {
	common
	serveFlags
	Name       string `arg:"" help:"The node's name; its agent speaks under this name and no other."`
	Output     string `short:"o" placeholder:"FILE" help:"Where the credentials go, for the owner's eyes; - or nothing for standard output."`
	Expires    string `placeholder:"TIME" help:"After how long they stop to count, such as 365d; without it never."`
	Revoke     bool   `help:"Withdraw all credentials of the node instead."`
	AccountKey string `name:"account-key" placeholder:"FILE" help:"With a NATS cluster of yours: the seed of the account's key or of one of its signing keys."`
	NATSCreds  string `name:"nats-creds" placeholder:"FILE" help:"And any credentials of that account."`
}

// Help ends with an example.
func (tokenNodeCmd) Help() string {
	return "Credentials let an agent publish under its own name, answer what it is asked, and nothing else. A running server takes them at once, and lets go of those that are withdrawn within seconds.\n\n" +
		"Examples:\n" +
		"  busbar serve token node gpu01 -o gpu01.creds\n" +
		"  busbar serve token node gpu01 --revoke\n" +
		"  busbar serve token node gpu01 --account-key account.nk --nats-creds hub.creds > gpu01.creds"
}

// Run issues or withdraws.
func (c *tokenNodeCmd) Run(e *env) error {
	name, err := fleet.ParseName(c.Name)
	if err != nil {
		return err
	}
	var lasts time.Duration
	if c.Expires != "" {
		span, err := unit.ParseSpan(c.Expires)
		if err != nil || span <= 0 || span > 100*unit.Year {
			return fmt.Errorf("--expires %s: expected a time such as 365d", c.Expires)
		}
		lasts = time.Duration(span.Seconds() * float64(time.Second))
	}
	if (c.AccountKey == "") != (c.NATSCreds == "") {
		return errors.New("--account-key and --nats-creds: expected both or neither")
	}
	if c.AccountKey != "" {
		if c.Revoke {
			return errors.New("--revoke: credentials of your own cluster are withdrawn with its own tools (nsc revocations add-user)")
		}
		return c.foreign(e, name, lasts)
	}
	dir, err := c.folder()
	if err != nil {
		return err
	}
	keys, err := bus.OpenKeys(filepath.Join(dir, "bus", "keys"))
	if err != nil {
		return cannotError{err}
	}
	if c.Revoke {
		list, err := keys.Revoke(name)
		if err != nil {
			return unless(err)
		}
		if c.JSON {
			return writeIndented(e.stdout, map[string]any{"revoked": list})
		}
		if !c.Quiet {
			fmt.Fprintf(e.stderr, "%s may not speak any more (%s)\n", name, counted(len(list), "set")+" of credentials")
		}
		return nil
	}
	creds, issued, err := keys.Issue(name, lasts)
	if err != nil {
		return cannotError{err}
	}
	return c.hand(e, creds, issued)
}

// foreign signs for an account of somebody's own cluster.
func (c *tokenNodeCmd) foreign(e *env, name fleet.Name, lasts time.Duration) error {
	seed, err1 := os.ReadFile(c.AccountKey)
	some, err2 := os.ReadFile(c.NATSCreds)
	if err := errors.Join(err1, err2); err != nil {
		return cannotError{err}
	}
	i, err := bus.NewIssuer(seed, some)
	if err != nil {
		return err
	}
	creds, issued, err := i.Node(name, lasts)
	if err != nil {
		return cannotError{err}
	}
	return c.hand(e, creds, issued)
}

// hand gives the credentials out, once.
func (c *tokenNodeCmd) hand(e *env, creds []byte, issued bus.Issued) error {
	if c.Output != "" && c.Output != "-" {
		if err := writePrivately(c.Output, creds); err != nil {
			return cannotError{err}
		}
		if c.JSON {
			return writeIndented(e.stdout, map[string]any{"issued": issued, "file": c.Output})
		}
		if !c.Quiet {
			fmt.Fprintf(e.stderr, "wrote %s; on the node: busbar agent --join URL --creds FILE\n", c.Output)
		}
		return nil
	}
	if c.JSON {
		return writeIndented(e.stdout, map[string]any{"issued": issued, "creds": string(creds)})
	}
	_, err := e.stdout.Write(creds)
	return err
}
