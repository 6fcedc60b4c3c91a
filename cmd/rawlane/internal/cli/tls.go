package cli

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"

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

// Config returns the configuration of either end, a manager or its client; nil without flags. Each
// asks the other for a certificate that the CA has signed.
func (t *TLSFiles) Config() (*tls.Config, error) {
	if *t == (TLSFiles{}) {
		return nil, nil
	}
	if t.cert == "" || t.key == "" || t.ca == "" {
		return nil, Misuse("TLS wants all of --tls-cert, --tls-key and --tls-ca: " +
			"both ends prove who they are")
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
