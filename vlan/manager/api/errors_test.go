package api

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The codes that refusals have are in docs/manager-api.md.
func TestDocumentHasAllCodes(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "manager-api.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range append(codes, code{name: "internal"}) {
		if !strings.Contains(string(text), "| `"+c.name+"` |") {
			t.Errorf("code %q is not in the document", c.name)
		}
	}
}
