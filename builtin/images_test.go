package builtin

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"math/rand/v2"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"zenmcp/core"
	"zenmcp/core/coretest"
)

// seeing is a configuration with a vision model at a service.
func seeing(base string) core.Config {
	return core.Config{
		DefaultModel: "v",
		Endpoints:    []core.Endpoint{{ID: "e", BaseURL: base, APIKey: "sk-secret-key"}},
		Models:       []core.ModelConfig{{ID: "v", EndpointID: "e", Vision: true}, {ID: "blind", EndpointID: "e"}},
	}
}

// noise is a PNG that does not compress, half of it transparent.
func noise(t testing.TB, width, height int) []byte {
	t.Helper()
	picture := image.NewNRGBA(image.Rect(0, 0, width, height))
	random := rand.New(rand.NewPCG(1, 2))
	for y := range height {
		for x := range width {
			n := random.Uint32()
			picture.SetNRGBA(x, y, color.NRGBA{uint8(n), uint8(n >> 8), uint8(n >> 16), uint8(255 * (x % 2))})
		}
	}
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(&out, picture); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestImageTools checks with which configurations and agents the tools are
// there: nothing but their own rules decides (seed, contract §2).
func TestImageTools(t *testing.T) {
	t.Parallel()
	full := seeing("http://service.test/v1")
	full.ImageModels, full.DefaultImageModel = []core.ImageModel{{ID: "i", EndpointID: "e"}}, "i"
	change := func(f func(*core.Config)) core.Config {
		c := full
		c.Endpoints, c.Models = slices.Clone(c.Endpoints), slices.Clone(c.Models)
		f(&c)
		return c
	}
	for i, c := range []struct {
		config     core.Config
		model      *string
		view, make bool
	}{
		{config: core.Config{}},
		{config: full, view: true, make: true},
		{config: full, model: new("blind"), make: true},
		{config: full, model: new("gone"), make: true},
		{config: full, model: new(""), make: true},
		{config: change(func(c *core.Config) { c.DefaultModel = "blind" }), make: true},
		{config: change(func(c *core.Config) { c.DefaultModel = "blind" }), model: new("v"), view: true, make: true},
		{config: change(func(c *core.Config) { c.DefaultModel = "" }), make: true},
		{config: change(func(c *core.Config) { c.Models = nil }), make: true},
		{config: change(func(c *core.Config) { c.DefaultImageModel = "" }), view: true},
		{config: change(func(c *core.Config) { c.DefaultImageModel = "other" }), view: true},
		{config: change(func(c *core.Config) { c.ImageModels = nil }), view: true},
		{config: change(func(c *core.Config) { c.Endpoints[0].APIKey = "" }), view: true},
	} {
		offer := offer(definitions())
		agent := core.AgentDefinition{ModelID: c.model}
		for name, want := range map[string]bool{"viewImage": c.view, "generateImage": c.make} {
			err := offer.Available(c.config, agent, core.Capability{Kind: core.KindTool, Name: name})
			if (err == nil) != want {
				t.Errorf("case %d: %s: %v, want it to be there: %v", i, name, err, want)
			}
		}
	}
}

// files is a Files API that keeps what it gets.
func files(t *testing.T, got *multipart.Form, header *http.Header) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/files" || r.Method != http.MethodPost || r.ParseMultipartForm(1<<20) != nil {
			http.Error(w, "not so", http.StatusBadRequest)
			return
		}
		*got, *header = *r.MultipartForm, r.Header
		io.WriteString(w, `{"id": "file-abc"}`)
	}))
	t.Cleanup(server.Close)
	return server.URL + "/v1"
}

// TestViewImageUpload checks what the Files API gets, and what a client and the
// run of an agent get.
func TestViewImageUpload(t *testing.T) {
	t.Parallel()
	var form multipart.Form
	var header http.Header
	config := seeing(files(t, &form, &header))
	dir := t.TempDir()
	data := noise(t, 4, 3)
	write(t, filepath.Join(dir, "in", "a.jpeg"), data)
	scope := newScope(t, config, dir)
	res := view(t, scope, "in/a.jpeg")
	line := core.Text(fmt.Sprintf("picture in/a.jpeg (image/png, 4×3, %s)", kilobytes(int64(len(data)))))
	if want := []core.Block{line, core.FileRef{ID: "file-abc", Name: "a.png"}}; !reflect.DeepEqual(res.Blocks, want) {
		t.Errorf("got %v, want %v", res.Blocks, want)
	}
	if header.Get("Authorization") != "Bearer sk-secret-key" || !slices.Equal(form.Value["purpose"], []string{"user_data"}) || len(form.File["file"]) != 1 {
		t.Fatalf("sent %v %v", header, form)
	}
	sent := form.File["file"][0]
	f, err := sent.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if got, err := io.ReadAll(f); err != nil || !bytes.Equal(got, data) || sent.Filename != "a.png" || sent.Header.Get("Content-Type") != "image/png" {
		t.Errorf("sent %q, %v, %d bytes, %v", sent.Filename, sent.Header, len(got), err)
	}
}

