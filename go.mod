module zenmcp

go 1.26.0

require (
	github.com/google/jsonschema-go v0.4.3
	golang.org/x/text v0.44.0
)

require github.com/tailscale/hujson v0.0.0-20260727124030-b80ff77dac4f

require golang.org/x/sys v0.50.0
