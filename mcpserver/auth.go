package mcpserver

import "context"

// A principal is who calls, as far as a credential tells.
type principal struct {
	name string // "" is anybody
}

var anybody = &principal{}

type principalKey struct{}

// principalOf is who made a request. In a session it is who began it, and nobody
// else can use it.
func principalOf(ctx context.Context) *principal {
	if p, ok := ctx.Value(principalKey{}).(*principal); ok {
		return p
	}
	return anybody
}
