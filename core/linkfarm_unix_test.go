//go:build unix

package core

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestLinkFarms builds random farms of links in two roots and outside of them, and
// walks through them. The kernel, which confines nothing, says where a path leads:
// inside the roots the answer must be the kernel's, outside a refusal; and whatever
// is tried, nothing outside changes.
func TestLinkFarms(t *testing.T) {
	t.Parallel()
	read, refused := 0, 0
	for seed := range uint64(15) {
		rng := rand.New(rand.NewPCG(seed, 1))
		farm := newFarm(t, rng)
		s := farm.scope(t, "in", "in2")
		outside := farm.outside(t)
		for range 80 {
			given := farm.path(rng)
			p, err := s.Path(given)
			if err != nil { // written as outside
				refused++
				continue
			}
			full := p.Abs + strings.TrimPrefix(p.name(), p.rel) // with the slash
			real, gone := filepath.EvalSymlinks(p.Abs)
			inside := gone == nil && (inside(real, farm.base+"/in") || inside(real, farm.base+"/in2"))
			data, _, err := p.ReadFile(t.Context())
			switch truth, broken := os.ReadFile(full); {
			case err == nil && (!inside || string(data) != string(truth)):
				t.Fatalf("farm %d: %q leads to %q (%v) and read as %q\n%v", seed, given, real, gone, data, farm.tree(t))
			case err == nil:
				read++
			case inside && broken == nil:
				t.Fatalf("farm %d: %q leads to %q inside, and was refused: %v", seed, given, real, err)
			case gone == nil && !inside && !strings.Contains(err.Error(), "outside"):
				t.Fatalf("farm %d: %q leads to %q outside, and gave %v", seed, given, real, err)
			case !inside:
				refused++
			}
			name := slices.Sorted(maps.Keys(pathMethods))[rng.IntN(len(pathMethods))]
			err = pathMethods[name].call(t.Context(), p)
			if name == "WriteFile" && err == nil {
				if truth, err := os.ReadFile(full); err != nil || string(truth) != "written" {
					t.Fatalf("farm %d: %q was written elsewhere: it has %q, %v", seed, given, truth, err)
				}
			}
			if got := farm.outside(t); !maps.Equal(got, outside) {
				t.Fatalf("farm %d: %s of %q (%v) changed something outside:\n%v\n%v", seed, name, given, err, outside, got)
			}
		}
		noTemps(t, farm.base)
	}
	if read < 50 || refused < 50 {
		t.Errorf("only %d paths were read and %d refused", read, refused)
	}
}

// A farm is a world of random files, folders and links; names are the paths of
// all of them below the base.
type farm struct {
	world
	names []string
}

func newFarm(t *testing.T, rng *rand.Rand) farm {
	t.Helper()
	f := farm{world: world{realDir(t)}, names: []string{"in", "in2", "out"}}
	dirs := slices.Clone(f.names)
	for _, dir := range dirs {
		if err := os.Mkdir(filepath.Join(f.base, dir), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 36 {
		dir := dirs[rng.IntN(len(dirs))]
		name := fmt.Sprintf("%s/%c", dir, 'a'+i%9)
		path := filepath.Join(f.base, name)
		var err error
		switch kind := rng.IntN(6); {
		case i < 3 || kind == 0:
			if err = os.MkdirAll(path, 0o777); err == nil {
				dirs = append(dirs, name)
			}
		case kind <= 2:
			err = os.WriteFile(path, []byte(name), 0o666)
		case !strings.HasPrefix(dir, "out"):
			err = os.Symlink(f.target(rng, dir), path)
		}
		if err == nil { // else something has the name already
			f.names = append(f.names, name)
		}
	}
	return f
}

// target is that of a link in dir: anything there is or might be, absolute or
// relative.
func (f farm) target(rng *rand.Rand, dir string) string {
	to := f.names[rng.IntN(len(f.names))]
	switch rng.IntN(4) {
	case 0:
		to += "/" + string(rune('a'+rng.IntN(9)))
	case 1:
		to += "/../" + string(rune('a'+rng.IntN(9)))
		if strings.Count(to, "/") < 3 || strings.HasPrefix(to, "out") {
			to = "in/a" // a way that turns back outside is refused, though the kernel goes it
		}
	}
	if rng.IntN(3) == 0 {
		return f.base + "/" + to
	}
	return strings.Repeat("../", strings.Count(dir, "/")+1) + to
}

func (f farm) path(rng *rand.Rand) string {
	name := f.names[rng.IntN(len(f.names))]
	for range rng.IntN(2) {
		name += "/" + []string{"a", "b", "c", "d", "..", "."}[rng.IntN(6)]
	}
	if rng.IntN(8) == 0 {
		name += "/"
	}
	if rng.IntN(2) == 0 {
		return f.base + "/" + name
	}
	return "../" + name
}

// outside is what there is outside of the roots.
func (f farm) outside(t *testing.T) map[string]string {
	t.Helper()
	all := f.tree(t)
	maps.DeleteFunc(all, func(name, _ string) bool { return strings.HasPrefix(name, "in") })
	return all
}
