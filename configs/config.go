package configs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"zenmcp/core"
	"zenmcp/core/rawjson"
)

const configName = "config.json"

// Config reads config.json of the home. Without one, or without a home, the
// configuration has no endpoints and no models. A file replaces that whole. An
// apiKey stays as it is written, ${NAME} included.
//
// An entry that is of no use, such as a model at an endpoint that is not there,
// is a warning; what cannot be understood is an error, and nothing is guessed.
func (p *Places) Config() (core.Config, []*Problem, error) {
	if p.Home == "" {
		return core.Config{}, nil, nil
	}
	doc, err := ReadFile(filepath.Join(p.Home, configName))
	if errors.Is(err, fs.ErrNotExist) {
		return core.Config{}, nil, nil
	}
	if err != nil {
		return core.Config{}, nil, err
	}
	var config core.Config
	v := validator{doc: doc}
	if v.decode(&config) {
		v.config(config)
		v.warnings = append(v.warnings, doc.Secrets()...)
	}
	if len(v.errs) > 0 {
		config = core.Config{}
	}
	return config, v.warnings, errors.Join(v.errs...)
}

// A validator collects what is wrong with a document.
type validator struct {
	doc      *Document
	errs     []error
	warnings []*Problem
}

// decode decodes the document and reports whether there is a value to look at.
func (v *validator) decode(value any) bool {
	if v.doc.Kind() != rawjson.Object {
		v.fail(errors.New("the file must hold one object, { … }"))
		return false
	}
	warnings, err := v.doc.Decode(value)
	v.warnings = append(v.warnings, warnings...)
	if err != nil {
		v.errs = append(v.errs, err)
	}
	return err == nil
}

func (v *validator) fail(err error, path ...string) {
	v.errs = append(v.errs, v.doc.Problem(&core.FieldError{Path: path, Err: err}))
}

func (v *validator) warn(err error, path ...string) {
	v.warnings = append(v.warnings, v.doc.Problem(&core.FieldError{Path: path, Err: err}))
}

func (v *validator) config(c core.Config) {
	endpoints := v.ids("endpoints", len(c.Endpoints), func(i int) string { return c.Endpoints[i].ID })
	models := v.ids("models", len(c.Models), func(i int) string { return c.Models[i].ID })
	images := v.ids("imageModels", len(c.ImageModels), func(i int) string { return c.ImageModels[i].ID })
	for i, e := range c.Endpoints {
		if u, err := url.Parse(e.BaseURL); e.BaseURL != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
			v.warn(errors.New("is not an http or https URL"), "endpoints", strconv.Itoa(i), "baseUrl")
		}
	}
	for i, m := range c.Models {
		v.refers("endpoint", m.EndpointID, endpoints, "models", strconv.Itoa(i), "endpointId")
		v.least(int64(m.MaxContextTokens), 0, "models", strconv.Itoa(i), "maxContextTokens")
	}
	for i, m := range c.ImageModels {
		v.refers("endpoint", m.EndpointID, endpoints, "imageModels", strconv.Itoa(i), "endpointId")
	}
	if c.DefaultModel != "" {
		v.refers("model", c.DefaultModel, models, "defaultModel")
	}
	if c.DefaultImageModel != "" {
		v.refers("image model", c.DefaultImageModel, images, "defaultImageModel")
	}
	if c.DefaultAgent != "" {
		if err := plainName(c.DefaultAgent); err != nil {
			v.fail(err, "defaultAgent")
		}
	}
	if c.MaxToolOutput != nil {
		v.least(int64(*c.MaxToolOutput), 1, "maxToolOutput")
	}
	v.least(c.MaxDownloadBytes, 0, "maxDownloadBytes")
}

// Secrets warns of each key, token and password that is written out in a file that
// others on the machine can read (B08). One in an environment variable is not.
func (d *Document) Secrets() []*Problem {
	info, err := os.Stat(d.file)
	if err != nil || runtime.GOOS == "windows" || info.Mode().Perm()&0o077 == 0 {
		return nil
	}
	why := Exposed.Of(fmt.Errorf("others on this machine may read the key; chmod 600 %q", d.file))
	var all []*Problem
	for _, m := range d.Members() {
		var text string
		if core.IsSecret(m.Name) && json.Unmarshal(m.Value.JSON(), &text) == nil && text != "" && !strings.Contains(text, "${") {
			all = append(all, m.Value.Problem(why))
		}
		all = append(all, m.Value.Secrets()...)
	}
	for _, e := range d.Elements() {
		all = append(all, e.Secrets()...)
	}
	return all
}

// ids checks the ids of a list and returns them. Of equal ones the first counts.
func (v *validator) ids(list string, n int, id func(int) string) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = id(i)
		switch {
		case all[i] == "":
			v.fail(errors.New("is missing or empty; others refer to the entry by it"), list, strconv.Itoa(i), "id")
		case slices.Contains(all[:i], all[i]):
			v.warn(Twice.Of(fmt.Errorf("%q is the id of an entry before it, which is the one that counts", all[i])), list, strconv.Itoa(i), "id")
		}
	}
	return all
}

// refers checks that id is one of ids.
func (v *validator) refers(what, id string, ids []string, path ...string) {
	if id == "" {
		v.warn(Unresolved.Of(fmt.Errorf("is missing or empty; it is the id of an %s", what)), path...)
	} else if !slices.Contains(ids, id) {
		v.warn(Unresolved.Of(fmt.Errorf("there is no %s with the id %q%s", what, id, core.DidYouMean(id, ids))), path...)
	}
}

func (v *validator) least(n, least int64, path ...string) {
	if n < least {
		v.fail(fmt.Errorf("must be at least %d", least), path...)
	}
}
