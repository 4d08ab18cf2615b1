// Package llm reaches the services of config.json's endpoints, which speak the
// OpenAI API: chat models as [core.Model], image models, and files.
//
// Services differ from the documented API in many small ways. What is sent is
// plain, and a model's defaultParams can change it; what comes is read leniently
// (chunk.go), up to the point where an answer that was cut off would pass for a
// whole one. Requests that may succeed later are sent again (retry.go). Keys are
// in no error and in no log.
package llm

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/openai/openai-go/v3/option"

	"zenmcp/core"
)

// A Service reaches endpoints. The zero value is ready for use. Many goroutines
// may use one.
type Service struct {
	// Transport sends requests; nil means http.DefaultTransport.
	Transport http.RoundTripper
	// LookupEnv finds environment variables for ${NAME} in an apiKey; nil means
	// os.LookupEnv.
	LookupEnv func(string) (string, bool)
}

// defaultBaseURL is used by endpoints that name none (contract §8).
const defaultBaseURL = "https://api.openai.com/v1"

// Model finds the chat model of an agent: the one with its modelId, else
// defaultModel. It is a [core.Env.Models]. Nothing is sent yet.
func (s *Service) Model(config core.Config, agent core.AgentDefinition) (core.Model, error) {
	found, err := chatModel(config, agent)
	if err != nil {
		return nil, err
	}
	e, err := s.modelEndpoint(config, found)
	if err != nil {
		return nil, err
	}
	return &model{endpoint: e, config: found}, nil
}

func (s *Service) modelEndpoint(config core.Config, m core.ModelConfig) (*endpoint, error) {
	e, err := s.endpoint(config, m.EndpointID)
	if err != nil {
		return nil, fmt.Errorf("model %q: %w", m.ID, err)
	}
	return e, nil
}

// Vision reports whether an agent's model sees pictures; an error is why it has
// no model.
func Vision(config core.Config, agent core.AgentDefinition) (bool, error) {
	found, err := chatModel(config, agent)
	return found.Vision, err
}

func chatModel(config core.Config, agent core.AgentDefinition) (core.ModelConfig, error) {
	id := config.DefaultModel
	if agent.ModelID != nil {
		id = *agent.ModelID
	} else if id == "" {
		return core.ModelConfig{}, errors.New("there is no model: the agent has no modelId and config.json no defaultModel")
	}
	ids := make([]string, len(config.Models))
	for i, m := range config.Models {
		if m.ID == id {
			return m, nil
		}
		ids[i] = m.ID
	}
	return core.ModelConfig{}, fmt.Errorf("config.json has no model with the id %q%s", id, core.DidYouMean(id, ids))
}

// ErrNoKey is why an endpoint that names no key is not used.
var ErrNoKey = errors.New("no apiKey")

// An endpoint is one of config.json's that requests can be sent to.
type endpoint struct {
	id      string
	key     string
	options []option.RequestOption
}

// endpoint prepares the endpoint with an id. One without a key counts as not set
// up: the factory's endpoints have none.
func (s *Service) endpoint(config core.Config, id string) (*endpoint, error) {
	var found *core.Endpoint
	ids := make([]string, len(config.Endpoints))
	for i, e := range config.Endpoints {
		if ids[i] = e.ID; e.ID == id && found == nil {
			found = &e
		}
	}
	if found == nil {
		return nil, fmt.Errorf("config.json has no endpoint with the id %q%s", id, core.DidYouMean(id, ids))
	}
	lookup := s.LookupEnv
	if lookup == nil {
		lookup = os.LookupEnv
	}
	key, err := core.ExpandEnv(found.APIKey, lookup)
	switch {
	case err != nil:
		return nil, fmt.Errorf("endpoint %q: apiKey: %w", id, err)
	case strings.TrimSpace(key) == "":
		return nil, fmt.Errorf("endpoint %q has %w in config.json; write it there, or ${NAME} for an environment variable (any text will do for a service that wants none)", id, ErrNoKey)
	}
	base := cmp.Or(found.BaseURL, defaultBaseURL)
	if u, err := url.Parse(base); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("endpoint %q: baseUrl is not an http or https address", id)
	}
	key = strings.TrimSpace(key)
	return &endpoint{id: id, key: key, options: []option.RequestOption{
		option.WithBaseURL(base),
		option.WithAPIKey(key),
		option.WithHTTPClient(&http.Client{Transport: cmp.Or[http.RoundTripper](s.Transport, http.DefaultTransport)}),
		option.WithMaxRetries(0), // retry.go decides
		option.WithMiddleware(refuseStatus),
		option.WithHeader("User-Agent", "zen-mcp"),
	}}, nil
}
