package builtin

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"zenmcp/core"
	"zenmcp/core/llm"
	"zenmcp/core/rawjson"
)

type generateImageInput struct {
	Prompt  string `json:"prompt"`
	Model   string `json:"model,omitempty" jsonschema:"id of an image model"`
	Size    string `json:"size,omitempty" jsonschema:"such as 1024x1024"`
	Quality string `json:"quality,omitempty"`
}

type generateImageAnswer struct {
	Success bool             `json:"success"`
	Model   string           `json:"model"`
	ModelID string           `json:"modelId"`
	Created int64            `json:"created"`
	Images  []generatedImage `json:"images"`
	Note    string           `json:"note"`
}

// A generatedImage is at a URL or in a file.
type generatedImage struct {
	Index       int    `json:"index"`
	URL         string `json:"url,omitempty"`
	Path        string `json:"path,omitempty"`
	MIMEType    string `json:"mimeType,omitempty"`
	Width       int    `json:"width,omitempty"`
	Height      int    `json:"height,omitempty"`
	Description string `json:"description,omitempty"`
}

// generateImage makes pictures from words (contract §2, decision 21). What the
// service sends as bytes is saved in the working directory, and with
// inlineImages an MCP client sees it as well.
func generateImage(models *llm.Service) core.Definition {
	in := core.SchemaFor[generateImageInput]()
	in.Properties["quality"].Enum = []any{"hd", "standard"}
	d := core.Define(core.Tool{
		Name:        "generateImage",
		Title:       "Generate image",
		Description: "Make a picture from a description. Returns URLs or the paths of files.",
		Input:       in,
		Hints:       core.Hints{OpenWorld: true},
	}, func(ctx context.Context, call *core.Call, in generateImageInput) (*core.Result, error) {
		res, err := generate(ctx, call.Scope, models, in)
		switch {
		case ctx.Err() != nil:
			return core.FailJSON(failure{Aborted: true, Error: "cancelled; the service may make the picture all the same"})
		case err != nil:
			return core.FailJSON(failure{Error: err.Error()})
		}
		return res, nil
	})
	d.Available = func(config core.Config, _ core.AgentDefinition) error {
		_, err := models.ImageModel(config, "")
		return err
	}
	return d
}

func generate(ctx context.Context, scope *core.Scope, models *llm.Service, in generateImageInput) (*core.Result, error) {
	prompt := strings.TrimSpace(in.Prompt)
	if prompt == "" {
		return nil, fmt.Errorf("prompt: must not be empty")
	}
	made, err := models.GenerateImages(ctx, scope.Config(), llm.ImageRequest{Prompt: prompt, Model: in.Model, Size: in.Size, Quality: in.Quality})
	if err != nil {
		return nil, err
	}
	answer := generateImageAnswer{Success: true, Model: cmp.Or(made.Model.Name, made.Model.ID), ModelID: made.Model.ID, Created: made.Created}
	res := &core.Result{Blocks: []core.Block{nil}} // the answer, when it is whole
	saved := 0
	for i, image := range made.Images {
		entry := generatedImage{Index: i, URL: image.URL, Description: image.Description}
		if image.Data != nil {
			saved++
			if err := entry.save(ctx, scope, image.Data, res); err != nil {
				return nil, err
			}
		}
		answer.Images = append(answer.Images, entry)
	}
	answer.Note = "The URLs may expire soon: downloadFile saves a picture, viewImage shows it."
	if saved == len(made.Images) {
		answer.Note = "The pictures are saved; viewImage shows one."
	}
	text, err := rawjson.Marshal(answer)
	if err != nil {
		return nil, err
	}
	res.Blocks[0] = core.Text(text)
	return res, nil
}

// save puts a picture into a new file in the working directory, and into the
// result if the client wants pictures.
func (g *generatedImage) save(ctx context.Context, scope *core.Scope, data []byte, res *core.Result) error {
	p, err := pictureOf(data)
	if err != nil {
		return fmt.Errorf("what the service sent %w", err)
	}
	name := fmt.Sprintf("image-%s-%s%s", time.Now().Format("20060102-150405"), strings.ToLower(rand.Text()[:6]), p.extension())
	file, err := scope.Path(name)
	if err != nil {
		return err
	}
	if _, err := save(ctx, file, bytes.NewReader(data)); err != nil {
		return err
	}
	g.Path, g.MIMEType, g.Width, g.Height = file.Abs, p.media, p.width, p.height
	if scope.Config().InlineImages && !inRun(scope) {
		if err := p.addInline(res); err != nil {
			res.Blocks = append(res.Blocks, core.Text(fmt.Sprintf("note: not shown: the picture %v", err)))
		}
	}
	return nil
}
