// Package check tests the files around it with the programs that they are for:
// goreleaser's strict reader, the checks of docker build, the MCP registry's schema,
// Kubernetes' own types, and systemd. It is a module of its own, so that none of
// them is a dependency of zen-mcp; .ci/run runs it.
package check
