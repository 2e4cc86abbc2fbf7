package query

import "time"

// TokensDoc is what busbar serve token list prints. Who may log in is the server's to know; there is no question for it.
type TokensDoc struct {
	Tokens []TokenRow `json:"tokens"`
}

// TokenRow is somebody who may log in.
type TokenRow struct {
	Name    string    `json:"name"`
	Role    string    `json:"role"`
	Created time.Time `json:"created"`
	Used    time.Time `json:"last_used,omitzero"`
}
