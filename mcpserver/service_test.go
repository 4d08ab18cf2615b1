package mcpserver

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"zenmcp/core"
)

// serving runs ServeHTTP with a server until stop is called, which returns its
// result.
func serving(t *testing.T, s *Server, o ServeOptions) (addr string, stop func() error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	started := make(chan struct{})
	o.Ready = func() { close(started) }
	go func() {
		served <- ServeHTTP(ctx, l, o, func(context.Context) (*Server, error) { return s, nil })
	}()
	<-started
	stop = sync.OnceValue(func() error { cancel(); return <-served })
	t.Cleanup(func() { stop() })
	return "http://" + l.Addr().String(), stop
}

// eventually asks again and again, for what nobody tells.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(20 * time.Second); !is(); {
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("it is not %s", what)
		}
	}
}

// TestNotReadyUntilThereIsAServer: and not ready when it shuts down.
func TestNotReadyUntilThereIsAServer(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := "http://" + l.Addr().String()
	s := newTestServer(t)
	ctx, cancel := context.WithCancel(t.Context())
	may, made := make(chan struct{}), make(chan struct{})
	served := make(chan error, 1)
	go func() {
		served <- ServeHTTP(ctx, l, ServeOptions{}, func(context.Context) (*Server, error) {
			<-may
			defer close(made)
			return s, nil
		})
	}()
	status := func(path string) int { return request{method: "GET", url: at + path}.do(t).status }
	if healthy, ready, mcp := status("/healthz"), status("/readyz"), status("/mcp"); healthy != 200 || ready != 503 || mcp != 503 {
		t.Errorf("before: %d, %d, %d", healthy, ready, mcp)
	}
	close(may)
	<-made
	// The handler is there a moment after the server.
	eventually(t, "ready", func() bool { return status("/readyz") == 200 })
	s.draining.Store(true)
	if healthy, ready := status("/healthz"), status("/readyz"); healthy != 200 || ready != 503 {
		t.Errorf("draining: %d, %d", healthy, ready)
	}
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

func TestStartFails(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	if err := ServeHTTP(t.Context(), l, ServeOptions{}, func(context.Context) (*Server, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("err = %v", err)
	}
}

// TestShutdownLetsCallsFinish: a call that ends within the grace period is
// answered, one that does not is cancelled and answered too, a stream ends with
// its result, and what a tool has started ends.
func TestShutdownLetsCallsFinish(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	begun := make(chan string, 2)
	var childEnded atomic.Bool
	slow := define("slow", func(_ context.Context, call *core.Call, text string) (*core.Result, error) {
		call.Scope.OnClose(func() error { childEnded.Store(true); return nil })
		begun <- text
		<-release
		return core.TextResult("finished"), nil
	})
	stuck := define("stuck", func(ctx context.Context, _ *core.Call, text string) (*core.Result, error) {
		begun <- text
		<-ctx.Done()
		return nil, context.Cause(ctx)
	})
	s := newTestServer(t, tools{slow, stuck})
	at, stop := serving(t, s, ServeOptions{Grace: 300 * time.Millisecond})
	answers := make(chan string, 3)
	send := func(body string, headers []string) {
		go func() { answers <- request{"POST", at + "/mcp", body, headers}.do(t).body }()
	}
	call, headers := modernCall("slow", "x")
	send(call, headers)
	<-begun
	call, headers = modernCall("stuck", "x")
	send(call, headers)
	<-begun
	listening := listen(t, at)
	stopped := make(chan error, 1)
	go func() { stopped <- stop() }()
	eventually(t, "shutting down", s.draining.Load)
	close(release)
	if got := <-answers; !strings.Contains(got, "finished") {
		t.Errorf("the call that ends is answered %q", got)
	}
	if got := <-answers; !strings.Contains(got, errShutdown.Error()) {
		t.Errorf("the call that does not is answered %q", got)
	}
	if got := <-listening; !strings.Contains(got, `"result"`) {
		t.Errorf("the stream ended with %q", got)
	}
	if err := <-stopped; err != nil || !childEnded.Load() {
		t.Errorf("shutdown: %v; the scope ended: %v", err, childEnded.Load())
	}
	if _, err := net.Dial("tcp", strings.TrimPrefix(at, "http://")); err == nil {
		t.Error("connections are still accepted")
	}
}

// listen opens a stream of the revision without sessions, waits until it is open,
// and returns the last event.
func listen(t *testing.T, at string) <-chan string {
	t.Helper()
	body := `{"jsonrpc":"2.0","id":9,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/protocolVersion":"` + modern + `","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`
	res, err := http.DefaultClient.Do(request{"POST", at + "/mcp", body, []string{headerVersion, modern, headerMethod, methodListen}}.make(t))
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(res.Body)
	if !lines.Scan() {
		t.Fatalf("the stream is %d and empty", res.StatusCode)
	}
	last := make(chan string, 1)
	go func() {
		defer res.Body.Close()
		line := ""
		for lines.Scan() {
			if strings.HasPrefix(lines.Text(), "data:") {
				line = lines.Text()
			}
		}
		last <- line
	}()
	return last
}

// TestShutdownUnderLoadLosesNoAnswer: each call that a tool has finished reaches
// its client, and what does not was not begun or was cancelled.
func TestShutdownUnderLoadLosesNoAnswer(t *testing.T) {
	t.Parallel()
	var finished, answered atomic.Int64
	enough := make(chan struct{})
	work := define("work", func(ctx context.Context, _ *core.Call, _ string) (*core.Result, error) {
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if finished.Add(1) == 100 {
			close(enough)
		}
		return core.TextResult("finished"), nil
	})
	s := newTestServer(t, tools{work})
	at, stop := serving(t, s, ServeOptions{Grace: 10 * time.Second})
	call, headers := modernCall("work", "")
	var callers sync.WaitGroup
	for range 16 {
		client := &http.Client{Transport: &http.Transport{}}
		callers.Go(func() {
			for {
				res, err := client.Do(request{"POST", at + "/mcp", call, headers}.make(t))
				if err != nil {
					return // the server is gone
				}
				body, err := io.ReadAll(res.Body)
				res.Body.Close()
				if err == nil && strings.Contains(string(body), "finished") {
					answered.Add(1)
				}
			}
		})
	}
	<-enough
	if err := stop(); err != nil {
		t.Error(err)
	}
	callers.Wait()
	if finished.Load() != answered.Load() {
		t.Errorf("%d calls finished, %d were answered", finished.Load(), answered.Load())
	}
}

// certificate writes a certificate for localhost and its key.
func certificate(t *testing.T, dir string, serial int64) (cert, key string, roots *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "localhost"},
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "EC PRIVATE KEY", Bytes: encoded}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots = x509.NewCertPool()
	roots.AddCert(parsed)
	return cert, key, roots
}

func TestTLS(t *testing.T) {
	t.Parallel()
	cert, key, roots := certificate(t, t.TempDir(), 1)
	at, _ := serving(t, newTestServer(t), ServeOptions{CertFile: cert, KeyFile: key})
	for _, http2 := range []bool{false, true} {
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: http2}}
		call, headers := modernCall("echo", "hello")
		res, err := client.Do(request{"POST", strings.Replace(at, "http:", "https:", 1) + "/mcp", call, headers}.make(t))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		if res.Body.Close(); err != nil || !strings.Contains(string(body), "hello") || http2 != (res.ProtoMajor == 2) {
			t.Errorf("%s: %s, %v", res.Proto, body, err)
		}
		client.CloseIdleConnections()
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := ServeHTTP(t.Context(), l, ServeOptions{CertFile: key, KeyFile: cert}, nil); err == nil {
		t.Error("files that are no certificate are accepted")
	}
}
