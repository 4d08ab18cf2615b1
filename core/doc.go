// Package core is the system itself: tools and their results, the permission
// model, the three phases that assemble a client's tools (discover, filter,
// instantiate), the scope that a client lives in, and the paths it may reach.
//
// A [Source] knows one family of capabilities. [Discover] asks all sources and
// gives a [Catalog]; [Catalog.Filter] keeps what an agent is permitted and what
// is of use; [Catalog.Instantiate] makes the tools for a [Scope]. What is not
// permitted does not exist for the client: it is neither listed nor callable,
// and asking for it is answered as for a name that nobody has.
package core
