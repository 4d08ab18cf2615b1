package builtin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"syscall"
	"time"

	"zenmcp/core"
)

const (
	// maxRedirects is how many redirects are followed (contract §2).
	maxRedirects = 20
	// connectTimeout is for a connection and for its TLS.
	connectTimeout = 30 * time.Second
	// idleTimeout is how long a server may send nothing.
	idleTimeout = 60 * time.Second
	// progressEvery is the time between two reports.
	progressEvery = 500 * time.Millisecond
)

type downloadInput struct {
	URL        string `json:"url" jsonschema:"http or https"`
	OutputPath string `json:"outputPath,omitempty" jsonschema:"file, or folder (with a slash at its end if it is new); default: the working directory"`
}

type downloadAnswer struct {
	Success     bool   `json:"success"`
	FilePath    string `json:"filePath"`
	FileSize    string `json:"fileSize"`
	ContentType string `json:"contentType"`
	Note        string `json:"note"`
}

// downloadFile saves what a URL answers (contract §2, decision 14). The file is
// there when all of it is; nothing is left of a download that fails.
//
// Only public addresses are reached, see [publicOnly], unless the configuration
// has allowPrivateNetwork. A proxy would look names up itself and reach what it
// likes, so HTTP_PROXY and its like are used only with that, too.
func downloadFile() core.Definition {
	return core.Define(core.Tool{
		Name:        "downloadFile",
		Title:       "Download file",
		Description: "Download a URL to a file, replacing it. Missing folders are made.",
		Hints:       core.Hints{Destructive: true, OpenWorld: true},
	}, func(ctx context.Context, call *core.Call, in downloadInput) (*core.Result, error) {
		config := call.Scope.Config()
		d := download{call: call, limit: config.DownloadLimit(), idle: idleTimeout}
		if config.AllowPrivateNetwork {
			d.proxy = http.ProxyFromEnvironment
		} else {
			d.control = publicOnly
		}
		answer, err := d.run(ctx, in)
		switch {
		case ctx.Err() != nil:
			return core.FailJSON(failure{Aborted: true, Error: "the download was cancelled; nothing was saved"})
		case err != nil:
			return core.FailJSON(failure{Error: err.Error()})
		}
		return core.JSONResult(answer)
	})
}

// A download is one call of downloadFile.
type download struct {
	call    *core.Call
	limit   int64 // bytes
	idle    time.Duration
	control func(ctx context.Context, network, address string, c syscall.RawConn) error
	proxy   func(*http.Request) (*url.URL, error)
}

func (d *download) run(ctx context.Context, in downloadInput) (*downloadAnswer, error) {
	from, err := url.Parse(in.URL)
	if err == nil {
		err = checkURL(from)
	}
	if err != nil {
		return nil, fmt.Errorf("url %q: %w", core.Clip(in.URL, 200), reasonOf(err))
	}
	to, inside, err := d.target(ctx, in.OutputPath)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	idle := time.AfterFunc(d.idle, func() { stop(fmt.Errorf("url %q: the server sent nothing for %v", in.URL, d.idle)) })
	defer idle.Stop()
	answer, err := d.transfer(ctx, from, to, inside, idle)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return answer, err
}

// checkURL refuses what is not downloaded.
func checkURL(u *url.URL) error {
	switch {
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return errors.New("it must begin with http:// or https:// and a host")
	case u.User != nil:
		return errors.New("a name or password in a URL is not sent; leave it out")
	}
	return nil
}

// target is the file to write or, with inside, the folder to write into.
func (d *download) target(ctx context.Context, given string) (to core.Path, inside bool, err error) {
	if to, err = d.call.Scope.Path(cmp.Or(given, ".")); err != nil {
		return to, false, err
	}
	info, err := to.Stat(ctx)
	switch {
	case err == nil:
		return to, info.IsDir(), nil
	case errors.Is(err, fs.ErrNotExist):
		return to, given == "" || os.IsPathSeparator(given[len(given)-1]), nil
	}
	return to, false, err
}

// transfer fetches and saves.
func (d *download) transfer(ctx context.Context, from *url.URL, to core.Path, inside bool, idle *time.Timer) (*downloadAnswer, error) {
	client := d.client(idle)
	defer client.CloseIdleConnections()
	resp, err := d.get(ctx, client, from)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if inside {
		to = to.Join(downloadName(resp))
	}
	body := &downloadBody{d: d, resp: resp, idle: idle}
	note, err := save(ctx, to, body)
	if err != nil {
		return nil, err
	}
	answer := &downloadAnswer{true, to.Abs, kilobytes(body.done), resp.Header.Get("Content-Type"),
		fmt.Sprintf("saved %d bytes from %s", body.done, resp.Request.URL)}
	if note != "" {
		answer.Note += "; " + note
	}
	return answer, nil
}