func view(t *testing.T, scope *core.Scope, what string) *core.Result {
	t.Helper()
	tool, ok := scope.Tools().Tool("viewImage")
	if !ok {
		t.Fatal("viewImage is not published")
	}
	res, err := tool.Run(t.Context(), &core.Call{Arguments: mustJSON(t, map[string]string{"path_or_url": what})})
	if err != nil {
		return core.ErrorResult(err)
	}
	return res
}

// TestViewImageURL checks what a client gets of an address, and what an agent's
// model does.
func TestViewImageURL(t *testing.T) {
	t.Parallel()
	scope := newScope(t, seeing("http://service.test"), t.TempDir())
	const at = "https://8.8.8.8/a/b.webp?x=1"
	res := view(t, scope, at)
	want := []core.Block{core.Text("picture " + at + " (image/webp by its name)"), core.ResourceLink{URI: at, Name: "b.webp", MIMEType: "image/webp"}}
	if !reflect.DeepEqual(res.Blocks, want) {
		t.Errorf("got %v, want %v", res.Blocks, want)
	}
	run, err := scope.Child(core.AgentDefinition{Permissions: core.AllowAll()})
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	want[1] = core.ImageURL{URL: at, MIMEType: "image/webp"}
	if res := view(t, run, at); !reflect.DeepEqual(res.Blocks, want) {
		t.Errorf("in a run: got %v, want %v", res.Blocks, want)
	}
}

func TestViewImageHosts(t *testing.T) {
	t.Parallel()
	known := map[string][]netip.Addr{
		"public.test":  {netip.MustParseAddr("8.8.8.8"), netip.MustParseAddr("2001:4860:4860::8888")},
		"private.test": {netip.MustParseAddr("10.0.0.1")},
		"mixed.test":   {netip.MustParseAddr("8.8.8.8"), netip.MustParseAddr("169.254.169.254")},
	}
	v := &viewer{lookup: func(_ context.Context, _, host string) ([]netip.Addr, error) {
		if addrs, ok := known[host]; ok {
			return addrs, nil
		}
		return nil, errors.New("no such host")
	}}
	for host, ok := range map[string]bool{
		"public.test": true, "private.test": false, "mixed.test": false, "unknown.test": true, "8.8.8.8": true,
		"localhost": false, "a.localhost": false, "LocalHost.": false, "127.0.0.2": false, "::1": false, "::ffff:127.0.0.1": false, "0.0.0.0": false,
		"169.254.169.254": false, "fe80::1": false, "fd00::1": false,
	} {
		if err := v.checkHost(t.Context(), host); (err == nil) != ok {
			t.Errorf("%s: %v, want it to pass: %v", host, err, ok)
		}
	}
}

// TestInline checks that a client gets a picture within the limit, whole or
// smaller, only with inlineImages (cases C79, decision 20).
func TestInline(t *testing.T) {
	t.Parallel()
	var form multipart.Form
	var header http.Header
	config := seeing(files(t, &form, &header))
	config.InlineImages = true
	dir := t.TempDir()
	small, large := noise(t, 20, 10), noise(t, 2000, 1200)
	write(t, filepath.Join(dir, "small.png"), small)
	write(t, filepath.Join(dir, "large.png"), large)
	scope := newScope(t, config, dir)

	res := view(t, scope, "small.png")
	if got, ok := res.Blocks[1].(core.Image); len(res.Blocks) != 3 || !ok || got.MIMEType != "image/png" || !bytes.Equal(got.Data, small) {
		t.Errorf("a small picture became %v", res.Blocks)
	}
	res = view(t, scope, "large.png")
	if len(res.Blocks) != 4 || !strings.Contains(res.Text(), fmt.Sprintf("image/png, 2000×1200, %s", kilobytes(int64(len(large))))) || !strings.Contains(res.Text(), "shown as image/jpeg, ") {
		t.Fatalf("a large picture became %.300v", res.Blocks)
	}
	got := res.Blocks[2].(core.Image)
	shown, err := pictureOf(got.Data)
	if err != nil || shown.media != "image/jpeg" || got.MIMEType != "image/jpeg" || base64.StdEncoding.EncodedLen(len(got.Data)) > maxInline {
		t.Fatalf("shown %v (%v), %d bytes", shown, err, len(got.Data))
	}
	if ratio := float64(shown.width) / float64(shown.height); shown.width > maxInlineSide || ratio < 1.65 || ratio > 1.69 {
		t.Errorf("it has %d×%d", shown.width, shown.height)
	}

	config.Endpoints[0].BaseURL = "http://127.0.0.1:1/v1"
	config.Endpoints[0].APIKey = ""
	scope = newScope(t, config, dir)
	res = view(t, scope, "small.png")
	if len(res.Blocks) != 3 || res.IsError || !strings.Contains(res.Text(), `note: it has no file id: model "v": endpoint "e" has no apiKey`) {
		t.Errorf("without a Files API: %v", res.Blocks)
	}
}

