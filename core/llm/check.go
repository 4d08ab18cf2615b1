package llm

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/openai/openai-go/v3"

	"zenmcp/core"
)

// Usable reports why the endpoint with an id cannot be used: a key or a variable
// that is missing, a bad address. Nothing is sent.
func (s *Service) Usable(config core.Config, id string) error {
	_, err := s.endpoint(config, id)
	return err
}

// ErrRefused is the error of an endpoint that does not accept the key.
var ErrRefused = errors.New("the key is refused")

// Check asks the endpoint with an id for its models, once: it is an error when the
// endpoint cannot be reached or, wrapping [ErrRefused], refuses the key. An
// endpoint that has no such list is there; that its key is accepted is not known
// then.
func (s *Service) Check(ctx context.Context, config core.Config, id string) (listed bool, err error) {
	e, err := s.endpoint(config, id)
	if err != nil {
		return false, err
	}
	client := openai.NewClient(e.options...)
	_, err = client.Models.List(ctx)
	if err == nil {
		return true, nil
	}
	f := asFailure(err)
	switch f.status {
	case 0:
		if ctx.Err() != nil {
			f.err = context.Cause(ctx)
		}
		return false, e.failed(f, 1)
	case http.StatusUnauthorized, http.StatusForbidden:
		return false, fmt.Errorf("%w: %w", ErrRefused, e.failed(f, 1))
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return false, nil
	}
	return false, e.failed(f, 1)
}
