package keyring_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/rawlane/rawlane/mcd/keyring"
)

// A new key is written to a file that its owner alone may read, and a second one is added to it.
func Example() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "key")
	if err := keyring.New().WriteFile(path); err != nil {
		log.Fatal(err)
	}
	ring, err := keyring.ReadFile(path)
	if err != nil {
		log.Fatal(err)
	}
	ring.Keys = append(ring.Keys, keyring.Generate())
	if err := ring.WriteFile(path + ".new"); err != nil {
		log.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil { // endpoints with that KeyFile see it
		log.Fatal(err)
	}
	ring, err = keyring.ReadFile(path)
	fmt.Println(len(ring.Keys), "keys,", ring.Keys[0], err)
	// Output: 2 keys, key (hidden) <nil>
}
