package query

import (
	"time"

	"busbar.dev/fleet"
)

// TokensDoc is what busbar serve token list prints. Who may log in is the server's to know; there is no question for it.
type TokensDoc struct {
	Tokens []TokenRow `json:"tokens"`
}

// TokenRow is a token that may log in.
type TokenRow struct {
	Name    string    `json:"name"`
	Role    string    `json:"role"`
	Created time.Time `json:"created"`
	Used    time.Time `json:"last_used,omitzero"`
}

// TokenDoc is what busbar serve token add prints: a token, once.
type TokenDoc struct {
	Name  string `json:"name"`
	Role  string `json:"role"`
	Token string `json:"token"`
}

// TokenRevokedDoc is what busbar serve token revoke prints.
type TokenRevokedDoc struct {
	Revoked string `json:"revoked"`
}

// CredentialsDoc is what busbar serve token node and hub print: the credentials, once, or the file that they went to.
type CredentialsDoc struct {
	Creds  string         `json:"creds,omitempty"`
	File   string         `json:"file,omitempty"`
	Issued CredentialsRow `json:"issued"`
}

// CredentialsRevokedDoc is what busbar serve token node --revoke prints.
type CredentialsRevokedDoc struct {
	Revoked []CredentialsRow `json:"revoked"`
}

// CredentialsRow is a set of credentials for the bus, without its secret.
type CredentialsRow struct {
	Node      fleet.Name `json:"node,omitzero"` // empty: a server's
	Key       string     `json:"key"`           // the public key
	At        time.Time  `json:"at"`
	Expires   time.Time  `json:"expires,omitzero"`
	Withdrawn time.Time  `json:"withdrawn,omitzero"`
}
