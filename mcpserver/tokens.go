package mcpserver

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/goccy/go-yaml"
)

// allAgents stands for every published agent in [Token.Agents].
const allAgents = "*"

// A Token is a credential: who shows it is called Name and may use Agents.
type Token struct {
	Name    string
	Sum     [sha256.Size]byte // of the token's characters
	Agents  []string          // by id; "*" is every published one
	Expires time.Time         // the zero value is never
}

// NewToken makes the characters of a token: 130 random bits behind "zen_", by
// which scanners for secrets can know it.
func NewToken() string { return "zen_" + rand.Text() }

// A TokenFile is a file of tokens, read again within a second of a change: a YAML
// list whose entries have
//
//	name     who it is: in limits, logs and metrics
//	sha256   the SHA-256 of the token, in hexadecimal; or else
//	token    the token itself
//	agents   the ids of the agents it may use, or ["*"]
//	expires  optional: a day (2027-01-31, which is included) or RFC 3339
type TokenFile struct{ *watched[[]Token] }

// OpenTokenFile reads a token file. Later mistakes in it are logged; the tokens
// stay as they were then.
func OpenTokenFile(path string, log *slog.Logger) (*TokenFile, error) {
	load := func() ([]Token, error) {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		tokens, err := parseTokens(data)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", path, err)
		}
		return tokens, nil
	}
	w, err := watch(log, load, path)
	if err != nil {
		return nil, err
	}
	return &TokenFile{w}, nil
}

// Tokens are those that the file names now.
func (f *TokenFile) Tokens() []Token { return f.get() }

// tokenEntry is a token as the file writes it.
type tokenEntry struct {
	Name    string   `yaml:"name"`
	SHA256  string   `yaml:"sha256"`
	Token   string   `yaml:"token"`
	Agents  []string `yaml:"agents"`
	Expires string   `yaml:"expires"`
}

func parseTokens(data []byte) ([]Token, error) {
	var entries []tokenEntry
	if err := yaml.UnmarshalWithOptions(data, &entries, yaml.Strict()); err != nil {
		return nil, errors.New(yaml.FormatError(err, false, false)) // without the source: it is secret
	}
	if len(entries) == 0 {
		return nil, errors.New("it has no tokens; zen-mcp token makes one")
	}
	var tokens []Token
	for i, e := range entries {
		t, err := e.token()
		if err != nil {
			return nil, fmt.Errorf("token %d (%q): %w", i+1, e.Name, err)
		}
		if slices.ContainsFunc(tokens, func(o Token) bool { return o.Name == t.Name }) {
			return nil, fmt.Errorf("token %d: the name %q is taken; a principal is known by it", i+1, t.Name)
		}
		tokens = append(tokens, t)
	}
	return tokens, nil
}

func (e tokenEntry) token() (Token, error) {
	t := Token{Name: e.Name, Agents: e.Agents}
	if e.Name == "" {
		return t, errors.New("name is missing")
	}
	if len(e.Agents) == 0 {
		return t, errors.New(`agents is missing: list their ids, or ["*"] for all`)
	}
	switch sum, err := hex.DecodeString(e.SHA256); {
	case (e.Token == "") == (e.SHA256 == ""):
		return t, errors.New("give either token or sha256")
	case e.Token != "":
		t.Sum = sha256.Sum256([]byte(e.Token))
	case err != nil || len(sum) != len(t.Sum):
		return t, errors.New("sha256 must be 64 hexadecimal digits")
	default:
		t.Sum = [sha256.Size]byte(sum)
	}
	var err error
	t.Expires, err = parseExpiry(e.Expires)
	return t, err
}

func parseExpiry(s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if day, err := time.ParseInLocation(time.DateOnly, s, time.Local); err == nil {
		return day.AddDate(0, 0, 1), nil
	}
	at, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return at, fmt.Errorf("expires %q: use a day such as 2027-01-31, or a time such as 2027-01-31T12:00:00Z", s)
	}
	return at, nil
}

// findToken finds the token that was shown. How long it takes says nothing of the
// tokens there are, but for their number.
func findToken(tokens []Token, shown string) *Token {
	sum := sha256.Sum256([]byte(shown))
	var found *Token
	for i := range tokens {
		if subtle.ConstantTimeCompare(sum[:], tokens[i].Sum[:]) == 1 {
			found = &tokens[i]
		}
	}
	return found
}

// CheckTokens says what is wrong with the contents of a token file.
func CheckTokens(file []byte) error {
	_, err := parseTokens(file)
	return err
}