func (d *download) client(idle *time.Timer) *http.Client {
	dialer := &net.Dialer{Timeout: connectTimeout, ControlContext: d.control}
	return &http.Client{
		Transport: &http.Transport{Proxy: d.proxy, DialContext: dialer.DialContext, TLSHandshakeTimeout: connectTimeout, ForceAttemptHTTP2: true},
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			idle.Reset(d.idle)
			if len(via) > maxRedirects {
				return fmt.Errorf("more than %d redirects", maxRedirects)
			}
			return checkURL(req.URL)
		},
	}
}

// get asks for the URL and returns an answer that can be saved.
func (d *download) get(ctx context.Context, client *http.Client, from *url.URL) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "zen-mcp")
	resp, err := client.Do(req)
	if err != nil {
		return nil, d.explain(req, err)
	}
	at := core.Clip(resp.Request.URL.String(), 200)
	switch {
	case resp.StatusCode/100 != 2:
		err = fmt.Errorf("url %q: the server answered %s", at, resp.Status)
	case resp.ContentLength > d.limit:
		err = fmt.Errorf("url %q: %w", at, d.tooBig())
	}
	if err != nil {
		resp.Body.Close()
	}
	return resp, err
}

// explain words an error of the client.
func (d *download) explain(req *http.Request, err error) error {
	at := req.URL.String()
	if failed, ok := errors.AsType[*url.Error](err); ok {
		at = failed.URL
	}
	explained := fmt.Errorf("url %q: %w", core.Clip(at, 200), reasonOf(err))
	if proxy, _ := http.ProxyFromEnvironment(req); proxy != nil && d.proxy == nil {
		return fmt.Errorf(`%w; the proxy %s was not used, since it reaches any address: "allowPrivateNetwork": true in config.json uses it`, explained, proxy.Redacted())
	}
	return explained
}

// reasonOf leaves out what net/http and net put around an error.
func reasonOf(err error) error {
	if refused, ok := errors.AsType[*addressError](err); ok {
		return refused
	}
	if failed, ok := errors.AsType[*url.Error](err); ok {
		return failed.Err
	}
	return err
}

func (d *download) tooBig() error {
	return fmt.Errorf(`the file has more than %d bytes, the limit; "maxDownloadBytes" in config.json raises it`, d.limit)
}

// A downloadBody reads the body of a response, watches over it and reports.
type downloadBody struct {
	d        *download
	resp     *http.Response
	idle     *time.Timer
	done     int64 // bytes
	reported time.Time
}

func (b *downloadBody) Read(p []byte) (int, error) {
	n, err := b.resp.Body.Read(p)
	b.done += int64(n)
	switch {
	case b.done > b.d.limit:
		err = b.d.tooBig()
	case err == io.ErrUnexpectedEOF:
		err = fmt.Errorf("the server ended the transfer early, after %d bytes", b.done)
	}
	if err != nil {
		b.idle.Stop()
		if err != io.EOF {
			err = fmt.Errorf("url %q: %w", core.Clip(b.resp.Request.URL.String(), 200), err)
		}
		return n, err
	}
	b.idle.Reset(b.d.idle)
	if now := time.Now(); now.Sub(b.reported) >= progressEvery {
		b.reported = now
		b.d.call.Report(core.Progress{Done: float64(b.done), Total: float64(max(b.resp.ContentLength, 0)), Message: kilobytes(b.done)})
	}
	return n, nil
}

// save makes the content of body that of a file, or changes nothing.
func save(ctx context.Context, to core.Path, body io.Reader) (note string, err error) {
	undo, err := makeParents(ctx, to)
	if err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			undo()
		}
	}()
	staged, err := to.Stage(ctx)
	if err != nil {
		return "", err
	}
	defer staged.Discard()
	if _, err := io.CopyBuffer(staged.Writer(ctx), body, make([]byte, 64<<10)); err != nil {
		return "", err
	}
	unlock, err := to.Lock(ctx)
	if err != nil {
		return "", err
	}
	defer unlock()
	return staged.Commit(ctx)
}

// makeParents makes the folders that are missing on the way to a file. undo
// removes them again, if nothing else has come into them.
func makeParents(ctx context.Context, to core.Path) (undo func(), err error) {
	real, err := to.Real(ctx)
	if err != nil {
		return nil, err
	}
	var made []core.Path // the innermost first
	for p := real.Parent(); ; p = p.Parent() {
		_, err := p.Stat(ctx)
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) || p.Parent() == p {
			return nil, err
		}
		made = append(made, p)
	}
	undo = func() {
		for _, p := range made {
			p.Remove(context.WithoutCancel(ctx))
		}
	}
	if len(made) > 0 {
		if err := made[0].MkdirAll(ctx); err != nil {
			undo()
			return nil, err
		}
	}
	return undo, nil
}

// kilobytes is a size as the contract has it: with one decimal, halves up.
func kilobytes(bytes int64) string {
	tenths := (bytes*10 + 512) / 1024
	return fmt.Sprintf("%d.%d KB", tenths/10, tenths%10)
}
