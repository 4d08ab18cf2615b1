package core

import (
	"cmp"
	"encoding/json"
)

// Config is config.json: endpoints, models and limits. The zero value is a
// system without models; everything that needs none works with it.
type Config struct {
	Endpoints   []Endpoint    `json:"endpoints,omitempty"`
	Models      []ModelConfig `json:"models,omitempty"`
	ImageModels []ImageModel  `json:"imageModels,omitempty"`

	DefaultModel      string `json:"defaultModel,omitempty"`
	DefaultImageModel string `json:"defaultImageModel,omitempty"`
	DefaultAgent      string `json:"defaultAgent,omitempty"`

	// MaxToolOutput is the budget of one result in code points; nil means
	// [DefaultMaxToolOutput].
	MaxToolOutput *int `json:"maxToolOutput,omitempty"`
	// MaxDownloadBytes caps one download; 0 means [DefaultMaxDownloadBytes].
	MaxDownloadBytes int64 `json:"maxDownloadBytes,omitempty"`
	// AllowPrivateNetwork lets downloads reach loopback, link-local and private
	// addresses.
	AllowPrivateNetwork bool `json:"allowPrivateNetwork,omitempty"`
	// InlineImages lets viewImage answer an MCP client with the picture itself.
	InlineImages bool `json:"inlineImages,omitempty"`
}

// DefaultMaxToolOutput is the budget of one tool result in code points when
// config.json names none.
const DefaultMaxToolOutput = 32768

// MinToolOutput is the smallest budget: below it there is no room to say what was
// cut and where the whole is.
const MinToolOutput = 1000

// OutputBudget is the budget of one tool result in code points. A smaller one
// than [MinToolOutput] is taken as that.
func (c Config) OutputBudget() int {
	if c.MaxToolOutput == nil {
		return DefaultMaxToolOutput
	}
	return max(*c.MaxToolOutput, MinToolOutput)
}

// DefaultMaxDownloadBytes is the default of [Config.MaxDownloadBytes]: 1 GiB
// (decision 14).
const DefaultMaxDownloadBytes = 1 << 30

// DownloadLimit is the size of one download in bytes.
func (c Config) DownloadLimit() int64 { return cmp.Or(c.MaxDownloadBytes, DefaultMaxDownloadBytes) }

// An Endpoint is an OpenAI-compatible service.
type Endpoint struct {
	ID          string `json:"id"`
	Name        string `json:"name,omitempty"`
	BaseURL     string `json:"baseUrl,omitempty"` // empty means https://api.openai.com/v1
	APIKey      string `json:"apiKey,omitempty"`
	Description string `json:"description,omitempty"`
}

// A ModelConfig is a chat model at an endpoint.
type ModelConfig struct {
	ID               string                     `json:"id"`
	Name             string                     `json:"name,omitempty"`
	EndpointID       string                     `json:"endpointId"`
	ModelName        string                     `json:"modelName,omitempty"` // what is sent; empty means ID
	MaxContextTokens int                        `json:"maxContextTokens,omitempty"`
	DefaultParams    map[string]json.RawMessage `json:"defaultParams,omitempty"` // merged into the request body
	Vision           bool                       `json:"vision,omitempty"`
	Description      string                     `json:"description,omitempty"`
}

// An ImageModel is an image model at an endpoint.
type ImageModel struct {
	ID             string `json:"id"`
	Name           string `json:"name,omitempty"`
	EndpointID     string `json:"endpointId"`
	ModelName      string `json:"modelName,omitempty"` // what is sent; empty means ID
	DefaultSize    string `json:"defaultSize,omitempty"`
	DefaultQuality string `json:"defaultQuality,omitempty"`
}

// An AgentDefinition is one agent: what it is told, which model it uses, what it
// may use. One with a Function is a sub-agent and becomes a tool of that name.
type AgentDefinition struct {
	ID          string        `json:"id"`
	Name        string        `json:"name,omitempty"`
	Description string        `json:"description,omitempty"`
	Messages    []Message     `json:"messages,omitempty"`
	ModelID     *string       `json:"modelId,omitempty"` // nil means config.json's defaultModel
	Permissions Permissions   `json:"permissions,omitempty"`
	Function    *FunctionSpec `json:"function,omitempty"`
	// Roots narrow those of the server, or confine where it has none. Relative
	// ones belong to the working directory.
	Roots     []string `json:"roots,omitempty"`
	MaxRounds int      `json:"maxRounds,omitempty"` // 0 means 50
}

// A Message is one message of a conversation, as the chat completions API takes
// it. Those of a definition have a role and a content.
type Message struct {
	Role    string          `json:"role"`              // system, user, assistant or tool
	Content json.RawMessage `json:"content,omitempty"` // a string or a list of content parts

	// Reasoning is what a model thought on the way. It belongs to the message
	// and is sent back with it.
	Reasoning  string     `json:"reasoning_content,omitempty"`
	ToolCalls  []ToolCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"` // of a tool's result
}

// A ToolCall is a call that a model asks for.
type ToolCall struct {
	ID       string       `json:"id"`
	Type     string       `json:"type"` // "function"
	Function FunctionCall `json:"function"`
	// Extra is what some services want to see again with the call.
	Extra json.RawMessage `json:"extra_content,omitempty"`
}

// A FunctionCall names the tool and has its arguments, as the model wrote them:
// that they are JSON is not certain.
type FunctionCall struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// A FunctionSpec is a function as the chat completions API declares it.
type FunctionSpec struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"` // a JSON Schema
}
