package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"busbar.dev/fleet"
	"busbar.dev/fleet/bus"
	"busbar.dev/internal/failure"
	"busbar.dev/unit"
)

// issueFlags are how credentials are made.
type issueFlags struct {
	serveFlags
	Output     string `short:"o" placeholder:"FILE" help:"Where the credentials go, for the owner's eyes; - or nothing for standard output."`
	Expires    string `placeholder:"TIME" help:"After how long they stop to count, such as 365d; without it never."`
	AccountKey string `name:"account-key" placeholder:"FILE" help:"With a NATS cluster of yours: the seed of the account's key or of one of its signing keys."`
	NATSCreds  string `name:"nats-creds" placeholder:"FILE" help:"And any credentials of that account."`
}

type tokenNodeCmd struct {
	common
	issueFlags
	Name   string `arg:"" help:"The node's name; its agent speaks under this name and no other."`
	Revoke bool   `help:"Withdraw all credentials of the node instead."`
}

type tokenHubCmd struct {
	common
	issueFlags
}

// Help ends with examples.
func (tokenHubCmd) Help() string {
	return "Credentials let a server read everything that nodes say, ask nodes to measure, and keep orders and findings. Keep them as you keep those of an administrator.\n\n" +
		"Examples:\n" +
		"  busbar serve token hub --account-key account.nk --nats-creds any.creds -o hub.creds\n" +
		"  busbar serve --nats tls://nats1:4222 --nats-creds hub.creds"
}

// Run issues.
func (c *tokenHubCmd) Run(e *env) error {
	lasts, err := c.lasts()
	if err != nil {
		return err
	}
	i, _, err := c.issuer()
	if err != nil {
		return err
	}
	creds, issued, err := i.Hub(lasts)
	if err != nil {
		return failure.Cannot(err)
	}
	return c.hand(e, c.common, creds, issued, "busbar serve --nats URL --nats-creds FILE")
}

func (f *issueFlags) lasts() (time.Duration, error) {
	if f.Expires == "" {
		return 0, nil
	}
	span, err := unit.ParseSpan(f.Expires)
	if err != nil || span <= 0 || span > 100*unit.Year {
		return 0, fmt.Errorf("--expires %s: expected a time such as 365d", f.Expires)
	}
	return time.Duration(span.Seconds() * float64(time.Second)), nil
}

// issuer signs for an account of somebody's own cluster, or with the keys of our own server, which
// are nil in the first case.
func (f *issueFlags) issuer() (*bus.Issuer, *bus.Keys, error) {
	if (f.AccountKey == "") != (f.NATSCreds == "") {
		return nil, nil, errors.New("--account-key and --nats-creds: expected both or neither")
	}
	if f.AccountKey != "" {
		seed, err1 := os.ReadFile(f.AccountKey)
		some, err2 := os.ReadFile(f.NATSCreds)
		if err := errors.Join(err1, err2); err != nil {
			return nil, nil, failure.Cannot(err)
		}
		i, err := bus.NewIssuer(seed, some)
		return i, nil, err
	}
	dir, err := f.folder()
	if err != nil {
		return nil, nil, err
	}
	keys, err := bus.OpenKeys(filepath.Join(dir, "bus", "keys"))
	if err != nil {
		return nil, nil, failure.Cannot(err)
	}
	return keys.Issuer(), keys, nil
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
	lasts, err := c.lasts()
	if err != nil {
		return err
	}
	i, keys, err := c.issuer()
	if err != nil {
		return err
	}
	if keys == nil {
		if c.Revoke {
			return errors.New("--revoke: credentials of your own cluster are withdrawn with its own tools (nsc revocations add-user)")
		}
		creds, issued, err := i.Node(name, lasts)
		if err != nil {
			return failure.Cannot(err)
		}
		return c.hand(e, c.common, creds, issued, c.agentWords())
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
		return failure.Cannot(err)
	}
	return c.hand(e, c.common, creds, issued, c.agentWords())
}

// agentWords are what to do with a node's credentials: what the server of this folder takes, where one has run.
func (f *issueFlags) agentWords() string {
	left, err := f.left()
	join, ca := "tls://SERVER:7642", ""
	switch {
	case f.AccountKey != "":
		join = "tls://SERVER:4222" // of a cluster that only its owner knows
	case err == nil && left.Agents != "":
		join = left.Agents
		if left.AgentsCA != "" {
			ca = fmt.Sprintf(" --tls-ca %s", filepath.Base(left.AgentsCA))
		}
	}
	words := fmt.Sprintf("on the node: busbar agent --join %s%s --creds %s", join, ca, filepath.Base(f.Output))
	if ca != "" {
		words += fmt.Sprintf(" (the certificate is %s)", left.AgentsCA)
	}
	return words
}

// hand gives the credentials out, once.
func (f *issueFlags) hand(e *env, c common, creds []byte, issued bus.Issued, next string) error {
	if f.Output != "" && f.Output != "-" {
		if err := writePrivately(f.Output, creds); err != nil {
			return failure.Cannot(err)
		}
		if c.JSON {
			return writeIndented(e.stdout, map[string]any{"issued": issued, "file": f.Output})
		}
		if !c.Quiet {
			fmt.Fprintf(e.stderr, "wrote %s; %s\n", f.Output, next)
		}
		return nil
	}
	if c.JSON {
		return writeIndented(e.stdout, map[string]any{"issued": issued, "creds": string(creds)})
	}
	_, err := e.stdout.Write(creds)
	return err
}
