package mcps

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"zenmcp/configs"
	"zenmcp/core"
	"zenmcp/core/rawjson"
)

// A reader takes the fields of one entry and keeps the first error.
type reader struct {
	fields   map[string]json.RawMessage
	lookup   func(string) (string, bool)
	err      error
	missing  error // the first variable that is not set
	warnings []error
	expanded []string
}

func (r *reader) fail(field string, err error) {
	if r.err == nil {
		r.err = core.InField(field, err)
	}
}

func (r *reader) warn(field string, err error) {
	r.warnings = append(r.warnings, core.InField(field, err))
}

func (r *reader) server(name string) *Server {
	s := &Server{
		Name:        name,
		Description: r.description(),
		Command:     r.text("command"),
		Args:        r.texts("args"),
		Env:         r.textMap("env"),
		Dir:         r.text("cwd"),
		URL:         r.text("url"),
		Headers:     r.textMap("headers"),
		Protocol:    r.protocol(),
		Shared:      r.boolean("shared"),
		OAuth:       r.oauth(),
	}
	r.transport(s)
	s.Timeout = r.millis("timeout", DefaultTimeout)
	s.MaxTimeout = r.millis("maxTotalTimeout", max(DefaultMaxTimeout, s.Timeout))
	s.ConnectTimeout = r.millis("connectTimeout", DefaultConnectTimeout)
	idle := DefaultIdleHTTP
	if s.Transport == Stdio {
		idle = DefaultIdleStdio
	}
	s.IdleTimeout = r.millis("idleTimeout", idle)
	for _, limit := range []struct {
		field string
		d     time.Duration
	}{{"timeout", s.Timeout}, {"maxTotalTimeout", s.MaxTimeout}, {"connectTimeout", s.ConnectTimeout}} {
		if limit.d <= 0 {
			r.fail(limit.field, errors.New("must be more than 0 milliseconds"))
		}
	}
	s.expanded = r.expanded
	for _, field := range slices.Sorted(maps.Keys(r.fields)) {
		if slices.Contains(known, field) {
			continue
		}
		if near := core.Nearest(field, known); near != "" {
			r.warn(field, configs.UnknownKey.Of(fmt.Errorf("is not known; did you mean %q?", near)))
		}
	}
	return s
}

// transport finds out which transport the entry means, and whether it has what
// that needs.
func (r *reader) transport(s *Server) {
	given, ok := r.declaredType()
	if ok {
		t, found := transports[strings.ToLower(given)]
		if !found {
			r.fail("type", fmt.Errorf("unknown transport %q; use stdio, http or sse", core.Clip(given, 40)))
			return
		}
		s.Transport = t
	} else {
		switch {
		case s.Command != "" || r.fields["command"] != nil:
			s.Transport = Stdio
		case s.URL != "" || r.fields["url"] != nil:
			s.Transport, s.Inferred = HTTP, true
		default:
			r.fail("command", errors.New(`is missing; a server needs a "command" or a "url"`))
			return
		}
	}
	if s.Transport == Stdio {
		if s.Command == "" && r.missing == nil {
			r.fail("command", errors.New("is needed for a stdio server"))
		}
		return
	}
	if r.missing == nil {
		r.checkURL(s)
	}
}

func (r *reader) checkURL(s *Server) {
	if s.URL == "" {
		r.fail("url", fmt.Errorf("is needed for a server of type %s", s.Transport))
		return
	}
	u, err := url.Parse(s.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		// The value is not shown: it may hold a key.
		r.fail("url", errors.New("must be an address that begins with http:// or https://"))
	}
}

// declaredType is the first of the three spellings of the field that is there;
// an empty one, or one that is no text, counts as there and says nothing.
func (r *reader) declaredType() (string, bool) {
	for _, field := range []string{"type", "transport", "transportType"} {
		if raw := r.fields[field]; raw != nil {
			var s string
			if json.Unmarshal(raw, &s) != nil {
				r.warn(field, errors.New("must be text; it was ignored"))
			}
			return s, s != ""
		}
	}
	return "", false
}

func (r *reader) description() string {
	raw := r.fields["description"]
	var s string
	if raw != nil && json.Unmarshal(raw, &s) != nil {
		r.warn("description", errors.New("must be text; it was ignored"))
	}
	return s
}

