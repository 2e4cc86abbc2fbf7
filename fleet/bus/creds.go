package bus

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"busbar.dev/fleet"
	"busbar.dev/internal/outfile"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"
)

// Issuer signs credentials of an account's users.
type Issuer struct {
	account string // its public key
	key     nkeys.KeyPair
}

// NewIssuer makes an issuer for an account that somebody else runs, from the seed of the
// account's key or of one of its signing keys. creds are any credentials of the account,
// such as the server's own; they say which account it is.
func NewIssuer(seed, creds []byte) (*Issuer, error) {
	kind, _, err := nkeys.DecodeSeed(trim(seed))
	if err != nil || kind != nkeys.PrefixByteAccount {
		return nil, errors.New("the account key is no seed of an account (it begins with SA)")
	}
	key, err := nkeys.FromSeed(trim(seed))
	if err != nil {
		return nil, err
	}
	text, err := jwt.ParseDecoratedJWT(creds)
	if err != nil {
		return nil, fmt.Errorf("the credentials: %w", err)
	}
	u, err := jwt.DecodeUserClaims(text)
	if err != nil {
		return nil, fmt.Errorf("the credentials: %w", err)
	}
	account := cmp.Or(u.IssuerAccount, u.Issuer)
	return &Issuer{account, key}, nil
}

// Issued is a set of credentials that was handed out: all but the secret.
type Issued struct {
	Node      fleet.Name `json:"node,omitzero"` // empty: a server's
	Key       string     `json:"key"`           // the public key
	At        time.Time  `json:"at"`
	Expires   time.Time  `json:"expires,omitzero"`
	Withdrawn time.Time  `json:"withdrawn,omitzero"`
}

// Node makes credentials for a node, as the text of a .creds file. expiry 0 is never.
func (i *Issuer) Node(node fleet.Name, expiry time.Duration) ([]byte, Issued, error) {
	if _, err := fleet.ParseName(string(node)); err != nil {
		return nil, Issued{}, err
	}
	return i.sign(node, expiry, func(u *jwt.UserClaims) {
		u.Name = string(node)
		// Nothing here is answered by the store itself; see relay.
		u.Pub.Allow.Add(publishTo+node.Token(), lastTo+node.Token(), fleet.BeatOf(node), fleet.ProgressOf(node))
		u.Sub.Allow.Add(fleet.PartOf(node), inboxOf(node)+".>")
		// A node answers what it was asked, once, and where the question said.
		u.Resp = &jwt.ResponsePermission{MaxMsgs: 1, Expires: time.Minute}
		u.Limits.Subs = 16
		u.Limits.Payload = maxPayload
		u.AllowedConnectionTypes.Add(jwt.ConnectionTypeStandard, jwt.ConnectionTypeInProcess)
	})
}

// NodeOf is the node that credentials are for; empty where they do not name one, as those that
// were made by other means.
func NodeOf(creds []byte) (fleet.Name, error) {
	text, err := jwt.ParseDecoratedJWT(creds)
	if err != nil {
		return "", err
	}
	u, err := jwt.DecodeUserClaims(text)
	if err != nil {
		return "", err
	}
	name, err := fleet.ParseName(u.Name)
	if err != nil || !u.Sub.Allow.Contains(fleet.PartOf(name)) {
		return "", nil
	}
	return name, nil
}

// Hub makes credentials for a server of the fleet.
func (i *Issuer) Hub(expiry time.Duration) ([]byte, Issued, error) {
	return i.sign("", expiry, func(u *jwt.UserClaims) {
		u.Name = "hub"
		u.Pub.Allow.Add(fleet.HubLog, fleet.LogOf("*"), "_INBOX.node.>", partSubjects, "$JS.API.INFO", "$KV."+bucket+".>")
		for _, s := range []string{fleet.Stream, "KV_" + bucket} {
			for _, verb := range []string{"CREATE", "UPDATE", "INFO"} {
				u.Pub.Allow.Add("$JS.API.STREAM." + verb + "." + s)
			}
			u.Pub.Allow.Add(directGet0 + s + ".>")
		}
		u.Pub.Allow.Add("$JS.API.CONSUMER.*."+fleet.Stream+".>", "$JS.API.CONSUMER.MSG.NEXT."+fleet.Stream+".>")
		u.Sub.Allow.Add(fleet.Beats, fleet.ProgressAll, publishTo+"*", lastTo+"*", inboxOf("")+".>")
	})
}

