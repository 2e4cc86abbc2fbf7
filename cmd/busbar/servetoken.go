package main

import (
	"errors"
	"fmt"
	"io/fs"

	"busbar.dev/fleet/client"
	"busbar.dev/fleet/server"
	"busbar.dev/internal/failure"
	"busbar.dev/query"
	"busbar.dev/report"
	"busbar.dev/web"
)

// serveTokenCmd is about who may use the page.
type serveTokenCmd struct {
	Add    tokenAddCmd    `cmd:"" help:"Create a token and print it once."`
	List   tokenListCmd   `cmd:"" help:"List tokens."`
	Revoke tokenRevokeCmd `cmd:"" help:"Revoke a token and end its sessions."`
	Hub    tokenHubCmd    `cmd:"" help:"Create credentials for another busbar serve on the same bus."`
	Node   tokenNodeCmd   `cmd:"" help:"Create or revoke the credentials of a node's agent."`
}

type tokenAddCmd struct {
	common
	client.Folder
	Name string `arg:"" help:"Name of the token's holder."`
	Role string `enum:"read,order" default:"read" help:"Role: read may view and compute, order may also start measurements (default read)."`
}

// Help ends with an example.
func (tokenAddCmd) Help() string {
	return "A running server accepts it immediately. Scripts send it: Authorization: Bearer TOKEN.\n\nExample:\n  busbar serve token add alice --role order"
}

// Run makes a token.
func (c *tokenAddCmd) Run(e *env) error {
	tokens, err := server.Tokens(c.Folder)
	if err != nil {
		return err
	}
	role := web.Read
	if c.Role == "order" {
		role = web.Order
	}
	secret, err := tokens.Add(c.Name, role)
	if err != nil {
		return unless(err)
	}
	if c.JSON {
		return report.JSON(e.stdout, &query.TokenDoc{Name: c.Name, Role: c.Role, Token: secret})
	}
	_, err = fmt.Fprintln(e.stdout, secret)
	return err
}

// unless marks an error of the file system, which is not the input's fault.
func unless(err error) error {
	if errors.As(err, new(*fs.PathError)) {
		return failure.Cannot(err)
	}
	return err
}

type tokenListCmd struct {
	common
	client.Folder
}

// Help ends with an example.
func (tokenListCmd) Help() string { return "Example:\n  busbar serve token list --json" }

// Run lists tokens, without their secrets, which nobody has.
func (c *tokenListCmd) Run(e *env) error {
	tokens, err := server.Tokens(c.Folder)
	if err != nil {
		return err
	}
	list, err := tokens.List()
	if err != nil {
		return failure.Cannot(err)
	}
	doc := &query.TokensDoc{Tokens: []query.TokenRow{}}
	for _, t := range list {
		doc.Tokens = append(doc.Tokens, query.TokenRow{Name: t.Name, Role: t.Role, Created: t.Created, Used: t.Used})
	}
	if c.JSON {
		return report.JSON(e.stdout, doc)
	}
	return report.Tokens(e.stdout, doc)
}

type tokenRevokeCmd struct {
	common
	client.Folder
	Name string `arg:"" help:"Name of the token's holder."`
}

// Help ends with an example.
func (tokenRevokeCmd) Help() string { return "Example:\n  busbar serve token revoke alice" }

// Run takes a token away.
func (c *tokenRevokeCmd) Run(e *env) error {
	tokens, err := server.Tokens(c.Folder)
	if err != nil {
		return err
	}
	if err := tokens.Revoke(c.Name); err != nil {
		return unless(err)
	}
	if c.JSON {
		return report.JSON(e.stdout, &query.TokenRevokedDoc{Revoked: c.Name})
	}
	if !c.Quiet {
		fmt.Fprintf(e.stderr, "%s may not come in any more\n", c.Name)
	}
	return nil
}
