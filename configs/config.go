package configs

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"

	"zenmcp/core"
)

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
	doc, err := ReadFile(filepath.Join(p.Home, "config.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return core.Config{}, nil, nil
	}
	if err != nil {
		return core.Config{}, nil, err
	}
	var config core.Config
	warnings, err := doc.Decode(&config)
	if err != nil {
		return core.Config{}, warnings, err
	}
	v := validator{doc: doc, warnings: warnings}
	v.config(config)
	if err := errors.Join(v.errs...); err != nil {
		return core.Config{}, v.warnings, err
	}
	return config, v.warnings, nil
}

// A validator collects what is wrong with the values of a document.
type validator struct {
	doc      *Document
	errs     []error
	warnings []*Problem
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

// ids checks the ids of a list and returns them. Of equal ones the first counts.
func (v *validator) ids(list string, n int, id func(int) string) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = id(i)
		switch {
		case all[i] == "":
			v.fail(errors.New("is missing or empty; others refer to the entry by it"), list, strconv.Itoa(i), "id")
		case slices.Contains(all[:i], all[i]):
			v.warn(fmt.Errorf("%q is the id of an entry before it, which is the one that counts", all[i]), list, strconv.Itoa(i), "id")
		}
	}
	return all
}

// refers checks that id is one of ids.
func (v *validator) refers(what, id string, ids []string, path ...string) {
	if !slices.Contains(ids, id) {
		v.warn(fmt.Errorf("there is no %s with the id %q%s", what, id, core.DidYouMean(id, ids)), path...)
	}
}

func (v *validator) least(n, least int64, path ...string) {
	if n < least {
		v.fail(fmt.Errorf("must be at least %d", least), path...)
	}
}
