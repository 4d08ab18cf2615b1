package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

func healthCommand() command {
	return command{
		name: "health", summary: "ask a server on this machine whether it is ready, as a container's health check; exit 1 if not",
		shared: none,
		flags: func(o *options, set *pflag.FlagSet) {
			set.StringVar(&o.http.addr, "http", "", "the server's own --http `ADDR`")
			set.StringVar(&o.http.serve.CertFile, "tls-cert", "", "the server's own --tls-cert `FILE`: ask over HTTPS")
		},
		run: runHealth,
	}
}

// healthTimeout is how long a server may take to answer.
const healthTimeout = 3 * time.Second

// runHealth is there for images that hold nothing but this program: no shell, no
// curl. It takes the server's flags, so both can come from one environment.
func runHealth(ctx context.Context, o *options, args []string, std streams) error {
	if len(args) > 0 {
		return errUsage{fmt.Errorf("health takes no arguments, but got %q", args)}
	}
	url, err := o.http.readyURL()
	if err != nil {
		return errUsage{err}
	}
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	// No proxy, since it is this machine; and the certificate names the host that
	// clients know, which is not the address asked here. Nothing secret is sent.
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("no answer: %w", err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1024))
	if err != nil {
		return fmt.Errorf("%s: %w", url, err)
	}
	text := strings.TrimSpace(string(body))
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s: %s", url, resp.Status, text)
	}
	_, err = fmt.Fprintln(std.out, text)
	return err
}

// readyURL is where a server with these flags says that it is ready. One that
// listens on every address is asked on loopback.
func (h *httpOptions) readyURL() (string, error) {
	if h.addr == "" {
		return "", errors.New("health needs the server's address: --http ADDR, or $ZEN_MCP_HTTP")
	}
	host, port, err := h.hostPort()
	if err != nil {
		return "", err
	}
	switch ip, _ := netip.ParseAddr(host); ip {
	case netip.IPv4Unspecified():
		host = "127.0.0.1"
	case netip.IPv6Unspecified():
		host = "::1"
	}
	scheme := "http"
	if h.serve.CertFile != "" {
		scheme = "https"
	}
	return scheme + "://" + net.JoinHostPort(host, port) + "/readyz", nil
}
