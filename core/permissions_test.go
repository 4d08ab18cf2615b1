package core

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestPermissionVectors runs recorded behaviour: permissions and what of the
// candidates they let through, in the candidates' order.
func TestPermissionVectors(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/permissions.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors struct {
		Candidates map[Kind][]string
		Cases      []struct {
			ID, Name    string
			Permissions json.RawMessage
			Candidates  map[Kind][]string
			Error       bool
			Visible     map[Kind][]string
		}
		Single []struct {
			Name   string
			Policy Policy
			Want   bool
		}
	}
	if err := json.Unmarshal(data, &vectors); err != nil {
		t.Fatal(err)
	}
	for _, v := range vectors.Cases {
		t.Run(v.ID, func(t *testing.T) {
			t.Parallel()
			var p Permissions
			var err error
			if v.Permissions != nil {
				err = json.Unmarshal(v.Permissions, &p)
			}
			if v.Error != (err != nil) {
				t.Fatalf("%s: error %v, want one: %v", v.Name, err, v.Error)
			}
			if err != nil && len(p) > 0 {
				t.Errorf("%s: permissions that are wrong leave %v open", v.Name, p)
			}
			if v.Candidates == nil {
				v.Candidates = vectors.Candidates
			}
			for _, kind := range Kinds() {
				var got []string
				for _, name := range v.Candidates[kind] {
					if p.Permits(Capability{kind, name}) {
						got = append(got, name)
					}
				}
				if !v.Error && !slices.Equal(got, v.Visible[kind]) {
					t.Errorf("%s: %s are %q, want %q", v.Name, kind, got, v.Visible[kind])
				}
			}
		})
	}
	for _, v := range vectors.Single {
		if got := v.Policy.Permits(v.Name); got != v.Want {
			t.Errorf("%v permits %q: %v, want %v", v.Policy, v.Name, got, v.Want)
		}
	}
}

func TestMalformedPermissions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, path, text string }{
		{`{"tools": {"deny": [["rm"]]}}`, "tools.deny", "list of names"},
		{`{"tools": {"allow": ["a", 1]}}`, "tools.allow", "holds 1"},
		{`{"tools": {"allow": null}}`, "tools.allow", "list of names"},
		{`{"tools": {"Deny": ["rm"]}}`, "tools", `"allow" or "deny"`},
		{`{"tools": true}`, "tools", `{"allow"`},
		{`{"mcps": {"allow": ["a"], "deny": ["b"]}}`, "mcps", "exclude each other"},
		{`{"skills": {"allow": []}, "skills": {"deny": []}}`, "skills", "twice"},
		{`["tools"]`, "", "must be an object"},
		{`"*"`, "", "must be an object"},
	} {
		p := AllowAll()
		err := json.Unmarshal([]byte(c.in), &p)
		if err == nil {
			t.Errorf("%s was taken", c.in)
			continue
		}
		if len(p) > 0 {
			t.Errorf("%s: what was there before stays open", c.in)
		}
		var field *FieldError
		path := ""
		if errors.As(err, &field) {
			path = strings.Join(field.Path, ".")
		}
		if path != c.path || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: error %q about %q, want it about %q with %q", c.in, err, path, c.path, c.text)
		}
	}
}

func TestPolicyRoundTrip(t *testing.T) {
	t.Parallel()
	for _, p := range []Policy{{}, Allow(), Allow("a", "*"), Deny(), Deny("b")} {
		text, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		var back Policy
		if err := json.Unmarshal(text, &back); err != nil {
			t.Errorf("%s cannot be read back: %v", text, err)
		}
		for _, name := range []string{"a", "b", "c", "*", ""} {
			if back.Permits(name) != p.Permits(name) {
				t.Errorf("%s permits %q: %v after the round trip", text, name, back.Permits(name))
			}
		}
	}
}

// TestIntersect checks that an intersection permits exactly what both permit.
func TestIntersect(t *testing.T) {
	t.Parallel()
	universe := []string{"a", "b", "c", "*", "", "never listed"}
	rng := rand.New(rand.NewPCG(1, 2))
	random := func() Policy {
		var names []string
		for _, n := range universe[:5] {
			if rng.IntN(3) == 0 {
				names = append(names, n)
			}
		}
		return Policy{deny: rng.IntN(2) == 0, names: names}
	}
	for range 5000 {
		p, q := Permissions{}, Permissions{}
		for _, kind := range Kinds() {
			if rng.IntN(5) > 0 {
				p[kind] = random()
			}
			if rng.IntN(5) > 0 {
				q[kind] = random()
			}
		}
		both := p.Intersect(q)
		for _, kind := range Kinds() {
			for _, name := range universe {
				c := Capability{kind, name}
				if got, want := both.Permits(c), p.Permits(c) && q.Permits(c); got != want {
					t.Fatalf("%+v and %+v: intersection permits %v: %v, want %v", p[kind], q[kind], c, got, want)
				}
			}
		}
	}
}

func TestPolicyNames(t *testing.T) {
	t.Parallel()
	p := Allow("a", "*", "b")
	if got := p.Names(); !slices.Equal(got, []string{"a", "b"}) || !p.Permits("c") {
		t.Errorf("Names gave %q, and after it the policy is %v", got, p)
	}
}

func TestZeroPermissions(t *testing.T) {
	t.Parallel()
	for _, p := range []Permissions{nil, {}, {KindTool: {}}} {
		if p.Permits(Capability{KindTool, "cwd"}) || p.Permits(Capability{}) {
			t.Errorf("%v permits something", p)
		}
	}
	if all := AllowAll(); !all.Permits(Capability{KindMCP, "x"}) || len(all) != len(Kinds()) {
		t.Error("AllowAll does not permit all")
	}
}

// FuzzPermissions reads anything: an error leaves nothing open, and what is read
// permits the same after it has been written.
func FuzzPermissions(f *testing.F) {
	for _, seed := range []string{
		`{"tools":{"allow":["*"]}}`, `{"tools":{"deny":[]},"skills":null,"mcps":false}`, `{"tools":{"allow":["a"],"deny":["b"]}}`,
		`{"subagents":{"deny":["\ud800","a"]}}`, `{"tools":{"allow":"*"}}`, `{"tools":{},"tools":{}}`, `null`, `[]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		p := AllowAll()
		if err := json.Unmarshal(text, &p); err != nil {
			if json.Valid(text) && len(p) > 0 {
				t.Fatalf("%s is wrong (%v) and leaves %v open", text, err, p)
			}
			return
		}
		written, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		var back Permissions
		if err := json.Unmarshal(written, &back); err != nil {
			t.Fatalf("%s was written as %s, which cannot be read: %v", text, written, err)
		}
		for _, kind := range Kinds() {
			for _, name := range append(p[kind].Names(), "a", "*", "", "nobody") {
				if c := (Capability{kind, name}); back.Permits(c) != p.Permits(c) {
					t.Fatalf("%s permits %v: %v, and after it was written as %s %v", text, c, p.Permits(c), written, back.Permits(c))
				}
			}
		}
	})
}
