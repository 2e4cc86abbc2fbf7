package web

import (
	"net/http"
	"slices"
)

// Role is what a token allows.
type Role int

// Roles, each with the rights of those before it.
const (
	// Public needs no token: the page to log in, and whether the server lives.
	Public Role = iota
	// Read looks at things and computes.
	Read
	// Order starts and stops measurements.
	Order
)

// roleNames are the roles as the file of tokens has them.
var roleNames = []string{"public", "read", "order"}

// String is the role's name.
func (r Role) String() string { return roleNames[r] }

// roleNamed is the role of a name; one that is none gives no rights.
func roleNamed(name string) Role { return Role(max(0, slices.Index(roleNames, name))) }

// Route is one thing that can be asked.
type Route struct {
	Method string // GET, POST, DELETE, …
	Path   string // as net/http's ServeMux takes it: /api/nodes/{name}
	Role   Role   // the least that is needed
	// Body bounds what is sent, in bytes; 0 is 64 KiB.
	Body int64
	// Computes says that the answer takes computing or is long: it waits for its turn like a question.
	Computes bool
	Handler  http.Handler
}

// Who is who asks.
type Who struct {
	Name string // of the token
	Role Role
}

type whoKey struct{}

// ownUserKey marks requests of the server's own user.
type ownUserKey struct{}

// Requester is who sent a request that came through a route.
func Requester(r *http.Request) Who {
	w, _ := r.Context().Value(whoKey{}).(Who)
	return w
}
