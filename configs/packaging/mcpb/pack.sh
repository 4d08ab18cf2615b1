#!/bin/sh
# Packs an MCP bundle, and writes the registry's entry for it beside it.
#
#   pack.sh VERSION OUT.mcpb PLATFORM=PROGRAM…
#
# PLATFORM is linux, darwin or win32, as the manifest calls them. Version and hash
# are filled in here; the manifest and server.json of the repository hold zeros.
# $MCPB is the bundler to use, if not that of npx.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
version=$1 out=$2
shift 2

bundle=$(mktemp -d)
trap 'rm -rf "$bundle"' EXIT
for program in "$@"; do
	platform=${program%%=*} file=${program#*=}
	mkdir -p "$bundle/server/$platform"
	cp "$file" "$bundle/server/$platform/zen-mcp${file##*zen-mcp}" # with its .exe
done
stamp() { sed "s/0\.0\.0/$version/; s/0\{64\}/${hash:-}/"; }
stamp <"$here/manifest.json" >"$bundle/manifest.json"
${MCPB:-npx --yes @anthropic-ai/mcpb@2.1.2} pack "$bundle" "$out"

hash=$( (sha256sum "$out" 2>/dev/null || shasum -a 256 "$out") | cut -d ' ' -f 1)
stamp <"$here/../server.json" >"$(dirname "$out")/server.json"
