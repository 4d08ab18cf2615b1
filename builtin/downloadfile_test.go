package builtin

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"zenmcp/core"
)

// newDownload is a download into dir that reaches every address.
func newDownload(t *testing.T, dir string) *download {
	t.Helper()
	return &download{call: &core.Call{Scope: newScope(t, core.Config{}, dir, dir)}, limit: 1 << 20, idle: 10 * time.Second}
}

func serve(t *testing.T, handler http.HandlerFunc) (base string) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

// A download that fails leaves nothing: no file, no folder, the old content.
func TestDownloadFailsWhole(t *testing.T) {
	t.Parallel()
	half := func(w http.ResponseWriter) {
		w.Write(bytes.Repeat([]byte("x"), 100_000))
		w.(http.Flusher).Flush()
	}
	tests := []struct {
		name    string
		handler http.HandlerFunc
		change  func(*download)
		want    string
	}{
		{"stall in the body", func(w http.ResponseWriter, r *http.Request) {
			half(w)
			<-r.Context().Done()
		}, func(d *download) { d.idle = 100 * time.Millisecond }, "sent nothing for 100ms"},
		{"stall before the answer", func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
		}, func(d *download) { d.idle = 100 * time.Millisecond }, "sent nothing for 100ms"},
		{"end in the middle of chunks", func(w http.ResponseWriter, _ *http.Request) {
			half(w)
			panic(http.ErrAbortHandler)
		}, nil, "ended the transfer early, after 100000 bytes"},
		{"less than announced", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100001")
			half(w)
		}, nil, "ended the transfer early"},
		{"more than the limit is announced", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100000")
			half(w)
		}, func(d *download) { d.limit = 99_999 }, "maxDownloadBytes"},
		{"more than the limit comes", func(w http.ResponseWriter, _ *http.Request) {
			half(w)
		}, func(d *download) { d.limit = 99_999 }, "maxDownloadBytes"},
		{"more than the limit is in a little", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			z.Write(make([]byte, 1<<20))
			z.Close()
		}, func(d *download) { d.limit = 99_999 }, "maxDownloadBytes"},
		{"redirect to another scheme", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "file:///etc/passwd", http.StatusFound)
		}, nil, "http"},
		{"redirect with a password", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://u:p@127.0.0.1:1/", http.StatusFound)
		}, nil, "password"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := writeTree(t, map[string]string{"old.txt": "precious"})
			d := newDownload(t, dir)
			if tt.change != nil {
				tt.change(d)
			}
			before := snapshot(t, dir)
			base := serve(t, tt.handler)
			for _, to := range []string{"old.txt", "a/b/new.txt", "c/"} {
				answer, err := d.run(t.Context(), downloadInput{base + "/x", to})
				if err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("to %q: %+v, %v; want an error that says %q", to, answer, err, tt.want)
				}
			}
			if err := (&vectorWant{FS: []byte(`"unchanged"`)}).checkFS(before, snapshot(t, dir), 0); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestDownloadCancelled(t *testing.T) {
	t.Parallel()
	begun := make(chan struct{})
	base := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Write([]byte("first"))
		w.(http.Flusher).Flush()
		close(begun)
		<-r.Context().Done()
	})
	dir := writeTree(t, map[string]string{"old.txt": "precious"})
	before := snapshot(t, dir)
	ctx, cancel := context.WithCancel(t.Context())
	var cancelled time.Time
	go func() {
		<-begun
		cancelled = time.Now()
		cancel()
	}()
	scope := newScope(t, core.Config{AllowPrivateNetwork: true}, dir)
	text, failed := callTool(t, ctx, scope, "downloadFile", mustJSON(t, downloadInput{base, "old.txt"}))
	if took := time.Since(cancelled); took > time.Second || !failed || !strings.Contains(text, `"aborted":true`) {
		t.Errorf("after %v: %v %s", took, failed, text)
	}
	if err := (&vectorWant{FS: []byte(`"unchanged"`)}).checkFS(before, snapshot(t, dir), 0); err != nil {
		t.Error(err)
	}
}

// Each hop is checked at the address that is connected to, whatever its name is.
func TestDownloadChecksEveryHop(t *testing.T) {
	t.Parallel()
	reached := false
	private := serve(t, func(http.ResponseWriter, *http.Request) { reached = true })
	_, port, _ := strings.Cut(strings.TrimPrefix(private, "http://"), ":")
	base := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.Query().Get("to"), http.StatusFound)
	})
	for _, to := range []string{"http://127.0.0.2:" + port, "http://[::1]:" + port, "http://[::ffff:127.0.0.2]:" + port} {
		d := newDownload(t, t.TempDir())
		d.control = func(ctx context.Context, network, address string, c syscall.RawConn) error {
			if strings.HasPrefix(address, "127.0.0.1:") { // as if it were public
				return nil
			}
			return publicOnly(ctx, network, address, c)
		}
		answer, err := d.run(t.Context(), downloadInput{URL: base + "?to=" + url.QueryEscape(to)})
		if _, ok := errors.AsType[*addressError](err); !ok || !strings.Contains(err.Error(), "allowPrivateNetwork") {
			t.Errorf("a redirect to %s gives %+v, %v", to, answer, err)
		}
	}
	for _, host := range []string{"localhost", "127.1", "2130706433", "0x7f000001", "[::]", "0.0.0.0"} {
		d := newDownload(t, t.TempDir())
		d.control = publicOnly
		if answer, err := d.run(t.Context(), downloadInput{URL: "http://" + host + ":" + port}); err == nil {
			t.Errorf("%s gives %+v", host, answer)
		}
	}
	if reached {
		t.Error("a private address was reached")
	}
}

