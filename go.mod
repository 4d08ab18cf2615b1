module zenmcp

go 1.26.0

require (
	github.com/google/jsonschema-go v0.4.3
	golang.org/x/text v0.44.0
)
