// Command http is net/http's server and client, unchanged but for their listener and dialer:
// HTTP/1.1, and HTTP/2 with TLS.
//
//	go run ./examples/http                                    both nodes in this process
//	go build ./examples/http && rawlane run -n 2 ./http       a process for each, on kernel links
//
// Package bothways starts both ends and compares them: begin a program of your own with
// examples/web.
package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"time"

	"github.com/rawlane/rawlane/examples/bothways"
)

func main() { bothways.Main(time.Minute, serve, ask(bothways.Rounds)) }

// The services are ports' numbers, as a URL has them.
const (
	plain  = "80"
	secure = "443"
)

// serve answers requests with what they bring.
func serve(listen bothways.Listen) (stop func(), err error) {
	echo := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/octet-stream")
		_, _ = w.Write(body) // a client that is gone hears no error
	})
	cert, err := certificate()
	if err != nil {
		return nil, err
	}
	l, err := listen(plain)
	if err != nil {
		return nil, err
	}
	s, err := listen(secure)
	if err != nil {
		return nil, err
	}
	server := &http.Server{Handler: echo, ReadHeaderTimeout: time.Minute}
	overTLS := &http.Server{Handler: echo, ReadHeaderTimeout: time.Minute,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{cert}}}
	bothways.Serving("http", func() error { return server.Serve(l) }, http.ErrServerClosed)
	bothways.Serving("https", func() error { return overTLS.ServeTLS(s, "", "") }, http.ErrServerClosed)
	return func() { _, _ = server.Close(), overTLS.Close() }, nil
}

// ask measures requests of 64 bytes.
func ask(rounds int) func(context.Context, bothways.Way) error {
	return func(ctx context.Context, w bothways.Way) error {
		for _, c := range []struct {
			url, proto string
		}{
			{"http://" + w.Addr(plain), "HTTP/1.1"},
			{"https://" + w.Addr(secure), "HTTP/2.0"},
		} {
			transport := &http.Transport{
				DialContext:       w.Dial,
				ForceAttemptHTTP2: true,
				TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, // the example's certificate is nobody's
			}
			client := &http.Client{Transport: transport}
			err := w.Latency(c.proto, rounds, func() error { return post(ctx, client, c.url, c.proto) })
			transport.CloseIdleConnections()
			if err != nil {
				return err
			}
		}
		return nil
	}
}

func post(ctx context.Context, client *http.Client, url, proto string) error {
	sent := make([]byte, 64)
	_, _ = rand.Read(sent) // never fails
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(sent))
	if err != nil {
		return err
	}
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	got, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if err == nil && (!bytes.Equal(got, sent) || answer.Proto != proto) {
		return fmt.Errorf("%d bytes by %s, want the %d sent, by %s", len(got), answer.Proto, len(sent), proto)
	}
	return err
}

// certificate makes one that says nothing about anybody.
func certificate() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "example"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore:   time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}