func (i *Issuer) sign(node fleet.Name, expiry time.Duration, shape func(*jwt.UserClaims)) ([]byte, Issued, error) {
	user, err := nkeys.CreateUser()
	if err != nil {
		return nil, Issued{}, err
	}
	seed, err := user.Seed()
	if err != nil {
		return nil, Issued{}, err
	}
	u := jwt.NewUserClaims(public(user))
	if public(i.key) != i.account {
		u.IssuerAccount = i.account
	}
	now := time.Now()
	out := Issued{Node: node, Key: u.Subject, At: now.UTC().Truncate(time.Second)}
	if expiry != 0 {
		out.Expires = now.Add(expiry).UTC().Truncate(time.Second)
		u.Expires = out.Expires.Unix()
	}
	shape(u)
	text, err := u.Encode(i.key)
	if err != nil {
		return nil, Issued{}, err
	}
	creds, err := jwt.FormatUserConfig(text, seed)
	return creds, out, err
}

// Issuer signs with the keys of a server of our own. What it signs is not written down; see Issue.
func (k *Keys) Issuer() *Issuer { return &Issuer{public(k.account), k.signer} }

// Issue makes credentials for a node and writes down that there are some.
func (k *Keys) Issue(node fleet.Name, expiry time.Duration) ([]byte, Issued, error) {
	creds, out, err := k.Issuer().Node(node, expiry)
	if err != nil {
		return nil, out, err
	}
	return creds, out, k.change(func(all []Issued) ([]Issued, error) { return append(all, out), nil })
}

// Issued lists what was issued, oldest first.
func (k *Keys) Issued() (all []Issued, err error) {
	path := filepath.Join(k.dir, issuedFile)
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		if err = json.Unmarshal(data, &all); err != nil {
			err = damaged(path, err)
		}
	}
	return all, err
}

// Revoke withdraws all credentials of a node. A server that runs on these keys follows within
// seconds, or at once when its Reload is called, and cuts who is connected with them.
func (k *Keys) Revoke(node fleet.Name) (withdrawn []Issued, err error) {
	now := time.Now().UTC().Truncate(time.Second)
	err = k.change(func(all []Issued) ([]Issued, error) {
		a, _, err := k.claims()
		if err != nil {
			return nil, err
		}
		for i := range all {
			if e := &all[i]; e.Node == node && e.Withdrawn.IsZero() {
				// Withdrawn is what was issued before a time. They may come from a clock that was ahead; the key is theirs alone.
				a.RevokeAt(e.Key, later(now, e.At).Add(time.Minute))
				e.Withdrawn = now
				withdrawn = append(withdrawn, *e)
			}
		}
		if withdrawn == nil {
			return nil, fmt.Errorf("node %s has no credentials to revoke", node)
		}
		return all, k.writeAccount(a) // first, so that what is written down as withdrawn is
	})
	return withdrawn, err
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// change rewrites the list of what was issued, alone among processes.
func (k *Keys) change(how func([]Issued) ([]Issued, error)) error {
	unlock, err := lock(filepath.Join(k.dir, keysLock), true)
	if err != nil {
		return err
	}
	defer unlock()
	all, err := k.Issued()
	if err != nil {
		return err
	}
	if all, err = how(slices.Clip(all)); err != nil {
		return err
	}
	data, err := json.MarshalIndent(all, "", " ")
	if err != nil {
		return err
	}
	return outfile.Private(filepath.Join(k.dir, issuedFile), append(data, '\n'))
}
