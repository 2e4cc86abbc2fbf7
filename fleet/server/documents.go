package server

import (
	"time"

	"busbar.dev/fleet/bus"
)

// TokensDoc is what busbar serve token list prints.
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

// CredentialsDoc is what busbar serve token node prints: the credentials, once, or the file that they went to.
type CredentialsDoc struct {
	Creds  string     `json:"creds,omitempty"`
	File   string     `json:"file,omitempty"`
	Issued bus.Issued `json:"issued"`
}

// CredentialsRevokedDoc is what busbar serve token node --revoke prints.
type CredentialsRevokedDoc struct {
	Revoked []bus.Issued `json:"revoked"`
}
