package main

import (
	"fmt"
	"path/filepath"

	"busbar.dev/fleet"
	"busbar.dev/fleet/bus"
	"busbar.dev/fleet/client"
	"busbar.dev/fleet/server"
	"busbar.dev/internal/failure"
	"busbar.dev/internal/outfile"
	"busbar.dev/internal/words"
	"busbar.dev/query"
	"busbar.dev/report"
)

// issueFlags are how credentials are made and where they go.
type issueFlags struct {
	client.Folder
	Output string `short:"o" placeholder:"FILE" help:"File for the credentials, readable by its owner only; - or nothing for standard output."`
	server.Credentials
}

type tokenNodeCmd struct {
	common
	issueFlags
	Name     string `arg:"" help:"Name of the node; its agent can use no other."`
	Withdraw bool   `name:"revoke" help:"Revoke all credentials of the node instead."`
}

type tokenHubCmd struct {
	common
	issueFlags
}

// Help ends with examples.
func (tokenHubCmd) Help() string {
	return "The credentials let a server read all events, order measurements, and store orders and findings. Protect them like an administrator's.\n\n" +
		"Examples:\n" +
		"  busbar serve token hub --account-key account.nk --nats-creds any.creds -o hub.creds\n" +
		"  busbar serve --nats tls://nats1:4222 --nats-creds hub.creds"
}

// Run issues.
func (c *tokenHubCmd) Run(e *env) error {
	creds, issued, err := c.Hub(c.Folder)
	if err != nil {
		return err
	}
	return c.hand(e, c.common, creds, issued, "busbar serve --nats URL --nats-creds FILE")
}

// Help ends with an example.
func (tokenNodeCmd) Help() string {
	return "The credentials let an agent publish under its own name and answer requests, and nothing else. A running server accepts them immediately, and rejects revoked ones within seconds.\n\n" +
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
	if c.Withdraw {
		list, err := c.Revoke(c.Folder, name)
		if err != nil {
			return unless(err)
		}
		if c.JSON {
			doc := &query.CredentialsRevokedDoc{Revoked: []query.CredentialsRow{}}
			for _, x := range list {
				doc.Revoked = append(doc.Revoked, query.CredentialsRow(x))
			}
			return report.JSON(e.stdout, doc)
		}
		c.say(e, "%s may not speak any more (%s of credentials)", name, words.Plural(len(list), "set"))
		return nil
	}
	creds, issued, err := c.Node(c.Folder, name)
	if err != nil {
		return err
	}
	return c.hand(e, c.common, creds, issued, c.agentWords())
}

// agentWords are what to do with a node's credentials: what the server of this folder takes, where one has run.
func (f *issueFlags) agentWords() string {
	local, err := f.Local()
	join, ca := "tls://SERVER:7642", ""
	switch {
	case f.AccountKey != "":
		join = "tls://SERVER:4222" // of a cluster that only its owner knows
	case err == nil && local.Agents != "":
		join = local.Agents
		if local.AgentsCA != "" {
			ca = fmt.Sprintf(" --tls-ca %s", filepath.Base(local.AgentsCA))
		}
	}
	words := fmt.Sprintf("on the node: busbar agent --join %s%s --creds %s", join, ca, filepath.Base(f.Output))
	if ca != "" {
		words += fmt.Sprintf(" (the certificate is %s)", local.AgentsCA)
	}
	return words
}

// hand gives the credentials out, once.
func (f *issueFlags) hand(e *env, c common, creds []byte, issued bus.Issued, next string) error {
	if f.Output != "" && f.Output != "-" {
		if err := outfile.Private(f.Output, creds); err != nil {
			return failure.Cannot(err)
		}
		if c.JSON {
			return report.JSON(e.stdout, &query.CredentialsDoc{File: f.Output, Issued: query.CredentialsRow(issued)})
		}
		c.say(e, "wrote %s; %s", f.Output, next)
		return nil
	}
	if c.JSON {
		return report.JSON(e.stdout, &query.CredentialsDoc{Creds: string(creds), Issued: query.CredentialsRow(issued)})
	}
	_, err := e.stdout.Write(creds)
	return err
}
