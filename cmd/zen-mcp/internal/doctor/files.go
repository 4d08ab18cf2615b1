package doctor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"zenmcp/configs"
	"zenmcp/core"
)

// files finds the places, says which of them there are, the one that wins first,
// and which the project's owner has not been trusted with.
func (e *exam) files(ctx context.Context) {
	places, err := configs.Find(e.Places)
	if err != nil {
		e.find("place-missing", err)
		return
	}
	e.places = places
	e.problems(places.Warnings, false)
	if _, err := os.Stat(places.Home); err == nil {
		e.fact("home", "%s", places.Home)
	} else if places.Home == "" {
		e.fact("home", "none, since the user has no home directory; the built-in defaults apply")
	} else {
		e.fact("home", "%s, which is not there; `zen-mcp init` makes it", places.Home)
	}
	e.fact("project", "%s", places.Project)
	for _, kind := range append([]core.Kind{configs.KindAgent}, core.Kinds()...) {
		use, err := places.Of(kind)
		for _, place := range use {
			if _, err := os.Lstat(place.Path); err == nil {
				e.fact(string(kind), "%s%s", place.Path, whose(place))
			}
		}
		for _, o := range core.Omissions(err) {
			e.untrusted[o.Origin] = true
			e.find("project-untrusted", o)
		}
	}
	e.secrets()
	e.discover(ctx)
	e.omissions("") // of no dimension
}

// secrets looks for files with keys that others can read; config.json is looked at
// when it is read.
func (e *exam) secrets() {
	var files []string
	if e.places.Home != "" {
		files = jsonFiles(filepath.Join(e.places.Home, "mcp-oauth"))
	}
	for _, place := range e.of(core.KindMCP) {
		files = append(files, place.Path)
	}
	for _, file := range files {
		if doc, err := configs.ReadFile(file); err == nil {
			found := doc.Secrets()
			e.problems(found[:min(len(found), 1)], false) // chmod helps all of them
		}
	}
}

func whose(p configs.Place) string {
	if p.Project {
		return " (the project's)"
	}
	return ""
}

// of lists the places of a dimension that are used.
func (e *exam) of(kind core.Kind) []configs.Place {
	use, _ := e.places.Of(kind) // the others are told by files
	return use
}

// configuration reads config.json, and says which limits hold and who set them.
func (e *exam) configuration(context.Context) {
	if e.places == nil {
		return
	}
	config, warnings, err := e.places.Config()
	e.config, e.broken = config, err != nil
	e.problems(configs.Problems(err), true)
	e.problems(warnings, false)
	if e.broken {
		return
	}
	doc := e.configFile()
	from := "the built-in defaults"
	if doc != nil {
		from = doc.File()
	}
	e.fact("read from", "%s", from)
	e.fact("models", "%s at %s; default %s", core.Plural(len(config.Models), "model"), core.Plural(len(config.Endpoints), "endpoint"), orNone(config.DefaultModel))
	e.limit(doc, "maxToolOutput", "%d characters of a result", config.OutputBudget())
	e.limit(doc, "maxDownloadBytes", "%s", orDefault(config.MaxDownloadBytes, fmt.Sprintf("%d GiB", core.DefaultMaxDownloadBytes>>30)))
	e.limit(doc, "allowPrivateNetwork", "%v", config.AllowPrivateNetwork)
}

// configFile is config.json; nil when there is none that can be read.
func (e *exam) configFile() *configs.Document {
	if e.places.Home == "" {
		return nil
	}
	doc, err := configs.ReadFile(filepath.Join(e.places.Home, "config.json"))
	if err != nil {
		return nil
	}
	return doc
}

// limit says what a limit is and where it comes from.
func (e *exam) limit(doc *configs.Document, field, format string, value any) {
	from := "default"
	if doc != nil {
		if member, ok := doc.At(field); ok {
			from = filepath.Base(member.Problem(nil).Place())
		}
	}
	e.fact(field, format+" (%s)", value, from)
}

func orNone(id string) string {
	if id == "" {
		return "none"
	}
	return fmt.Sprintf("%q", id)
}

func orDefault(bytes int64, otherwise string) string {
	if bytes == 0 {
		return otherwise
	}
	return fmt.Sprintf("%d bytes", bytes)
}

// boundary finds the working directory and the roots.
func (e *exam) boundary(context.Context) {
	if e.places == nil {
		return
	}
	var err error
	if e.dir, err = e.Dir(e.places.Project); err != nil {
		e.find("place-missing", err)
		e.dir = e.places.Project
	}
	if e.roots, e.dir, err = e.Roots(e.dir); err != nil {
		e.find("root-missing", err)
	}
	e.fact("directory", "%s", e.dir)
	for _, root := range e.roots.List() {
		e.fact("root", "%s", root)
	}
}