func (r *reader) protocol() Era {
	switch v := Era(r.text("protocol")); v {
	case "":
		return Auto
	case Auto, Legacy, Modern:
		return v
	default:
		r.fail("protocol", fmt.Errorf("unknown value %q; use auto, legacy or modern", core.Clip(string(v), 40)))
		return Auto
	}
}

func (r *reader) boolean(field string) bool {
	raw := r.fields[field]
	var b bool
	if raw != nil && json.Unmarshal(raw, &b) != nil {
		r.fail(field, errors.New("must be true or false"))
	}
	return b
}

func (r *reader) millis(field string, otherwise time.Duration) time.Duration {
	raw := r.fields[field]
	if raw == nil {
		return otherwise
	}
	var ms float64
	if json.Unmarshal(raw, &ms) != nil || ms > float64((1<<62)/time.Millisecond) {
		r.fail(field, errors.New("must be a number of milliseconds"))
		return otherwise
	}
	return time.Duration(ms * float64(time.Millisecond))
}

func (r *reader) oauth() *OAuth {
	raw := r.fields["oauth"]
	if raw == nil || string(raw) == "true" {
		return nil // a server that wants it says so with a 401
	}
	inner := reader{fields: map[string]json.RawMessage{}, lookup: r.lookup}
	members, err := rawjson.Members(raw)
	if err != nil {
		r.fail("oauth", errors.New("must be an object"))
		return nil
	}
	for _, m := range members {
		inner.fields[m.Name] = m.Value
	}
	o := &OAuth{ClientID: inner.text("clientId"), ClientSecret: inner.text("clientSecret"), Scopes: inner.texts("scopes")}
	if port := inner.fields["callbackPort"]; port != nil && (json.Unmarshal(port, &o.CallbackPort) != nil || o.CallbackPort < 0 || o.CallbackPort > 65535) {
		inner.fail("callbackPort", errors.New("must be a port number"))
	}
	r.expanded = append(r.expanded, inner.expanded...)
	if inner.err != nil {
		r.fail("oauth", inner.err)
	}
	if inner.missing != nil && r.missing == nil {
		r.missing = core.InField("oauth", inner.missing)
	}
	return o
}

// text reads a field that is text, and expands it.
func (r *reader) text(field string) string {
	raw := r.fields[field]
	if raw == nil {
		return ""
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		r.fail(field, errors.New("must be text"))
		return ""
	}
	return r.expand(s, field)
}

// texts reads a list of texts. Numbers and truth values in it are taken as they
// are written: hand-written files have many.
func (r *reader) texts(field string) []string {
	raw := r.fields[field]
	if raw == nil {
		return nil
	}
	elements, err := rawjson.Elements(raw)
	if err != nil {
		r.fail(field, errors.New("must be a list of texts"))
		return nil
	}
	out := make([]string, 0, len(elements))
	for i, e := range elements {
		key := fmt.Sprint(i)
		s, ok := scalar(e)
		if !ok {
			r.fail(field, core.InField(key, errors.New("must be text")))
			return nil
		}
		out = append(out, r.expand(s, field, key))
	}
	return out
}

// textMap is texts for an object.
func (r *reader) textMap(field string) map[string]string {
	raw := r.fields[field]
	if raw == nil {
		return nil
	}
	members, err := rawjson.Members(raw)
	if err != nil {
		r.fail(field, errors.New("must be an object of texts"))
		return nil
	}
	out := make(map[string]string, len(members))
	for _, m := range members {
		s, ok := scalar(m.Value)
		if !ok {
			r.fail(field, core.InField(m.Name, errors.New("must be text")))
			return nil
		}
		out[m.Name] = r.expand(s, field, m.Name)
	}
	return out
}

func scalar(raw json.RawMessage) (string, bool) {
	switch rawjson.KindOf(raw) {
	case rawjson.String:
		var s string
		err := json.Unmarshal(raw, &s)
		return s, err == nil
	case rawjson.Number, rawjson.Boolean:
		return string(raw), true
	}
	return "", false
}

// expand is [core.ExpandEnv]. A variable that is not set is remembered with its
// field.
func (r *reader) expand(s string, path ...string) string {
	text, err := core.ExpandEnv(s, func(name string) (string, bool) {
		value, ok := r.lookup(name)
		r.expanded = append(r.expanded, value)
		return value, ok
	})
	if err != nil && r.missing == nil {
		for _, p := range slices.Backward(path) {
			err = core.InField(p, err)
		}
		r.missing = err
	}
	return text
}
