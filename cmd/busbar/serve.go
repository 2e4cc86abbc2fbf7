package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"busbar.dev/cluster"
	"busbar.dev/fleet"
	"busbar.dev/fleet/agent"
	"busbar.dev/fleet/bus"
	"busbar.dev/fleet/client"
	"busbar.dev/fleet/server"
	"busbar.dev/internal/failure"
	"busbar.dev/internal/outfile"
	"busbar.dev/internal/texttab"
	"busbar.dev/internal/words"
	"busbar.dev/query"
	"busbar.dev/report"
	"busbar.dev/web"
	"busbar.dev/web/mcp"
)

// serveCmd is the fleet's memory and the page people look at.
type serveCmd struct {
	Start serveRunCmd   `cmd:"" name:"run" default:"withargs" hidden:"" help:"Serve the page on this machine."`
	Token serveTokenCmd `cmd:"" help:"Manage who may read the page and order measurements."`
	Probe serveProbeCmd `cmd:"" hidden:"" help:"Tell whether the page of a server answers."`
	Join  serveJoinCmd  `cmd:"" hidden:"" help:"Join standard input and output to the server's socket."`
}

type serveRunCmd struct {
	common
	settings
	MCP bool `name:"mcp" help:"Instead answer the Model Context Protocol on standard input and output: five tools that only read."`
	server.Options
}

// Run serves until it is told to stop.
func (c *serveRunCmd) Run(e *env) error {
	if c.MCP {
		for flag := range e.given {
			if !slices.Contains([]string{"mcp", "data", "quiet", "config"}, flag) {
				return fmt.Errorf("--%s has no effect with --mcp, which serves no page; BUSBAR_SERVER and BUSBAR_TOKEN say which "+
					"fleet is asked", flag)
			}
		}
		s := mcp.Server{Version: buildVersion(), Env: func() query.Env {
			return e.fleet(common{Quiet: true}, client.Options{Folder: c.Folder, Server: os.Getenv("BUSBAR_SERVER")})
		}}
		return s.Serve(e.ctx, e.stdin, e.stdout)
	}
	if c.JSON {
		return errors.New("--json: a server has no document; ask it: GET /api/map")
	}
	err := server.Run(e.ctx, c.Options, server.Env{
		Page:    web.Config{Machine: e.query(common{Quiet: true}).Machine, Version: buildVersion()},
		Network: func(name string) (*cluster.Cluster, error) { return e.cluster(common{Quiet: true}, name) },
		Machine: e.ownMap, Child: agent.ThisProgram("", ""),
		Note: func(text string) { fmt.Fprintln(e.stderr, "note:", text) },
		Ready: func(address, token string) {
			welcome(e, address, token)
			e.lasting.Store(true)
		},
	})
	var by interrupted
	if err == nil && errors.As(context.Cause(e.ctx), &by) {
		c.say(e, "stopped")
	}
	return err
}

// welcome says where the page is.
func welcome(e *env, at, first string) {
	if first == "" {
		fmt.Fprintf(e.stdout, "serving %s (log in with a token; busbar serve token add NAME makes one)\n", at)
		return
	}
	// The part after # is not sent to any server, so that it stands in no log.
	fmt.Fprintf(e.stdout, "open %s/login#%s\n", at, first)
	fmt.Fprintln(e.stdout, "It logs in once. For another browser, or a script: busbar serve token add NAME")
}

// issueFlags are how credentials are made and where they go.
type issueFlags struct {
	client.Folder
	Output string `short:"o" placeholder:"FILE" help:"File for the credentials, readable by its owner only; - or nothing for standard output."`
	server.Credentials
}

type tokenNodeCmd struct {
	common
	settings
	issueFlags
	Name     string `arg:"" help:"Name of the node; its agent can use no other."`
	Withdraw bool   `name:"revoke" help:"Revoke all credentials of the node instead."`
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
		return c.told(e, &server.CredentialsRevokedDoc{Revoked: append([]bus.Issued{}, list...)},
			"%s may not speak any more (%s of credentials)", name, words.Plural(len(list), "set"))
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
	creds := filepath.Base(f.Output)
	if err != nil || local.Agents == "" {
		return "no server has run with this --data yet; on the node: busbar agent --join tls://SERVER:7642 --creds " + creds
	}
	words := fmt.Sprintf("on the node: busbar agent --creds %s --join %s", creds, local.Agents)
	if ca := local.AgentsCA; ca != "" {
		words += fmt.Sprintf(" --tls-ca %s (the certificate is %s)", filepath.Base(ca), ca)
	}
	return words
}

// hand gives the credentials out, once.
func (f *issueFlags) hand(e *env, c common, creds []byte, issued bus.Issued, next string) error {
	if f.Output != "" && f.Output != "-" {
		if err := outfile.Private(f.Output, creds); err != nil {
			return failure.Cannot(err)
		}
		return c.told(e, &server.CredentialsDoc{File: f.Output, Issued: issued}, "wrote %s; %s", f.Output, next)
	}
	if c.JSON {
		return report.JSON(e.stdout, &server.CredentialsDoc{Creds: string(creds), Issued: issued})
	}
	_, err := e.stdout.Write(creds)
	return err
}

// serveTokenCmd is about who may use the page.
type serveTokenCmd struct {
	Add    tokenAddCmd    `cmd:"" help:"Create a token and print it once."`
	List   tokenListCmd   `cmd:"" help:"List tokens."`
	Revoke tokenRevokeCmd `cmd:"" help:"Revoke a token and end its sessions."`
	Node   tokenNodeCmd   `cmd:"" help:"Create or revoke the credentials of a node's agent."`
}

type tokenAddCmd struct {
	common
	client.Folder
	Name string `arg:"" help:"Name of the token's holder."`
	Role string `enum:"read,order" default:"read" help:"Role: read may view and compute, order may also start measurements (default read)."`
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
		return report.JSON(e.stdout, &server.TokenDoc{Name: c.Name, Role: c.Role, Token: secret})
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
	doc := &server.TokensDoc{Tokens: []server.TokenRow{}}
	for _, t := range list {
		doc.Tokens = append(doc.Tokens, server.TokenRow{Name: t.Name, Role: t.Role, Created: t.Created, Used: t.Used})
	}
	if c.JSON {
		return report.JSON(e.stdout, doc)
	}
	t := texttab.New("name", "role", "made", "last used")
	for _, x := range doc.Tokens {
		used := "never"
		if !x.Used.IsZero() {
			used = x.Used.Format(time.DateTime)
		}
		t.Row(x.Name, x.Role, x.Created.Format(time.DateTime), used)
	}
	return t.Write(e.stdout)
}

type tokenRevokeCmd struct {
	common
	client.Folder
	Name string `arg:"" help:"Name of the token's holder."`
}

// Run takes a token away.
func (c *tokenRevokeCmd) Run(e *env) error {
	tokens, err := server.Tokens(c.Folder)
	if err != nil {
		return err
	}
	if err := tokens.Revoke(c.Name); err != nil {
		return unless(err)
	}
	return c.told(e, &server.TokenRevokedDoc{Revoked: c.Name}, "%s may not come in any more", c.Name)
}
