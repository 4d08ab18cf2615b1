package llm

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"

	"zenmcp/core"
	"zenmcp/core/rawjson"
)

// An ImageRequest asks for pictures. Only Prompt is needed.
type ImageRequest struct {
	Prompt  string
	Model   string // id of an image model; else defaultImageModel
	Size    string // else the model's defaultSize
	Quality string // else the model's defaultQuality
}

// Images is the answer to an [ImageRequest].
type Images struct {
	Model   core.ImageModel
	Created int64 // Unix seconds, as the service says
	Images  []GeneratedImage
}

// A GeneratedImage is a picture by its address or by its bytes.
type GeneratedImage struct {
	URL         string
	Data        []byte
	Description string // the prompt as the service changed it
}

// ImageModel finds an image model: the one with the id, else the default one. The
// error says why it cannot be used.
func (s *Service) ImageModel(config core.Config, id string) (core.ImageModel, error) {
	m, _, err := s.imageModel(config, id)
	return m, err
}

func (s *Service) imageModel(config core.Config, id string) (core.ImageModel, *endpoint, error) {
	if id = cmp.Or(id, config.DefaultImageModel); id == "" {
		return core.ImageModel{}, nil, errors.New("config.json has no defaultImageModel")
	}
	ids := make([]string, len(config.ImageModels))
	for i, m := range config.ImageModels {
		if m.ID == id {
			e, err := s.endpoint(config, m.EndpointID)
			if err != nil {
				err = fmt.Errorf("image model %q: %w", id, err)
			}
			return m, e, err
		}
		ids[i] = m.ID
	}
	hint := core.DidYouMean(id, ids)
	if hint == "" {
		hint = fmt.Sprintf("; there are %q", ids)
	}
	return core.ImageModel{}, nil, fmt.Errorf("config.json has no image model with the id %q%s", id, hint)
}

// GenerateImages asks an image model for pictures. An answer without any is an
// error.
func (s *Service) GenerateImages(ctx context.Context, config core.Config, r ImageRequest) (*Images, error) {
	m, e, err := s.imageModel(config, r.Model)
	if err != nil {
		return nil, err
	}
	body := map[string]string{"model": cmp.Or(m.ModelName, m.ID), "prompt": r.Prompt}
	for name, value := range map[string]string{"size": cmp.Or(r.Size, m.DefaultSize), "quality": cmp.Or(r.Quality, m.DefaultQuality)} {
		if value != "" {
			body[name] = value
		}
	}
	encoded, err := rawjson.Marshal(body)
	if err != nil {
		return nil, err
	}
	images := openai.NewImageService(e.options...)
	params := param.Override[openai.ImageGenerateParams](encoded)
	out := &Images{Model: m}
	err = e.retry(ctx, imageAttempts, func(ctx context.Context, w *watch) error {
		var res *http.Response
		if _, err := images.Generate(ctx, params, option.WithResponseBodyInto(&res)); err != nil {
			return err
		}
		data, err := readAll(w, res)
		if err != nil {
			return err
		}
		return out.read(data)
	})
	return out, err
}

// maxImages bounds an answer with pictures, in bytes.
const maxImages = 128 << 20

func readAll(w *watch, res *http.Response) ([]byte, error) {
	defer res.Body.Close()
	return io.ReadAll(io.LimitReader(w.body(res.Body), maxImages))
}

func (i *Images) read(data []byte) error {
	var answer struct {
		Created int64
		Data    []struct {
			URL     string
			B64     string `json:"b64_json"`
			Revised string `json:"revised_prompt"`
		}
	}
	if err := json.Unmarshal(data, &answer); err != nil {
		return &failure{err: fmt.Errorf("the answer is not the API's: %q", core.Clip(string(data), 200))}
	}
	i.Created, i.Images = answer.Created, nil
	for _, d := range answer.Data {
		image := GeneratedImage{URL: d.URL, Description: d.Revised}
		if inline, ok := strings.CutPrefix(d.URL, "data:"); ok { // bytes where an address belongs
			_, d.B64, _ = strings.Cut(inline, ",")
			image.URL = ""
		}
		if d.B64 != "" {
			bytes, err := base64.StdEncoding.DecodeString(d.B64)
			if err != nil {
				return &failure{err: errors.New("the picture in the answer is not valid base64")}
			}
			image.Data = bytes
		}
		if image.URL != "" || image.Data != nil {
			i.Images = append(i.Images, image)
		}
	}
	if len(i.Images) == 0 {
		return &failure{err: errors.New("the answer holds no picture")}
	}
	return nil
}

// fallbackFiles is the id of the endpoint that takes files when the agent's model
// has none that can be used (decision 20).
const fallbackFiles = "deepseek"

// Upload gives a file to the Files API of the endpoint of an agent's model, else
// of the one with the id deepseek, and returns the file's id.
func (s *Service) Upload(ctx context.Context, config core.Config, agent core.AgentDefinition, name, media string, data []byte) (id string, err error) {
	e, err := s.filesEndpoint(config, agent)
	if err != nil {
		return "", err
	}
	files := openai.NewFileService(e.options...)
	err = e.retry(ctx, imageAttempts, func(ctx context.Context, w *watch) error {
		var res *http.Response
		params := openai.FileNewParams{File: openai.File(bytes.NewReader(data), name, media), Purpose: openai.FilePurposeUserData}
		if _, err := files.New(ctx, params, option.WithResponseBodyInto(&res)); err != nil {
			return err
		}
		answer, err := readAll(w, res)
		if err != nil {
			return err
		}
		var file struct{ ID string }
		if err := json.Unmarshal(answer, &file); err != nil || file.ID == "" {
			return &failure{err: fmt.Errorf("the answer names no file: %q", core.Clip(string(answer), 200))}
		}
		id = file.ID
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("uploading %q: %w", name, err)
	}
	return id, nil
}

func (s *Service) filesEndpoint(config core.Config, agent core.AgentDefinition) (*endpoint, error) {
	m, err := chatModel(config, agent)
	var e *endpoint
	if err == nil {
		e, err = s.modelEndpoint(config, m)
	}
	if err != nil {
		if other, otherErr := s.endpoint(config, fallbackFiles); otherErr == nil {
			return other, nil
		}
	}
	return e, err
}