// TestBomb refuses a small file with a huge picture before it is decoded.
func TestBomb(t *testing.T) {
	t.Parallel()
	data := noise(t, 600, 600)
	copy(data[16:], []byte{0, 0, 0xff, 0xff, 0, 0, 0xff, 0xff}) // the size in IHDR
	p := &picture{data: data, media: "image/png", width: 0xffff, height: 0xffff}
	if _, _, err := p.inline(); err == nil || !strings.Contains(err.Error(), "65535×65535 pixels") {
		t.Errorf("got %v", err)
	}
}

// TestGenerateImageFile checks the file that an answer with bytes becomes (case
// C81, B39).
func TestGenerateImageFile(t *testing.T) {
	t.Parallel()
	data := noise(t, 5, 7)
	var asked []byte
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked, _ = io.ReadAll(r.Body)
		fmt.Fprintf(w, `{"created": 1, "data": [{"b64_json": %q}]}`, base64.StdEncoding.EncodeToString(data))
	}))
	defer server.Close()
	config := seeing(server.URL)
	config.ImageModels, config.DefaultImageModel, config.InlineImages = []core.ImageModel{{ID: "i", EndpointID: "e", ModelName: "api-i", DefaultSize: "1x1"}}, "i", true
	dir := t.TempDir()
	scope := newScope(t, config, dir, dir)
	tool, ok := scope.Tools().Tool("generateImage")
	if !ok {
		t.Fatal("generateImage is not published")
	}
	res, err := tool.Run(t.Context(), &core.Call{Arguments: []byte(`{"prompt": " a cat "}`)})
	if err != nil || res.IsError || len(res.Blocks) != 2 || strings.Contains(res.Text(), "secret") {
		t.Fatalf("got %v, %v", res, err)
	}
	if want := `{"model":"api-i","prompt":"a cat","size":"1x1"}`; string(asked) != want {
		t.Errorf("asked %s, want %s", asked, want)
	}
	made, err := filepath.Glob(filepath.Join(dir, "image-*.png"))
	if err != nil || len(made) != 1 {
		t.Fatalf("files %q", made)
	}
	if got, err := os.ReadFile(made[0]); err != nil || !bytes.Equal(got, data) {
		t.Errorf("the file is another picture (%v)", err)
	}
	if !strings.Contains(res.Text(), filepath.Base(made[0])) || !strings.Contains(res.Text(), `"width":5,"height":7`) {
		t.Errorf("the answer is %s", res.Text())
	}
	if shown, ok := res.Blocks[1].(core.Image); !ok || !bytes.Equal(shown.Data, data) {
		t.Error("the picture is not shown")
	}
}

// TestPictureReachesModel runs an agent that views a picture: its model is sent
// the id of the file after the result of the tool.
func TestPictureReachesModel(t *testing.T) {
	t.Parallel()
	var form multipart.Form
	var header http.Header
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.png"), noise(t, 4, 3))
	catalog, err := core.Discover(t.Context(), Source())
	if err != nil {
		t.Fatal(err)
	}
	model := coretest.Replies(coretest.Ask(coretest.Call("viewImage", map[string]string{"path_or_url": "a.png"})), coretest.Say("a dot"))
	model.Vision = true
	env := &core.Env{Models: model.Models}
	env.Update(seeing(files(t, &form, &header)), catalog)
	scope, err := core.NewScope(env, core.AgentDefinition{}, dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer scope.Close()
	agent := core.AgentDefinition{ID: "a", Permissions: core.AllowAll(), Messages: []core.Message{core.TextMessage("user", "look")}}
	if res, err := core.RunAgent(t.Context(), &core.Call{Scope: scope}, agent); err != nil || res.Text() != "a dot" {
		t.Fatalf("got %v, %v", res, err)
	}
	const want = `[{"text":"From the tool viewImage:","type":"text"},{"file":{"file_id":"file-abc"},"type":"file"}]`
	last := model.Requests()[1].Last()
	if last.Role != "user" || string(last.Content) != want {
		t.Errorf("the model was sent %s %s, want %s", last.Role, last.Content, want)
	}
}
