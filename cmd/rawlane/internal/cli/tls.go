package cli

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"sync/atomic"

	"github.com/spf13/pflag"
)

// TLSFiles are flags that name the certificate, the key and the CA of one end of a connection.
type TLSFiles struct{ cert, key, ca string }

// Register defines the flags; whose says what the CA signs.
func (t *TLSFiles) Register(f *pflag.FlagSet, whose string) {
	f.StringVar(&t.cert, "tls-cert", "", "file of our certificate, for TLS over TCP")
	f.StringVar(&t.key, "tls-key", "", "file of its key")
	f.StringVar(&t.ca, "tls-ca", "", "file of the CA "+whose)
}

// Given reports whether there are flags. The error is a misuse: some are missing.
func (t *TLSFiles) Given() (bool, error) {
	if *t == (TLSFiles{}) {
		return false, nil
	}
	if t.cert == "" || t.key == "" || t.ca == "" {
		return false, Misuse("TLS wants all of --tls-cert, --tls-key and --tls-ca: both ends prove who they are")
	}
	return true, nil
}

// Reloading returns the configuration of a manager and a function that has it use the files as they
// are by then, for the connections that come after; both are nil without flags. With an error of
// that function the old ones stay in use.
func (t *TLSFiles) Reloading() (config *tls.Config, reload func() error, err error) {
	first, err := t.Config()
	if err != nil || first == nil {
		return nil, nil, err
	}
	var latest atomic.Pointer[tls.Config]
	latest.Store(first)
	config = first.Clone()
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return latest.Load(), nil }
	return config, func() error {
		next, err := t.Config()
		if err == nil {
			latest.Store(next)
		}
		return err
	}, nil
}

// Config returns the configuration of either end, a manager or its client; nil without flags. Each
// asks the other for a certificate that the CA has signed.
func (t *TLSFiles) Config() (*tls.Config, error) {
	if given, err := t.Given(); !given {
		return nil, err
	}
	cert, err := tls.LoadX509KeyPair(t.cert, t.key)
	if err != nil {
		return nil, fmt.Errorf("--tls-cert %s, --tls-key %s: %w", t.cert, t.key, err)
	}
	pem, err := os.ReadFile(t.ca)
	if err != nil {
		return nil, fmt.Errorf("--tls-ca: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("--tls-ca %s: no certificate in it (want PEM)", t.ca)
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{cert},
		RootCAs:   pool,                                             // of a client
		ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert, // of a manager
	}, nil
}