func TestNotPublic(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		"0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.127.255.255", "127.0.0.1", "127.255.0.1", "169.254.169.254", "172.16.0.1", "172.31.255.255",
		"192.0.0.8", "192.0.2.1", "192.168.1.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255",
		"::", "::1", "::127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "100::1",
		"2001::1", "2001:db8::1", "2002:7f00:1::", "2002:c0a8:1::1", "fc00::1", "fd00:ec2::254", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1",
	} {
		if notPublic(netip.MustParseAddr(s)) == "" {
			t.Errorf("%s counts as public", s)
		}
	}
	for _, s := range []string{"1.1.1.1", "8.8.8.8", "100.63.255.255", "100.128.0.1", "172.32.0.1", "192.0.1.1", "198.20.0.1", "223.255.255.255",
		"::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::1", "2606:4700:4700::1111", "2a00:1450:4001::1"} {
		if kind := notPublic(netip.MustParseAddr(s)); kind != "" {
			t.Errorf("%s counts as %s", s, kind)
		}
	}
}

func TestDownloadNames(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 200)
	tests := []struct{ path, disposition, want string }{
		{"/a/b.txt", "", "b.txt"},
		{"/a%20b%3F.txt", "", "a b_.txt"},
		{"/%E6%97%A5.txt", "", "日.txt"},
		{"/..%2f..%2fevil.txt", "", "evil.txt"},
		{"/..%5C..%5Cevil.txt", "", "evil.txt"},
		{"/%2e%2e", "", ""},
		{"/a/..", "", ""},
		{"/", "", ""},
		{"", "", ""},
		{"/x%00y%0a%1b[2J", "", "x_y__[2J"},
		{"/%ff%fe.txt", "", "__.txt"},
		{"/abc%E2%80%AEtxt.exe", "", "abc_txt.exe"},
		{"/name.%20.", "", "name"},
		{"/CON", "", "_CON"},
		{"/nul.tar.gz", "", "_nul.tar.gz"},
		{"/com1.txt", "", "_com1.txt"},
		{"/LPT%C2%B9", "", "_LPT¹"},
		{"/com10.txt", "", "com10.txt"},
		{"/.gitignore", "", ".gitignore"},
		{"/" + url.PathEscape(long) + ".tar", "", long[:136] + ".tar"},
		{"/x", `attachment; filename="named.txt"`, "named.txt"},
		{"/x", `attachment; filename="../../etc/passwd"`, "passwd"},
		{"/x", `attachment; filename="C:\dir\file.txt"`, "file.txt"},
		{"/x", `inline; filename=plain.txt`, "plain.txt"},
		{"/x", `attachment; filename="old.txt"; filename*=UTF-8''n%C3%A4me.txt`, "näme.txt"},
		{"/x", `attachment; filename*=UTF-8''..%2Fevil`, "evil"},
		{"/x", `attachment; filename="=?UTF-8?B?bsOkbWUudHh0?="`, "näme.txt"},
		{"/x", `attachment; filename=".."`, "x"},
		{"/x", `attachment; filename=""`, "x"},
		{"/x", `attachment`, "x"},
		{"/x", `;;;`, "x"},
	}
	for _, tt := range tests {
		u, err := url.Parse("http://host" + tt.path)
		if err != nil {
			t.Fatal(err)
		}
		resp := &http.Response{Request: &http.Request{URL: u}, Header: http.Header{"Content-Disposition": {tt.disposition}}}
		got := downloadName(resp)
		if made := regexp.MustCompile(`^download_\d{13,}$`).MatchString(got); got != tt.want && (tt.want != "" || !made) {
			t.Errorf("%q, %q: %q, want %q", tt.path, tt.disposition, got, tt.want)
		}
	}
}

func FuzzSafeName(f *testing.F) {
	f.Add("../a:b\x00c. ")
	f.Fuzz(func(t *testing.T, name string) {
		got := safeName(name)
		if got == "" {
			return
		}
		if len(got) > maxName+1 || strings.ContainsAny(got, "/\\:\x00\n") || strings.Trim(got, " .") == "" || strings.HasSuffix(got, ".") {
			t.Errorf("safeName(%q) = %q", name, got)
		}
		if again := safeName(got); again != got {
			t.Errorf("safeName(%q) = %q, and again %q", name, got, again)
		}
	})
}

func TestDownloadReportsProgress(t *testing.T) {
	t.Parallel()
	const size = 300_000
	base := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(size))
		io.WriteString(w, strings.Repeat("x", size))
	})
	dir := t.TempDir()
	d := newDownload(t, dir)
	var reports []core.Progress
	d.call.Progress = func(p core.Progress) { reports = append(reports, p) }
	answer, err := d.run(t.Context(), downloadInput{base + "/name", "sub/"})
	if err != nil || answer.FilePath != filepath.Join(dir, "sub", "name") || answer.FileSize != "293.0 KB" {
		t.Fatalf("%+v, %v", answer, err)
	}
	if len(reports) == 0 || reports[0].Total != size || reports[0].Done <= 0 {
		t.Errorf("reports %+v", reports)
	}
	for i := 1; i < len(reports); i++ {
		if reports[i].Done <= reports[i-1].Done {
			t.Errorf("reports %+v", reports)
		}
	}
	if info, err := os.Stat(answer.FilePath); err != nil || info.Size() != size {
		t.Errorf("%v, %v", info, err)
	}
}
