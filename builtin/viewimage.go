package builtin

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net"
	"net/netip"
	"net/url"
	"path"
	"path/filepath"
	"strings"
	"time"

	"zenmcp/core"
	"zenmcp/core/llm"
)

type viewImageInput struct {
	PathOrURL string `json:"path_or_url" jsonschema:"png, jpeg, gif or webp file, or http(s) URL"`
}

// A viewer is what viewImage works with.
type viewer struct {
	models *llm.Service
	// lookup finds the addresses of a host.
	lookup func(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// viewImage shows a picture (contract §2, decision 20). In the run of an agent
// its model sees it: by a URL that the model's service fetches, or as a file that
// is uploaded there. An MCP client gets a link, or the id of the file and, with
// inlineImages, the picture itself. What kind of picture it is, its bytes say.
func viewImage(models *llm.Service) core.Definition {
	v := &viewer{models: models, lookup: net.DefaultResolver.LookupNetIP}
	return v.definition()
}

func (v *viewer) definition() core.Definition {
	d := core.Define(core.Tool{
		Name:        "viewImage",
		Title:       "View image",
		Description: "Show a picture from a file or URL.",
		Hints:       core.Hints{OpenWorld: true}, // a file that is uploaded stays where it went
	}, v.run)
	d.Available = func(config core.Config, agent core.AgentDefinition) error {
		sees, err := llm.Vision(config, agent)
		if err == nil && !sees {
			err = errors.New("the agent's model does not see pictures: config.json has no \"vision\": true for it")
		}
		return err
	}
	return d
}

func (v *viewer) run(ctx context.Context, call *core.Call, in viewImageInput) (*core.Result, error) {
	given := strings.TrimSpace(in.PathOrURL)
	if given == "" {
		return nil, core.InField("path_or_url", errors.New("must not be empty"))
	}
	if scheme, _, ok := strings.Cut(given, "://"); ok || hasPrefixFold(given, "data:") || hasPrefixFold(given, "file:") {
		if !strings.EqualFold(scheme, "http") && !strings.EqualFold(scheme, "https") {
			return nil, fmt.Errorf("%q is neither a path nor an http or https URL", core.Clip(given, 100))
		}
		return v.url(ctx, call.Scope, given)
	}
	return v.file(ctx, call.Scope, given)
}

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

// inRun reports whether the caller is an agent whose model sees the result,
// instead of an MCP client.
func inRun(scope *core.Scope) bool { return scope.Client() != scope }

// lookupTimeout is how long the address of a host may take to find.
const lookupTimeout = 5 * time.Second

// url passes an address on. Nothing is fetched here, but what is not public would
// be fetched by a service in our name, if it could be (B13).
func (v *viewer) url(ctx context.Context, scope *core.Scope, given string) (*core.Result, error) {
	u, err := url.Parse(given)
	if err == nil {
		err = checkURL(u)
	}
	if err == nil && !scope.Config().AllowPrivateNetwork {
		err = v.checkHost(ctx, u.Hostname())
	}
	if err != nil {
		return nil, fmt.Errorf("url %q: %w", core.Clip(given, 200), reasonOf(err))
	}
	media := mime.TypeByExtension(path.Ext(u.Path))
	if !strings.HasPrefix(media, "image/") {
		media = ""
	}
	line := core.Text("picture " + given)
	if media != "" {
		line = core.Text(fmt.Sprintf("picture %s (%s by its name)", given, media))
	}
	if inRun(scope) {
		return &core.Result{Blocks: []core.Block{line, core.ImageURL{URL: given, MIMEType: media}}}, nil
	}
	return &core.Result{Blocks: []core.Block{line, core.ResourceLink{URI: given, Name: path.Base(u.Path), MIMEType: media}}}, nil
}

// checkHost refuses hosts with an address that is not public. One that has no
// address here may have one where it is fetched.
func (v *viewer) checkHost(ctx context.Context, host string) error {
	var addrs []netip.Addr
	if addr, err := netip.ParseAddr(host); err == nil {
		addrs = []netip.Addr{addr}
	} else if name := strings.TrimSuffix(strings.ToLower(host), "."); name == "localhost" || strings.HasSuffix(name, ".localhost") {
		addrs = []netip.Addr{netip.IPv6Loopback()}
	} else {
		ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
		defer cancel()
		addrs, _ = v.lookup(ctx, "ip", host)
	}
	for _, addr := range addrs {
		if kind := notPublic(addr); kind != "" {
			return &addressError{addr, kind}
		}
	}
	return nil
}

func (v *viewer) file(ctx context.Context, scope *core.Scope, given string) (*core.Result, error) {
	p, name, err := readPicture(ctx, scope, given)
	if err != nil {
		return nil, err
	}
	res := &core.Result{Blocks: []core.Block{core.Text(fmt.Sprintf("picture %s (%v)", given, p))}}
	if scope.Config().InlineImages && !inRun(scope) {
		if err := p.addInline(res); err != nil {
			return nil, fmt.Errorf("%q %w", given, err)
		}
	}
	id, err := v.models.Upload(ctx, scope.Config(), scope.Agent(), name, p.media, p.data)
	switch {
	case err == nil:
		res.Blocks = append(res.Blocks, core.FileRef{ID: id, Name: name})
	case ctx.Err() != nil || len(res.Blocks) == 1:
		return nil, err
	default: // there is a picture already
		res.Blocks = append(res.Blocks, core.Text(fmt.Sprintf("note: it has no file id: %v", err)))
	}
	return res, nil
}

// addInline adds the picture itself to a result, with a note if it is smaller.
func (p *picture) addInline(res *core.Result) error {
	block, note, err := p.inline()
	if err != nil {
		return err
	}
	if note != "" {
		res.Blocks = append(res.Blocks, core.Text(note))
	}
	res.Blocks = append(res.Blocks, block)
	return nil
}

// readPicture reads a file, and names it by its real type for those who look at
// names.
func readPicture(ctx context.Context, scope *core.Scope, given string) (*picture, string, error) {
	file, err := scope.Path(given)
	if err != nil {
		return nil, "", err
	}
	data, info, err := file.ReadHead(ctx, maxPicture+1)
	if err != nil {
		return nil, "", err
	}
	if len(data) > maxPicture {
		return nil, "", fmt.Errorf("%q has %d bytes; pictures of up to %d MB are shown, so make it smaller", given, info.Size(), maxPicture>>20)
	}
	p, err := pictureOf(data)
	if err != nil {
		return nil, "", fmt.Errorf("%q %w", given, err)
	}
	name := file.Base()
	extension := filepath.Ext(name)
	if real := mime.TypeByExtension(strings.ToLower(extension)); real != p.media {
		name = strings.TrimSuffix(name, extension) + p.extension()
	}
	return p, name, nil
}
